#include "core/error.h"
#include "core/printable.h"

#include <gtest/gtest.h>

namespace containerize {
namespace {

TEST(Printable, ControlCharactersAreReplaced) {
    EXPECT_EQ(printable("a\x1b[31mb\rc\x7f"), "a?[31mb?c?");
    EXPECT_EQ(printable("one\n\ttwo"), "one\n\ttwo");
    EXPECT_EQ(printable_line("one\n\ttwo"), "one??two");
    // A control character of terminals that consists of two bytes.
    EXPECT_EQ(printable("a\xc2\x9b"
                        "31m"),
              "a?31m");
    EXPECT_EQ(printable("h\xc3\xa9 \xc2\xa0 \xe6\x97\xa5"), "h\xc3\xa9 \xc2\xa0 \xe6\x97\xa5");
}

TEST(Printable, ErrorsAre) {
    EXPECT_EQ(to_string(Error{.what = "no \x1b", .why = "it's \x07", .where = "/e\r", .hint = "try\nagain"}),
              "/e?: no ?: it's ?\ntry\nagain");
}

} // namespace
} // namespace containerize
