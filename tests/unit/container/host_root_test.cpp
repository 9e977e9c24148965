#include "container/host_root.h"
#include "temporary.h"
#include "users.h"

#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::container {
namespace {

TEST(HostRoot, IsMadeWhateverTheUmaskIs) {
    const test::TemporaryDirectory directory;
    const std::string state = directory.path();
    const auto made = test::in_process([&] {
        umask(0777);
        const auto root =
            make_host_root({.fd = Fd(open(state.c_str(), O_RDONLY | O_DIRECTORY)), .path = state});
        return root ? root->directory.string() : to_string(root.error());
    });
    struct stat info {};
    ASSERT_EQ(stat((made + "/usr").c_str(), &info), 0) << made;
    EXPECT_EQ(info.st_mode & 0777U, 0755U);
}

} // namespace
} // namespace containerize::container
