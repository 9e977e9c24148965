#include "../temporary.h"
#include "core/filesystem.h"
#include "inputs/secrets.h"

#include <array>

#include <gtest/gtest.h>

namespace containerize::inputs {

namespace {

TEST(SecretsOfPackages, ClonesHaveNoLogins) {
    const test::TemporaryDirectory place;
    const auto with_url = [](const std::string& login) {
        return "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://" + login + "host/x.git\n";
    };
    const std::array files = {"src/one/.git/config", "elsewhere/deep/two/.git/config",
                              "src/one/.git/modules/sub/config", "src/one/.git/modules/a/modules/b/config"};
    for (const auto* file : files) {
        fs::create_directories((place / file).parent_path());
        ASSERT_TRUE(write_file(place / file, with_url("me:s3cret-word@")));
    }
    ASSERT_TRUE(write_file(place / "config", with_url("me:s3cret-word@")));
    ASSERT_TRUE(remove_secrets_of_packages(place.path(), "python3.11"));
    for (const auto* file : files)
        EXPECT_EQ(read_file(place / file).value_or("none"), with_url("")) << file;
    EXPECT_EQ(read_file(place / "config").value_or("none"), with_url("me:s3cret-word@"))
        << "no file of git's";
}

} // namespace

} // namespace containerize::inputs
