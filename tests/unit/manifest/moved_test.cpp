#include "../temporary.h"
#include "manifest/manifest.h"

#include <filesystem>

#include <gtest/gtest.h>

namespace containerize::manifest {

namespace {

namespace fs = std::filesystem;

TEST(Moved, TheWayBackDependsOnWhatIsThere) {
    const test::TemporaryDirectory directory;
    const auto first = directory / "k";
    const auto prefix = directory / "k-moved";
    Manifest manifest;
    manifest.prefix = first;
    const auto move = [](const fs::path& from, const fs::path& to) {
        return "mv " + from.string() + " " + to.string();
    };
    EXPECT_EQ(command_to_move_back(manifest, prefix), move(prefix, first));
    fs::create_directory(first); // made by a launch
    EXPECT_EQ(command_to_move_back(manifest, prefix),
              "rmdir " + first.string() + " && " + move(prefix, first));
    fs::create_directory(first / "k-moved"); // made by mv
    const fs::path aside = first.string() + ".moved";
    EXPECT_EQ(command_to_move_back(manifest, first / "k-moved"),
              move(first / "k-moved", aside) + " && rmdir " + first.string() + " && " + move(aside, first));
    EXPECT_EQ(command_to_move_back(manifest, prefix), "") << "something else is there";
    fs::create_directory(first / "other");
    EXPECT_EQ(command_to_move_back(manifest, first / "k-moved"), "");
}

} // namespace

} // namespace containerize::manifest
