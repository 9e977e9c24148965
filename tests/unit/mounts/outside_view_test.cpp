#include "good.h"
#include "mounts/outside_view.h"

#include <csignal>

#include <gtest/gtest.h>
#include <sys/wait.h>

namespace containerize::mounts {
namespace {

class OutsideViewTest : public testing::Test {
protected:
    /// Waits for the end of the helper, whose view does not exist any more.
    void TearDown() override {
        while (waitpid(-1, nullptr, 0) > 0) {
        }
    }
};

} // namespace

/// A session may be told to end, with all its processes, and yet mount another installation before it ends.
TEST_F(OutsideViewTest, AHelperThatIsAskedToEndStays) {
    const auto view = test::good(OutsideView::keep());
    ASSERT_GT(view.helper(), 0);
    ASSERT_EQ(kill(view.helper(), SIGTERM), 0);
    struct stat info {};
    ASSERT_EQ(view.look()("/", &info), 0);
    EXPECT_NE(info.st_uid, unknown_owner);
    EXPECT_FALSE(find_foreign("/", {.look = view.look()}));
}

TEST_F(OutsideViewTest, WithoutItsHelperNothingIsTrusted) {
    const auto view = test::good(OutsideView::keep());
    ASSERT_GT(view.helper(), 0);
    EXPECT_FALSE(view.has_ended());
    ASSERT_EQ(kill(view.helper(), SIGKILL), 0);
    ASSERT_EQ(waitpid(view.helper(), nullptr, 0), view.helper());
    EXPECT_TRUE(view.has_ended());
    const auto foreign = find_foreign("/usr", {.look = view.look()});
    ASSERT_TRUE(foreign);
    EXPECT_EQ(foreign->path, "/");
    EXPECT_TRUE(foreign->unknown);
}

TEST_F(OutsideViewTest, WithoutAHelperNoneHasEnded) {
    EXPECT_FALSE(OutsideView().has_ended());
}

} // namespace containerize::mounts
