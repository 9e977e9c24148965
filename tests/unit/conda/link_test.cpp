// Real packages, linked into an image and unpacked again by the standard tools.
#include "../temporary.h"
#include "conda/archive.h"
#include "conda/link.h"
#include "conda/match_spec.h"
#include "conda/prefix_replacement.h"
#include "fixtures.h"
#include "util/digest.h"
#include "util/process.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace containerize::conda {
namespace {

using test::TemporaryDirectory;

TEST(PrefixReplacement, Text) {
    EXPECT_EQ(replace_in_text("a=/old/p\nb=/old/p/lib\n", "/old/p", "/new"), "a=/new\nb=/new/lib\n");
    EXPECT_EQ(replace_in_text("nothing", "/old/p", "/new"), "nothing");
    EXPECT_EQ(replace_in_text("#!/old/p/bin/python\nx\n", "/old/p", "/new"), "#!/new/bin/python\nx\n");
    EXPECT_EQ(replace_in_text("#!/old/p/bin/python -E\nx\n", "/old/p", "/new"), "#!/new/bin/python -E\nx\n");
    EXPECT_EQ(replace_in_text("#!/bin/sh\ncd /old/p\n", "/old/p", "/a b"), "#!/bin/sh\ncd /a b\n");
    EXPECT_EQ(replace_in_text("#!/usr/bin/env python\n/old/p", "/old/p", "/new"),
              "#!/usr/bin/env python\n/new");
    EXPECT_EQ(replace_in_text("#!/old/p/bin/python", "/old/p", "/new"), "#!/new/bin/python\n");
}

TEST(PrefixReplacement, FirstLinesThatNoKernelTakes) {
    const std::string deep = "/" + std::string(120, 'd');
    EXPECT_EQ(shebang("/e/bin/python"), "#!/e/bin/python\n");
    EXPECT_EQ(shebang("/a b/bin/python3.11", "-E"),
              "#!/bin/sh\n'''exec' \"/a b/bin/python3.11\" -E \"$0\" \"$@\"\n' '''\n");
    EXPECT_EQ(shebang(deep + "/bin/python"),
              "#!/bin/sh\n'''exec' \"" + deep + "/bin/python\" \"$0\" \"$@\"\n' '''\n");
    EXPECT_EQ(shebang("/a$b `c\"/bin/python"),
              "#!/bin/sh\n'''exec' \"/a\\$b \\`c\\\"/bin/python\" \"$0\" \"$@\"\n' '''\n");
    EXPECT_EQ(shebang(deep + "/bin/perl", "-w"), "#!/usr/bin/env -S perl -w\n");
    EXPECT_EQ(replace_in_text("#!/old/bin/python -s\nimport x\n", "/old", "/a b"),
              "#!/bin/sh\n'''exec' \"/a b/bin/python\" -s \"$0\" \"$@\"\n' '''\nimport x\n");
}

TEST(PrefixReplacement, BinariesKeepTheirLength) {
    const std::string old = "/opt/" + std::string(20, 'x');
    const auto nul = std::string(1, '\0');
    const auto replaced = [&](const std::string& content, const std::string& prefix) {
        const auto result = replace_in_binary(content, old, prefix, "lib/x.so");
        EXPECT_TRUE(result);
        if (!result) return std::string();
        EXPECT_EQ(result->size(), content.size());
        return *result;
    };
    const std::size_t saved = old.size() - 4;
    EXPECT_EQ(replaced("a" + nul + old + "/lib" + nul + "z", "/new"),
              "a" + nul + "/new/lib" + std::string(saved, '\0') + nul + "z");
    EXPECT_EQ(replaced(old + ":" + old + nul, "/new"), "/new:/new" + std::string(2 * saved, '\0') + nul);
    EXPECT_EQ(replaced("x" + old, "/new"), "x/new" + std::string(saved, '\0')) << "no NUL at the file's end";
    EXPECT_EQ(replaced("none", "/new"), "none");
    EXPECT_EQ(replaced(old + nul, old), old + nul);
    const auto refused = replace_in_binary(old + nul, old, old + "y", "lib/x.so");
    ASSERT_FALSE(refused);
    EXPECT_EQ(to_string(refused.error()), old + "y: the prefix is too long for this package: its binary "
                                                "'lib/x.so' has room for 25 bytes, and the prefix has 26\n"
                                                "Choose a prefix of at most 25 bytes.");
    EXPECT_EQ(replace_in_binary("none", old, old + "y", "x").value_or(""), "none")
        << "only where it is named";
}

Command shell(const std::string& text) {
    return {.argv = {"bash", "-c", text},
            .environment = {},
            .working_directory = {},
            .in_child = {},
            .on_line = {}};
}

std::map<std::string, std::string> tree_of(const fs::path& root) {
    std::map<std::string, std::string> tree;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
        const auto status = entry.symlink_status();
        const auto name = entry.path().lexically_relative(root).string();
        if (fs::is_symlink(status))
            tree[name] = "-> " + fs::read_symlink(entry.path()).string();
        else if (fs::is_regular_file(status))
            tree[name] = sha256(read_file(entry.path()).value_or("unreadable"));
    }
    return tree;
}

PackageToLink package_of(const fs::path& file) {
    PackageToLink package;
    const auto parts = parse_file_name(file.filename().native());
    EXPECT_TRUE(parts) << file;
    package.record.name = parts->name;
    package.record.version = parts->version;
    package.record.build = parts->build;
    package.record.file_name = file.filename();
    package.archive = file;
    return package;
}

Result<Linked> link_into(const fs::path& image, const std::vector<PackageToLink>& packages, unsigned jobs,
                         const std::string& prefix = "/data/env") {
    auto writer = image::Writer::create(image, {});
    if (!writer) return fail(std::move(writer.error()));
    LinkOptions options;
    options.prefix = prefix;
    options.jobs = jobs;
    options.memory = 8U << 20U;
    auto infos = read_packages(packages, jobs);
    if (!infos) return fail(std::move(infos.error()));
    auto linked = link_packages(packages, std::move(*infos), options, *writer, {});
    if (!linked) return linked;
    if (auto finished = writer->finish(); !finished) return fail(std::move(finished.error()));
    return linked;
}

std::vector<fs::path> real_packages() {
    auto files = test::fixtures("conda", ".conda");
    const auto older = test::fixtures("conda", ".tar.bz2");
    files.insert(files.end(), older.begin(), older.end());
    std::ranges::sort(files);
    return files;
}

// Each by itself: the same content as an independent extraction gives, but for prefixes and noarch paths.
TEST(LinkRealData, EveryPackageIsLinkedOrRefusedWithAReason) {
    const auto files = real_packages();
    if (files.empty()) GTEST_SKIP() << "the fixtures are not there";
    std::size_t linked_packages = 0;
    std::vector<std::string> refused;
    for (const auto& file : files) {
        // The other half of a pair that was made wrongly; one of them is enough here.
        if (file.filename() == "zlib-1.2.11-h7b6447c_3.tar.bz2") continue;
        const TemporaryDirectory directory;
        const auto image = directory.path() / "image";
        const auto linked = link_into(image, {package_of(file)}, 2);
        if (!linked) {
            refused.push_back(file.filename().string() + ": " + linked.error().what + ": " +
                              linked.error().why);
            continue;
        }
        ++linked_packages;
        const auto ours = directory.path() / "ours";
        const auto theirs = directory.path() / "theirs";
        fs::create_directory(theirs);
        const auto unpacked =
            run(shell("unsquashfs -q -n -d '" + ours.string() + "' '" + image.string() + "'"));
        ASSERT_TRUE(unpacked && unpacked->ok()) << file;
        const auto extract =
            file.extension() == ".conda"
                ? "cd '" + theirs.string() + "' && bsdtar -xOf '" + file.string() +
                      "' '*pkg-*.tar.zst' | bsdtar -xf -"
                : "bsdtar -xf '" + file.string() + "' -C '" + theirs.string() + "' --exclude 'info/*'";
        if (const auto extracted = run(shell(extract)); !extracted || !extracted->ok())
            continue; // bsdtar knows no empty tar
        const auto mine = tree_of(ours);
        for (const auto& [path, content] : tree_of(theirs)) {
            const bool moved = path.starts_with("site-packages/") || path.starts_with("python-scripts/");
            const auto found = mine.find(path);
            if (found == mine.end() || moved) continue;
            const auto source = PackageArchive::open(file, "x")->info();
            ASSERT_TRUE(source);
            const auto list = source->contains("paths.json")   ? source->at("paths.json")
                              : source->contains("has_prefix") ? source->at("has_prefix")
                                                               : "";
            if (list.find("placeholder") == std::string::npos &&
                list.find("/opt/anaconda") == std::string::npos) {
                EXPECT_EQ(found->second, content) << file << " " << path;
            }
        }
        EXPECT_TRUE(mine.contains("conda-meta/history"));
    }
    EXPECT_GT(linked_packages, 90U);
    // These lack what they list, or a list: nobody could install them.
    const std::vector<std::string> broken = {
        "dotslash-test-1.0.0-0.conda: the package dotslash-test-1.0.0-0 is damaged: it has no list of its "
        "files",
        "flask-0.11.1-py_0.tar.bz2: the package flask-0.11.1-py_0 is damaged: 'site-packages/",
        "info-only-1.0.0-0.conda: the package info-only-1.0.0-0 is damaged: it has no list of its files",
        "spiffy-test-app-0.5-pyh6afbcc8_0.tar.bz2: the package spiffy-test-app-0.5-pyh6afbcc8_0 is damaged: "
        "'site-packages/",
        "symlink-test-1.0.0-0.conda: the package symlink-test-1.0.0-0 is damaged: it has no list of its "
        "files",
        "zip64-test-1.0.0-0.conda: the package zip64-test-1.0.0-0 is damaged: it has no list of its files",
        "zlib-1.2.11-h7b6447c_3.conda: the package zlib-1.2.11-h7b6447c_3 is damaged: 'lib/libz.so",
    };
    std::ranges::sort(refused);
    ASSERT_EQ(refused.size(), broken.size());
    for (std::size_t i = 0; i < broken.size(); ++i)
        EXPECT_TRUE(refused[i].starts_with(broken[i])) << refused[i];
}

TEST(LinkRealData, TheNumberOfThreadsChangesNoByte) {
    const auto files = test::fixtures("conda/channels/test-recipes", ".conda");
    if (files.empty()) GTEST_SKIP() << "the fixtures are not there";
    std::vector<PackageToLink> packages;
    std::vector<std::string> names;
    for (const auto& file : files) {
        auto package = package_of(file);
        if (std::ranges::find(names, package.record.name) != names.end()) continue;
        names.push_back(package.record.name);
        packages.push_back(std::move(package));
    }
    const TemporaryDirectory directory;
    std::string first;
    for (const unsigned jobs : {1U, 2U, 4U, 8U}) {
        const auto image = directory.path() / ("image" + std::to_string(jobs));
        const auto linked = link_into(image, packages, jobs);
        ASSERT_TRUE(linked) << to_string(linked.error());
        const auto digest = sha256_of_file(image);
        ASSERT_TRUE(digest);
        if (first.empty()) first = *digest;
        EXPECT_EQ(*digest, first) << jobs;
    }
}

TEST(LinkRealData, WhatAListDoesNotSayOfAPackageItSaysItself) {
    const auto files = test::fixtures("conda", ".conda");
    if (files.empty()) GTEST_SKIP() << "the fixtures are not there";
    std::size_t looked_at = 0;
    for (const auto& file : files) {
        auto listed = package_of(file);
        listed.record.of_list = true;
        listed.record.url = "https://x.org/c/linux-64/" + listed.record.file_name;
        listed.record.depends = {"corrected >=1"}; // as locks have them
        const auto infos = read_packages({listed}, 1);
        if (!infos) continue;
        const auto source = PackageArchive::open(file, "x")->info();
        ASSERT_TRUE(source);
        const auto own = parse_record(nlohmann::json::parse(source->at("index.json")));
        ASSERT_TRUE(own);
        const auto& record = infos->front().record;
        EXPECT_EQ(record.url, listed.record.url);
        EXPECT_EQ(record.depends, listed.record.depends);
        EXPECT_EQ(record.build_number, own->build_number) << file;
        EXPECT_EQ(record.timestamp, own->timestamp) << file;
        EXPECT_EQ(record.constrains, own->constrains) << file;
        EXPECT_EQ(record.license, own->license) << file;
        looked_at += own->timestamp > 0 ? 1 : 0;
    }
    EXPECT_GT(looked_at, 20U);
}

TEST(Link, APackageThatIsNoneIsNamed) {
    const TemporaryDirectory directory;
    const auto file = directory.write("a-1.0-0.conda", "this is no zip file");
    const auto linked = link_into(directory.path() / "image", {package_of(file)}, 1);
    ASSERT_FALSE(linked);
    EXPECT_TRUE(to_string(linked.error()).starts_with(file.string() + ": cannot read the package a-1.0-0: "))
        << to_string(linked.error());
    EXPECT_FALSE(fs::exists(directory.path() / "image"));
}

} // namespace
} // namespace containerize::conda
