#include "launch/root_key.h"
#include "temporary.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace containerize::launch {
namespace {

using test::TemporaryDirectory;

/// The variables that change a root are not set for its lifetime.
class RootKey : public testing::Test {
protected:
    void SetUp() override { unset_all(); }
    void TearDown() override { unset_all(); }

    /// The key of an installation in `place`.
    static std::string key(const TemporaryDirectory& place, const std::string& root) {
        place.write(root_file, root);
        return root_key(place.path());
    }
    /// The same while a variable is set.
    static std::string key(const TemporaryDirectory& place, const std::string& root, const char* variable,
                           const char* value) {
        setenv(variable, value, 1);
        const auto made = key(place, root);
        unsetenv(variable);
        return made;
    }

    const TemporaryDirectory one_, two_;

private:
    static void unset_all() {
        for (const auto& variable : root_variables)
            unsetenv(variable.name.name());
    }
};

TEST_F(RootKey, IsEmptyForTheCallersOwnRoot) {
    EXPECT_EQ(root_key(one_.path()), "");
    EXPECT_EQ(key(one_, "", "CONTAINERIZE_BIND", ""), "");
    for (const auto& variable : root_variables)
        EXPECT_EQ(key(one_, "", variable.name.name(), "/x").empty(), variable.for_images_only)
            << variable.name.name();
}

TEST_F(RootKey, IsThatOfTheRootAndTheCallersVariables) {
    const auto plain = key(one_, "image-a");
    EXPECT_EQ(plain.size(), 16U);
    EXPECT_EQ(key(two_, "image-a"), plain) << "they share a session";
    EXPECT_NE(key(one_, "image-b"), plain);
    EXPECT_NE(key(one_, "host-a"), plain);
    for (const char* root : {"image-a", "isolated-a"}) {
        const auto without = key(one_, root);
        for (const auto& variable : root_variables) {
            const auto with_x = key(one_, root, variable.name.name(), "/x");
            EXPECT_NE(with_x, without) << variable.name.name();
            EXPECT_NE(key(one_, root, variable.name.name(), "/y"), with_x) << variable.name.name();
            // No binds are none, but no GPU is not the usual one.
            EXPECT_EQ(key(one_, root, variable.name.name(), "") == without, variable.binds)
                << variable.name.name();
        }
    }
    EXPECT_NE(key(one_, "image-a", "APPTAINER_BIND", "/x"), key(one_, "image-a", "SINGULARITY_BIND", "/x"));
}

TEST_F(RootKey, IsThatOfOneInstallationIfTheRootWouldNotShowIt) {
    EXPECT_NE(key(one_, "isolated-a"), key(two_, "isolated-a"));
    const TemporaryDirectory three("/var/tmp"), four("/var/tmp"); // an image has its own /var
    EXPECT_NE(key(three, "image-a"), key(four, "image-a"));
    EXPECT_EQ(key(three, "host-a"), key(four, "host-a"));
}

} // namespace
} // namespace containerize::launch
