#include "../good.h"
#include "../temporary.h"
#include "core/version.h"
#include "launch/session_format.h"
#include "prefix/publish.h"
#include "prefix/states.h"

#include <algorithm>
#include <array>
#include <functional>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace containerize::prefix {

namespace {

using test::TemporaryDirectory;

/// Builds installations at one prefix; the content of each file is the mark of its build.
class Publish : public testing::Test {
protected:
    /// Builds, and publishes if asked to. Whatever is not kept is removed, as at the end of a real build.
    Status build(const std::string& mark, const std::vector<std::string>& commands, bool publishing = true,
                 const std::vector<std::string>& paths = {"bin"}) {
        auto cleanup = CleanupProcess::start();
        auto lock = TRY(lock_prefix(prefix_, *cleanup));
        remove_leftovers(lock);
        auto assembly = TRY(make_assembly(lock, *cleanup));
        manifest::Manifest manifest;
        manifest.prefix = prefix_;
        manifest.created = mark;
        manifest.build = nlohmann::json::object();
        manifest.wrapper_paths = paths;
        for (const auto& path : paths)
            for (const auto& command : commands)
                put(assembly / path / command, mark);
        put(assembly / launch::session_program_file(), mark);
        manifest.state = *next_state(prefix_);
        put(assembly / state_directory(manifest.state) / "inputs" / (mark + ".txt"), mark);
        put(assembly / state_directory(manifest.state) / "packages.txt", mark);
        const auto image = directory_.write("image-" + mark, mark);
        manifest.image.file = free_image_name(prefix_);
        TRY(add_image(image, ImageIs::of_others, assembly, manifest.image, {}));
        if (!publishing) return {};
        if (meanwhile) meanwhile();
        return publish({.lock = lock,
                        .assembly = assembly,
                        .manifest = manifest,
                        .kept = {},
                        .staging = directory_ / "staging"},
                       *cleanup);
    }

    static std::string session_program() { return fs::path(launch::session_program_file()).filename(); }

    static void put(const fs::path& file, const std::string& content) {
        fs::create_directories(file.parent_path());
        ASSERT_TRUE(write_file(file, content));
    }

    [[nodiscard]] static std::string names(const fs::path& directory) {
        std::vector<std::string> all;
        for (const auto& entry : fs::directory_iterator(directory))
            all.push_back(entry.path().filename().string());
        std::ranges::sort(all);
        std::string text;
        for (const auto& name : all)
            text += (text.empty() ? "" : " ") + name;
        return text;
    }

    /// The mark of the build to which both manifest and image belong; otherwise "mixed".
    [[nodiscard]] std::string current() const {
        const auto manifest = manifest::read_manifest(prefix_);
        if (!manifest) return to_string(manifest.error());
        const auto image = read_file(prefix_ / manifest->image.file);
        return image && *image == manifest->created ? *image : "mixed";
    }

    [[nodiscard]] static std::string this_host() {
        std::array<char, 256> name{};
        gethostname(name.data(), name.size() - 1);
        return "@" + std::string(name.data());
    }

    [[nodiscard]] ino_t inode() const {
        struct stat info {};
        EXPECT_EQ(stat(prefix_.c_str(), &info), 0);
        return info.st_ino;
    }

    const TemporaryDirectory& directory() const { return directory_; }

private:
    TemporaryDirectory directory_;

protected:
    std::function<void()> meanwhile; ///< called just before publishing
    fs::path prefix_ = directory_ / "env";
};

TEST_F(Publish, NewAppearsWhole) {
    ASSERT_TRUE(build("one", {"python", "pip"}));
    EXPECT_EQ(names(prefix_), "bin containerize.json env.sqfs libexec share states");
    EXPECT_EQ(names(prefix_ / "bin"), "pip python");
    EXPECT_EQ(current(), "one");
    EXPECT_EQ(names(directory().path()), "env image-one");
}

TEST_F(Publish, NothingIsLeftOfAnUnfinishedOne) {
    ASSERT_TRUE(build("one", {"python"}, false));
    EXPECT_EQ(names(directory().path()), "image-one");
}

TEST_F(Publish, EmptyDirectoryStaysTheSame) {
    fs::create_directory(prefix_);
    const auto before = inode();
    ASSERT_TRUE(build("one", {"python"}));
    EXPECT_EQ(inode(), before);
    EXPECT_EQ(names(prefix_), "bin containerize.json env.sqfs libexec share states");
}

TEST_F(Publish, EmptyDirectoryIsEmptyAgainAfterAFailure) {
    fs::create_directory(prefix_);
    ASSERT_TRUE(build("one", {"python"}, false));
    EXPECT_EQ(names(prefix_), "");
}

TEST_F(Publish, WhatCameMeanwhileStays) {
    fs::create_directory(prefix_);
    meanwhile = [this] { put(prefix_ / "bin/mine", "x"); };
    EXPECT_EQ(test::error_of(build("one", {"python"})).what, "the prefix is not empty");
    EXPECT_EQ(names(prefix_), "bin");
    EXPECT_EQ(names(prefix_ / "bin"), "mine");
}

TEST_F(Publish, ReplacingKeepsTheDirectory) {
    ASSERT_TRUE(build("one", {"python", "old"}));
    const auto before = inode();
    ASSERT_TRUE(build("two", {"python", "new"}));
    // Sessions have mounted their image over this directory, so it must stay the same one.
    EXPECT_EQ(inode(), before);
    EXPECT_EQ(names(prefix_), "bin containerize.json env.1.sqfs libexec share states");
    EXPECT_EQ(names(prefix_ / "bin"), "new python");
    EXPECT_EQ(names(prefix_ / "share/inputs"), "two.txt");
    EXPECT_EQ(current(), "two");
    ASSERT_TRUE(build("three", {"python"}));
    EXPECT_EQ(names(prefix_), "bin containerize.json env.sqfs libexec share states");
    EXPECT_EQ(current(), "three");
}

TEST_F(Publish, FailedReplacementLeavesTheOld) {
    ASSERT_TRUE(build("one", {"python"}));
    ASSERT_TRUE(build("two", {"python"}, false));
    EXPECT_EQ(current(), "one");
    EXPECT_EQ(names(prefix_), "bin containerize.json env.sqfs libexec share states");
    // A directory at the path of a command prevents the rename.
    fs::create_directories(prefix_ / "bin/blocked/x");
    ASSERT_FALSE(build("two", {"blocked", "python"}));
    EXPECT_EQ(current(), "one");
    EXPECT_EQ(names(prefix_), "bin containerize.json env.sqfs libexec share states");
}

TEST_F(Publish, LeftoversOfAKilledBuildGo) {
    ASSERT_TRUE(build("one", {"python"}));
    put(prefix_ / (".containerize-env-4242" + this_host()) / "env.sqfs", "half");
    put(prefix_ / "env.7.sqfs", "not committed");
    put(directory() / ".containerize-other-1/x", "of another prefix");
    ASSERT_TRUE(build("two", {"python"}));
    EXPECT_EQ(names(prefix_), "bin containerize.json env.1.sqfs libexec share states");
    EXPECT_TRUE(fs::exists(directory() / ".containerize-other-1/x"));
}

TEST_F(Publish, HalfMadeSiblingGoes) {
    const std::string other_prefix = ".containerize-env-b-4242" + this_host();
    const std::string other_host = ".containerize-env-4242@elsewhere"; // may be building at this moment
    put(directory() / (".containerize-env-4242" + this_host()) / "env.sqfs", "half");
    put(directory() / other_prefix / "env.sqfs", "of another prefix, env-b");
    put(directory() / other_host / "env.sqfs", "half");
    ASSERT_TRUE(build("one", {"python"}));
    EXPECT_TRUE(fs::exists(directory() / other_prefix));
    EXPECT_TRUE(fs::exists(directory() / other_host));
    fs::remove_all(directory() / other_prefix);
    fs::remove_all(directory() / other_host);
    EXPECT_EQ(names(directory().path()), "env image-one");
}

TEST_F(Publish, WhatAKilledBuildPutIntoAnEmptyDirectoryGoes) {
    const auto assembly = prefix_ / (".containerize-env-4242" + this_host());
    put(assembly / names_to_come, "bin\nenv.sqfs\n../image-one\n");
    put(prefix_ / "bin/other", "half");
    put(prefix_ / "env.sqfs", "half");
    put(prefix_ / "mine", "x");
    EXPECT_EQ(check_prefix(prefix_, false).error().why, "it contains 'mine'");
    fs::remove(prefix_ / "mine");
    EXPECT_TRUE(check_prefix(prefix_, false));
    ASSERT_TRUE(build("one", {"python"}));
    EXPECT_EQ(names(prefix_), "bin containerize.json env.sqfs libexec share states");
    EXPECT_EQ(names(prefix_ / "bin"), "python");
    EXPECT_EQ(names(directory().path()), "env image-one");
    EXPECT_EQ(current(), "one");
}

TEST_F(Publish, StatesThatAKilledReplacementLeftAreNone) {
    ASSERT_TRUE(build("one", {"python"}));
    const auto before = prefix_ / state_directory(1);
    fs::copy(before, directory() / "kept", fs::copy_options::recursive);
    fs::copy(prefix_ / "env.sqfs", directory() / "kept.sqfs");
    ASSERT_TRUE(build("two", {"python"}));
    fs::copy(directory() / "kept", before, fs::copy_options::recursive);
    fs::copy(directory() / "kept.sqfs", prefix_ / "env.sqfs");
    const auto states = test::good(read_states(prefix_));
    ASSERT_EQ(states.size(), 1U);
    EXPECT_EQ(states.front().state, 2U);
    // A build that publishes nothing removes it, too.
    ASSERT_TRUE(build("three", {"python"}, false));
    EXPECT_EQ(names(prefix_), "bin containerize.json env.1.sqfs libexec share states");
    EXPECT_EQ(names(prefix_ / "states"), "2");
    EXPECT_EQ(current(), "two");
}

TEST_F(Publish, StateCountsOnlyOnceItIsCurrent) {
    ASSERT_TRUE(build("one", {"python"}));
    ASSERT_TRUE(build("two", {"python"}));
    const auto manifest_of = [&](unsigned state) {
        return prefix_ / state_directory(state) / launch::manifest_name;
    };
    EXPECT_EQ(read_file(manifest_of(2)).value(), read_file(prefix_ / launch::manifest_name).value());
    // A third state was put into place, and then the build was killed.
    put(prefix_ / state_directory(3) / "packages.txt", "three");
    EXPECT_EQ(read_states(prefix_)->size(), 1U);
    // Or it was killed right after the manifest that makes it current.
    fs::remove(manifest_of(2));
    EXPECT_EQ(read_states(prefix_)->size(), 1U);
    auto cleanup = CleanupProcess::start();
    const auto lock = test::good(lock_prefix(prefix_, *cleanup));
    remove_leftovers(lock);
    EXPECT_EQ(read_file(manifest_of(2)).value(), read_file(prefix_ / launch::manifest_name).value());
    EXPECT_EQ(names(prefix_ / states_name), "2");
}

TEST_F(Publish, WrapperPathsComeAndGo) {
    ASSERT_TRUE(build("one", {"a"}, true, {"bin", "share/tool/bin", "opt"}));
    EXPECT_EQ(names(prefix_ / "share/tool/bin"), "a");
    ASSERT_TRUE(build("two", {"b"}, true, {"bin", "share/tool/bin", "opt/deep"}));
    EXPECT_EQ(names(prefix_ / "share/tool/bin"), "b");
    EXPECT_EQ(names(prefix_ / "opt"), "deep");
    ASSERT_TRUE(build("three", {"b"}));
    EXPECT_EQ(names(prefix_), "bin containerize.json env.sqfs libexec share states");
    EXPECT_EQ(names(prefix_ / "share"), "inputs packages.txt");
}

TEST_F(Publish, AnOlderSessionProgramStaysUntilTheNextChange) {
    ASSERT_TRUE(build("one", {"a"}));
    auto old = *manifest::read_manifest(prefix_);
    EXPECT_EQ(old.programs_version, this_version);
    old.programs_version = "0.1.0";
    put(prefix_ / launch::manifest_name, to_text(old));
    put(prefix_ / "libexec/containerize-session", "old");
    ASSERT_TRUE(build("two", {"a"}));
    EXPECT_EQ(names(prefix_ / "libexec"), "containerize-session " + session_program());
    ASSERT_TRUE(build("three", {"a"}));
    EXPECT_EQ(names(prefix_ / "libexec"), session_program());
}

TEST_F(Publish, FilesOfOursInDirectoriesOfWrappersStay) {
    const std::vector<std::string> all = {"bin", "libexec", "share"};
    ASSERT_TRUE(build("one", {"a"}, true, all));
    ASSERT_TRUE(build("two", {"a"}, true, all));
    EXPECT_EQ(names(prefix_ / "libexec"), "a " + session_program());
    EXPECT_EQ(names(prefix_ / "share"), "a inputs packages.txt");
    ASSERT_TRUE(build("three", {"a"}));
    EXPECT_EQ(names(prefix_ / "libexec"), session_program());
    EXPECT_EQ(names(prefix_ / "share"), "inputs packages.txt");
}

TEST_F(Publish, FilesOfTheUserStay) {
    ASSERT_TRUE(build("one", {"a"}));
    const std::vector<fs::path> files = {"share/notes.txt", "libexec/tool", "env.backup.sqfs", "env.1x.sqfs",
                                         "states/notes/file"};
    for (const auto& file : files)
        put(prefix_ / file, "x");
    ASSERT_TRUE(build("two", {"a"}));
    for (const auto& file : files)
        EXPECT_TRUE(fs::exists(prefix_ / file)) << file;
}

TEST_F(Publish, ForeignManifestLeadsNowhereElse) {
    ASSERT_TRUE(build("one", {"python"}));
    put(directory() / "precious/data", "x");
    auto manifest = *manifest::read_manifest(prefix_);
    manifest.wrapper_paths = {"../precious", (directory() / "precious").string(), "."};
    ASSERT_TRUE(write_file(prefix_ / launch::manifest_name, to_text(manifest)));
    ASSERT_TRUE(build("two", {"python"}));
    EXPECT_TRUE(fs::exists(directory() / "precious/data"));
    EXPECT_EQ(current(), "two");
}

TEST_F(Publish, UnreadableManifestCanBeReplaced) {
    ASSERT_TRUE(build("one", {"python"}));
    ASSERT_TRUE(write_file(prefix_ / launch::manifest_name, "{"));
    ASSERT_TRUE(build("two", {"python"}));
    EXPECT_EQ(current(), "two");
}

TEST_F(Publish, RoomIsLookedAt) {
    auto cleanup = CleanupProcess::start();
    const auto lock = lock_prefix(prefix_, *cleanup);
    EXPECT_TRUE(check_room(*lock, 1));
    EXPECT_EQ(test::error_of(check_room(*lock, std::uint64_t{1} << 62U)).what,
              "there is not enough space for the installation");
}

} // namespace

} // namespace containerize::prefix
