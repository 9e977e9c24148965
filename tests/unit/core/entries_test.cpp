#include "../temporary.h"
#include "core/entries.h"

#include <gtest/gtest.h>

namespace containerize {
namespace {

TEST(Entries, AreThoseOfADirectoryAndOfAllBelow) {
    const test::TemporaryDirectory directory;
    directory.write("a/b/c", "x");
    directory.write("d", "x");
    std::error_code failed;
    EXPECT_EQ(entries_in(directory.path(), failed).size(), 2U);
    EXPECT_EQ(entries_below(directory.path(), failed).size(), 4U);
    EXPECT_FALSE(failed);
}

TEST(Entries, OfWhatIsNoDirectoryAreNone) {
    std::error_code failed;
    EXPECT_TRUE(entries_in("/no/such", failed).empty());
    EXPECT_EQ(failed, std::errc::no_such_file_or_directory);
    failed.clear();
    EXPECT_TRUE(entries_below("/etc/passwd", failed).empty());
    EXPECT_EQ(failed, std::errc::not_a_directory);
}

} // namespace
} // namespace containerize
