#include "../good.h"
#include "../temporary.h"
#include "base/store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::base {

TEST(Store, ItsLockIsForThoseWhoCanWriteToIt) {
    const mode_t before = umask(022);
    const struct { mode_t store, lock; } cases[] = {{0755, 0600}, {0700, 0600}, {02775, 0660}, {0770, 0660}};
    for (const auto& [mode, expected] : cases) {
        const test::TemporaryDirectory store;
        ASSERT_EQ(chmod(store.path().c_str(), mode), 0);
        const auto file = store.write("image", "content");
        test::good(add_image(
            store.path(),
            {.file = file, .references = {"docker://x/y:1"}, .digest = "sha256:" + std::string(64, 'a')}));
        EXPECT_EQ(test::mode_of(store / ".lock"), expected) << std::oct << mode;
        // A lock that an earlier version made gets the mode, too.
        ASSERT_EQ(chmod((store / ".lock").c_str(), 0640), 0);
        const auto image = find_image({store.path()}, "docker://x/y:1");
        ASSERT_TRUE(image);
        test::good(add_reference(store.path(), *image, "docker://x/y:2"));
        EXPECT_EQ(test::mode_of(store / ".lock"), expected) << std::oct << mode;
    }
    umask(before);
}

TEST(Store, ItsLockHasItsGroup) {
    const test::TemporaryDirectory store;
    if (chown(store.path().c_str(), static_cast<uid_t>(-1), 12345) != 0) GTEST_SKIP() << "needs root";
    ASSERT_EQ(chmod(store.path().c_str(), 0770), 0);
    const auto file = store.write("image", "content");
    test::good(add_image(store.path(),
                         {.file = file, .references = {}, .digest = "sha256:" + std::string(64, 'a')}));
    struct stat info {};
    ASSERT_EQ(stat((store / ".lock").c_str(), &info), 0);
    EXPECT_EQ(info.st_gid, 12345U);
    EXPECT_EQ(test::mode_of(store / ".lock"), 0660U);
}

} // namespace containerize::base
