#include "../temporary.h"
#include "util/digest.h"

#include <gtest/gtest.h>

namespace containerize {

TEST(Digest, OfTextAndFile) {
    constexpr auto abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    EXPECT_EQ(sha256("abc"), abc);
    const test::TemporaryDirectory directory;
    EXPECT_EQ(sha256_of_file(directory.write("f", "abc")).value(), abc);
    EXPECT_EQ(to_string(sha256_of_file("/no/such").error()),
              "/no/such: cannot read the file: No such file or directory");
}

} // namespace containerize
