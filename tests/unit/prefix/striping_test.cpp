// Striping on Lustre, which no test machine has: how lfs is called, and what its answers lead to.
#include "../temporary.h"
#include "core/filesystem.h"
#include "prefix/striping.h"

#include <gtest/gtest.h>

namespace containerize::prefix {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20U;

TEST(Stripes, AreMoreForLargerImages) {
    EXPECT_EQ(stripes_for(0), 1U);
    EXPECT_EQ(stripes_for(100 * mib), 1U);
    EXPECT_EQ(stripes_for(300 * mib), 4U);
    EXPECT_EQ(stripes_for(9000 * mib), 16U);
}

class StripedDirectory : public testing::Test {
protected:
    [[nodiscard]] Environment with_lfs(const std::string& text) const {
        const auto program = directory_.write("bin/lfs", "#!/bin/sh\n" + text);
        fs::permissions(program, fs::perms::owner_all);
        return {{"PATH", program.parent_path().string()}};
    }
    test::TemporaryDirectory directory_;
    fs::path striped_ = directory_ / "striped";
};

TEST_F(StripedDirectory, HasTheLayoutBeforeItHasFiles) {
    const auto said = directory_ / "said";
    ASSERT_TRUE(make_striped_directory(striped_, 4,
                                       with_lfs("[ -d \"$6\" ] && echo \"$@\" > " + said.string() + "\n")));
    EXPECT_EQ(read_file(said).value_or(""), "setstripe -c 4 -S 16M " + striped_.string() + "\n");
    EXPECT_TRUE(fs::is_empty(striped_));
}

TEST_F(StripedDirectory, IsNotThereWhereLustreRefuses) {
    EXPECT_FALSE(make_striped_directory(striped_, 4, with_lfs("exit 1\n")));
    EXPECT_FALSE(make_striped_directory(striped_, 4, {{"PATH", directory_.path().string()}}));
    EXPECT_FALSE(fs::exists(striped_));
}

} // namespace
} // namespace containerize::prefix
