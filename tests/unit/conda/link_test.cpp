// Real packages, linked into an image and unpacked by the standard tools.
#include "../good.h"
#include "../temporary.h"
#include "conda/archive.h"
#include "conda/link.h"
#include "conda/match_spec.h"
#include "conda/package_image.h"
#include "conda/prefix_replacement.h"
#include "data.h"
#include "util/digest.h"
#include "util/process.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace containerize::conda {
namespace {

using test::TemporaryDirectory;

/// Passes the content in pieces of `step` bytes.
Result<std::string> replaced(FileMode mode, std::string_view content, const std::string& placeholder,
                             const std::string& prefix, std::size_t step) {
    PrefixReplacement replacement(mode, placeholder, prefix, "lib/x.so");
    std::string result;
    for (; !content.empty(); content.remove_prefix(std::min(step, content.size()))) {
        auto part = replacement.take(content.substr(0, step));
        if (!part) return part;
        result += *part;
    }
    auto rest = replacement.finish();
    if (!rest) return rest;
    return result + *rest;
}

/// The result must not depend on the size of the pieces.
Result<std::string> replaced(FileMode mode, std::string_view content, const std::string& placeholder,
                             const std::string& prefix) {
    auto whole = replaced(mode, content, placeholder, prefix, content.size() + 1);
    for (const std::size_t step : {1U, 2U, 3U, 7U, 26U})
        EXPECT_EQ(replaced(mode, content, placeholder, prefix, step).value_or("refused"),
                  whole.value_or("refused"))
            << step;
    return whole;
}

std::string replace_in_text(std::string_view content, const std::string& placeholder,
                            const std::string& prefix) {
    return replaced(FileMode::text, content, placeholder, prefix).value_or("refused");
}

Result<std::string> replace_in_binary(std::string_view content, const std::string& placeholder,
                                      const std::string& prefix) {
    return replaced(FileMode::binary, content, placeholder, prefix);
}

TEST(PrefixReplacement, Text) {
    EXPECT_EQ(replace_in_text("a=/old/p\nb=/old/p/lib\n", "/old/p", "/new"), "a=/new\nb=/new/lib\n");
    EXPECT_EQ(replace_in_text("nothing", "/old/p", "/new"), "nothing");
    EXPECT_EQ(replace_in_text("#!/old/p/bin/python\nx\n", "/old/p", "/new"), "#!/new/bin/python\nx\n");
    EXPECT_EQ(replace_in_text("#!/old/p/bin/python -E\nx\n", "/old/p", "/new"), "#!/new/bin/python -E\nx\n");
    EXPECT_EQ(replace_in_text("#!/bin/sh\ncd /old/p\n", "/old/p", "/a b"), "#!/bin/sh\ncd /a b\n");
    EXPECT_EQ(replace_in_text("#!/usr/bin/env python\n/old/p", "/old/p", "/new"),
              "#!/usr/bin/env python\n/new");
    EXPECT_EQ(replace_in_text("#!/old/p/bin/python", "/old/p", "/new"), "#!/new/bin/python\n");
    for (const char* short_one : {"", "#", "#!", "#!\n", "/old", "\n/old/p"})
        EXPECT_EQ(replace_in_text(short_one, "/old/p", "/old/p"), short_one);
    EXPECT_EQ(replace_in_text("/old/old/p/old/p/p", "/old/p", "/new"), "/old/new/new/p");
    const auto endless = "#!/old/p" + std::string(100'000, 'x') + "/old/p";
    EXPECT_EQ(replaced(FileMode::text, endless, "/old/p", "/n", 4096).value_or(""),
              "#!/n" + std::string(100'000, 'x') + "/n")
        << "no line at all";
}

TEST(PrefixReplacement, KeepsLittle) {
    const std::string old = "/opt/" + std::string(250, 'p');
    const std::string prefix = "/new/" + std::string(250, 'q');
    constexpr std::size_t step = 1000;
    std::string content;
    std::string expected;
    for (std::size_t i = 0; i < 5000; ++i) {
        const std::string between(i % 97, i % 3 == 0 ? '\0' : 'a');
        content += old + "/lib" + between;
        expected += prefix + "/lib" + between;
    }
    for (const auto mode : {FileMode::text, FileMode::binary}) {
        PrefixReplacement replacement(mode, old, prefix, "x");
        std::string result;
        for (std::size_t taken = 0; taken < content.size();) {
            result += replacement.take(std::string_view(content).substr(taken, step)).value();
            taken = std::min(taken + step, content.size());
            ASSERT_GT(result.size() + old.size(), taken);
        }
        EXPECT_TRUE(result + replacement.finish().value() == expected);
    }
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
        const auto result = replace_in_binary(content, old, prefix);
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
    EXPECT_EQ(to_string(test::error_of(replace_in_binary(old + nul, old, old + "y"))),
              old + "y: the prefix is too long for this package: its binary file 'lib/x.so' has room for 25 "
                    "bytes, and the prefix has 26\nChoose a prefix of at most 25 bytes.");
    EXPECT_EQ(replace_in_binary("none", old, old + "y").value_or(""), "none") << "only where it is named";
}

Command shell(const std::string& text) {
    return {.argv = {"bash", "-c", text}};
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

/// A package that is not packed yet.
struct Package {
    PackageRecord record;
    OpenFile archive;
};

Package package_of(const fs::path& file) {
    Package package;
    const auto parts = parse_file_name(file.filename().native());
    EXPECT_TRUE(parts) << file;
    package.record.name = parts->name;
    package.record.version = parts->version;
    package.record.build = parts->build;
    package.record.file_name = file.filename();
    package.archive = OpenFile::open(file).value();
    return package;
}

/// With an image that exists as long as it is open.
Result<PackageToLink> packed(const Package& package, unsigned jobs = 1) {
    const TemporaryDirectory directory;
    const auto image = directory / "image";
    auto writer = TRY(image::Writer::create(image, {.jobs = jobs}));
    TRY(pack_package(package.archive, package.record.distribution(), writer));
    TRY(writer.finish());
    auto file = TRY(open_regular(image));
    auto reader = TRY(image::Reader::open(std::move(file), image));
    return PackageToLink{.record = package.record,
                         .image = std::move(reader),
                         .sha256 = {},
                         .origin = package.archive.path.string(),
                         .requested = {}};
}

Result<Linked> link_into(const fs::path& image, const std::vector<Package>& packages, unsigned jobs,
                         const std::string& prefix = "/data/env") {
    auto writer = TRY(image::Writer::create(image, {.jobs = jobs}));
    LinkOptions options;
    options.prefix = prefix;
    options.jobs = jobs;
    std::vector<PackageToLink> to_link;
    for (const auto& package : packages)
        to_link.push_back(TRY(packed(package, jobs)));
    auto infos = TRY(read_packages(to_link, jobs));
    auto linked = link_packages(to_link, std::move(infos), options, writer, {});
    if (!linked) return linked;
    TRY(writer.finish());
    return linked;
}

std::vector<fs::path> real_packages() {
    auto files = test::data_files("", ".conda");
    std::ranges::copy(test::data_files("", ".tar.bz2"), std::back_inserter(files));
    return files;
}

// Each package must give the same content as an extraction by bsdtar, except for prefixes and noarch paths.
TEST(LinkRealData, EveryPackageIsLinkedOrRefusedWithAReason) {
    std::size_t linked_packages = 0;
    std::vector<std::string> refused;
    for (const auto& file : real_packages()) {
        // One of two packages with a known defect; one is enough here.
        if (file.filename() == "zlib-1.2.11-h7b6447c_3.tar.bz2") continue;
        const TemporaryDirectory directory;
        const auto image = directory / "image";
        const auto linked = link_into(image, {package_of(file)}, 2);
        if (!linked) {
            refused.push_back(file.filename().string() + ": " + linked.error().what + ": " +
                              linked.error().why);
            continue;
        }
        ++linked_packages;
        const auto ours = directory / "ours";
        const auto theirs = directory / "theirs";
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
            continue; // bsdtar rejects an empty tar archive
        const auto mine = tree_of(ours);
        for (const auto& [path, content] : tree_of(theirs)) {
            const bool moved = path.starts_with("site-packages/") || path.starts_with("python-scripts/");
            const auto found = mine.find(path);
            if (found == mine.end() || moved) continue;
            const auto source = test::good(PackageArchive::open(OpenFile::open(file).value(), "x")->info());
            const auto list = source.contains("paths.json")   ? source.at("paths.json")
                              : source.contains("has_prefix") ? source.at("has_prefix")
                                                              : "";
            if (!list.contains("placeholder") && !list.contains("/opt/anaconda")) {
                EXPECT_EQ(found->second, content) << file << " " << path;
            }
        }
        EXPECT_TRUE(mine.contains("conda-meta/history"));
    }
    EXPECT_GT(linked_packages, 90U);
    // These lack files that they list, or have no list, so nobody could install them.
    const std::vector<std::string> broken = {
        "dotslash-test-1.0.0-0.conda: the package dotslash-test-1.0.0-0 is damaged: it has no file list",
        "flask-0.11.1-py_0.tar.bz2: the package flask-0.11.1-py_0 is damaged: 'site-packages/",
        "info-only-1.0.0-0.conda: the package info-only-1.0.0-0 is damaged: it has no file list",
        "spiffy-test-app-0.5-pyh6afbcc8_0.tar.bz2: the package spiffy-test-app-0.5-pyh6afbcc8_0 is damaged",
        "symlink-test-1.0.0-0.conda: the package symlink-test-1.0.0-0 is damaged: it has no file list",
        "zip64-test-1.0.0-0.conda: the package zip64-test-1.0.0-0 is damaged: it has no file list",
        "zlib-1.2.11-h7b6447c_3.conda: the package zlib-1.2.11-h7b6447c_3 is damaged: 'lib/libz.so",
    };
    std::ranges::sort(refused);
    ASSERT_EQ(refused.size(), broken.size());
    for (std::size_t i = 0; i < broken.size(); ++i)
        EXPECT_TRUE(refused[i].starts_with(broken[i])) << refused[i];
}

TEST(LinkRealData, TheNumberOfThreadsChangesNoByte) {
    std::vector<Package> packages;
    std::vector<std::string> names;
    for (const auto& file : test::data_files("channels/test-recipes", ".conda")) {
        auto package = package_of(file);
        if (std::ranges::find(names, package.record.name) != names.end()) continue;
        names.push_back(package.record.name);
        packages.push_back(std::move(package));
    }
    const TemporaryDirectory directory;
    std::string first;
    for (const unsigned jobs : {1U, 2U, 4U, 8U}) {
        const auto image = directory / ("image" + std::to_string(jobs));
        const auto linked = link_into(image, packages, jobs);
        ASSERT_TRUE(linked) << to_string(linked.error());
        const auto digest = test::good(sha256_of_file(image));
        if (first.empty()) first = digest;
        EXPECT_EQ(digest, first) << jobs;
    }
}

TEST(LinkRealData, WhatAListDoesNotSayOfAPackageItSaysItself) {
    std::size_t looked_at = 0;
    for (const auto& file : test::data_files("", ".conda")) {
        auto listed = package_of(file);
        listed.record.of_list = true;
        listed.record.url = "https://x.org/c/linux-64/" + listed.record.file_name;
        listed.record.depends = {"corrected >=1"}; // as in a lock
        const auto image = packed(listed);
        if (!image) continue;
        const auto infos = test::good(read_packages({*image}, 1));
        const auto source = test::good(PackageArchive::open(OpenFile::open(file).value(), "x")->info());
        const auto own = test::good(parse_record(nlohmann::json::parse(source.at("index.json"))));
        const auto& record = infos.front().record;
        EXPECT_EQ(record.url, listed.record.url);
        EXPECT_EQ(record.depends, listed.record.depends);
        EXPECT_EQ(record.build_number, own.build_number) << file;
        EXPECT_EQ(record.timestamp, own.timestamp) << file;
        EXPECT_EQ(record.constrains, own.constrains) << file;
        EXPECT_EQ(record.license, own.license) << file;
        looked_at += own.timestamp > 0 ? 1 : 0;
    }
    EXPECT_GT(looked_at, 20U);
}

/// The content of a package: file contents and link targets by path.
struct Content {
    std::map<std::string, std::string> files = {}, links = {}, placeholders = {};
    std::map<std::string, std::string> hard_links = {}; ///< first name of each file
    std::string mode = "text";                          ///< of all files with a placeholder
};

fs::path write_package(const TemporaryDirectory& directory, const std::string& name, const Content& content) {
    const auto tree = directory / (name + ".tree");
    nlohmann::json paths = nlohmann::json::array();
    for (const auto& [path, text] : content.files) {
        directory.write(name + ".tree/" + path, text);
        nlohmann::json entry = {{"_path", path},
                                {"path_type", "hardlink"},
                                {"sha256", sha256(text)},
                                {"size_in_bytes", text.size()}};
        if (const auto found = content.placeholders.find(path); found != content.placeholders.end()) {
            entry["prefix_placeholder"] = found->second;
            entry["file_mode"] = content.mode;
        }
        paths.push_back(std::move(entry));
    }
    for (const auto& [path, target] : content.links) {
        fs::create_directories((tree / path).parent_path());
        fs::create_symlink(target, tree / path);
        paths.push_back({{"_path", path}, {"path_type", "softlink"}});
    }
    for (const auto& [path, original] : content.hard_links) {
        fs::create_directories((tree / path).parent_path());
        fs::create_hard_link(tree / original, tree / path);
        auto entry = *std::ranges::find_if(paths, [&](const auto& one) { return one["_path"] == original; });
        entry["_path"] = path;
        paths.push_back(std::move(entry));
    }
    directory.write(name + ".tree/info/index.json",
                    nlohmann::json{{"name", name}, {"version", "1"}, {"build", "0"}}.dump());
    directory.write(name + ".tree/info/paths.json",
                    nlohmann::json{{"paths_version", 1}, {"paths", paths}}.dump());
    auto file = directory / (name + "-1-0.tar.bz2");
    const auto made = run(shell("cd '" + tree.string() + "' && bsdtar -cjf '" + file.string() + "' *"));
    EXPECT_TRUE(made && made->ok());
    return file;
}

class LinkMade : public testing::Test {
protected:
    /// The installed files without conda's records, or the error.
    std::map<std::string, std::string> installed(const std::vector<Content>& contents,
                                                 const std::string& prefix = "/data/env") {
        const TemporaryDirectory directory;
        std::vector<Package> packages;
        for (const auto& content : contents)
            packages.push_back(package_of(
                write_package(directory, std::string(1, static_cast<char>('a' + packages.size())), content)));
        const auto image = directory / "image";
        linked = link_into(image, packages, 2, prefix);
        if (!linked) return {{"error", to_string(linked.error())}};
        const auto tree = directory / "unpacked";
        const auto unpacked =
            run(shell("unsquashfs -q -n -d '" + tree.string() + "' '" + image.string() + "'"));
        EXPECT_TRUE(unpacked && unpacked->ok());
        std::map<std::string, std::string> found;
        for (const auto& entry : fs::recursive_directory_iterator(tree)) {
            const auto path = entry.path().lexically_relative(tree).string();
            if (path == "conda-meta/history" || path.ends_with("-1-0.json")) continue;
            if (entry.is_symlink())
                found[path] = "-> " + fs::read_symlink(entry.path()).string();
            else if (entry.is_regular_file())
                found[path] = read_file(entry.path()).value_or("unreadable");
        }
        return found;
    }
    std::string refused(const std::vector<Content>& contents) {
        auto found = installed(contents);
        return found.contains("error") ? found["error"] : "no error";
    }
    Result<Linked> linked;
};

using Installed = std::map<std::string, std::string>;

TEST_F(LinkMade, LinksThatStayInThePrefix) {
    const Content all = {.files = {{"b/y", "y"}, {"x", "x"}},
                         .links = {{"c", "b/../x"},
                                   {"b/up", "../x"},
                                   {"abs", "/data/env/x"},
                                   {"top", "/data/env"},
                                   {"odd", "/data/env//b/./../x"},
                                   {"nowhere", "not/there"},
                                   {"loop", "loop"},
                                   {"chain", "nested/d/../../x"},
                                   {"nested/d", "../b"},
                                   {"deep/er", "../b/../b/y"}}};
    // nested/d is a link to b. From there, ".." is the prefix, and another ".." leads out of it.
    EXPECT_TRUE(
        refused({all}).contains("'chain' is a link that points outside the prefix, to 'nested/d/../../x'"));
    auto good = all;
    good.links["chain"] = "nested/d/../x";
    Installed expected = good.files;
    for (const auto& [path, target] : good.links)
        expected[path] = "-> " + target;
    EXPECT_EQ(installed({good}), expected);
}

TEST_F(LinkMade, LinksThatLeadOut) {
    for (const char* target : {"/etc/passwd", "..", "../x", "b/../../x", "/data/env/../x",
                               "/data/environment", "/data", "here/../x"}) {
        Content content = {.files = {{"b/y", "y"}}, .links = {{"l", target}, {"here", "."}}};
        EXPECT_TRUE(refused({content}).contains("'l' is a link that points outside the prefix, to '" +
                                                std::string(target) + "'"))
            << target;
    }
    // Through a link of another package.
    const Content first = {.links = {{"d/here", ".."}}};
    const Content second = {.links = {{"l", "d/here/../x"}}};
    EXPECT_TRUE(refused({first, second}).contains("the package b-1-0 is unsafe: 'l' is a link"));
}

TEST_F(LinkMade, FilesBelowADirectoryThatIsALinkElsewhere) {
    const Content link = {.files = {{"lib/x", "x"}}, .links = {{"lib64", "lib"}}};
    const Content below = {.files = {{"lib64/y", "y"}, {"lib64/z/y", "z"}}};
    const Installed expected = {{"lib/x", "x"}, {"lib/y", "y"}, {"lib/z/y", "z"}, {"lib64", "-> lib"}};
    EXPECT_EQ(installed({link, below}), expected);
    EXPECT_EQ(installed({below, link}), expected);
    const Content out = {.links = {{"lib64", "/etc"}}};
    EXPECT_TRUE(refused({out, below}).contains("is behind a link that points outside the prefix"));
    const Content file = {.files = {{"lib64", "a file"}}};
    EXPECT_TRUE(refused({file, below}).contains("'lib64' is a file in a-1-0 and a directory in b-1-0"));
}

TEST_F(LinkMade, CondaMetaOfPackages) {
    const Content content = {.files = {{"conda-meta/frozen", "{}"},
                                       {"conda-meta/notes/x.json", "n"},
                                       {"conda-meta/history", "==> spoofed <=="},
                                       {"conda-meta/other-1-0.json", "{\"name\": \"other\"}"}}};
    EXPECT_EQ(installed({content}),
              (Installed{{"conda-meta/frozen", "{}"}, {"conda-meta/notes/x.json", "n"}}));
    ASSERT_TRUE(linked);
    EXPECT_EQ(linked->warnings,
              (std::vector<std::string>{
                  "a-1-0 contains 'conda-meta/history', which is reserved for conda: the file is left out.",
                  "a-1-0 contains 'conda-meta/other-1-0.json', which is reserved for conda: the file is left "
                  "out."}));
    const Content file = {.files = {{"conda-meta", "a file"}}};
    EXPECT_TRUE(refused({file}).contains("it contains a file 'conda-meta'"));
}

// The pieces stay small, however large a file is and however much it grows.
TEST_F(LinkMade, FilesThatNameThePrefixComeInPieces) {
    const std::string old = "/opt/placeholder";
    std::string text;
    while (text.size() < (std::size_t{12} << 20U))
        text += old + "/lib and something else\n";
    const TemporaryDirectory directory;
    const Content content = {.files = {{"big", text}}, .placeholders = {{"big", old}}};
    const auto package = test::good(packed(package_of(write_package(directory, "a", content))));
    const auto infos = test::good(read_packages({package}, 1));
    const auto& entry = infos.front().paths.front();
    const auto entries = test::good(read_package_entries(*package.image));
    for (const std::string& prefix : {std::string("/data"), "/" + std::string(200, 'd')}) {
        std::string got;
        const auto digest = test::good(
            read_with_prefix(*package.image, entries.at("big"), entry, prefix, [&](std::string_view piece) {
                EXPECT_LE(piece.size(), std::size_t{3} << 20U);
                got += piece;
                return Status();
            }));
        EXPECT_TRUE(got == replaced(FileMode::text, text, old, prefix, text.size()).value());
        EXPECT_EQ(digest, sha256(got));
    }
}

TEST_F(LinkMade, HardLinksAreNamesOfOneFile) {
    const std::string old = "/opt/placeholder";
    const Content content = {
        .files = {{"a/one", std::string(300'000, 'x')}, {"script", "#!" + old + "/bin/x\n"}},
        .placeholders = {{"script", old}},
        .hard_links = {{"b/two", "a/one"}, {"three", "a/one"}, {"tool", "script"}}};
    const std::string script = "#!/data/env/bin/x\n";
    Installed expected = {{"script", script}, {"tool", script}};
    for (const char* name : {"a/one", "b/two", "three"})
        expected[name] = content.files.at("a/one");
    EXPECT_EQ(installed({content}), expected);
    EXPECT_EQ(linked->files, 4U) << "two files, a record and the history";
    // They stay when another package has the place of the first name.
    const Content second = {.files = {{"a/one", "other"}, {"script", "other"}}};
    expected["a/one"] = expected["script"] = "other";
    EXPECT_EQ(installed({content, second}), expected);
    EXPECT_EQ(linked->warnings,
              std::vector<std::string>{"a-1-0 and b-1-0 both contain 'a/one' and 1 more files. The file of "
                                       "the second package is kept."});
}

TEST_F(LinkMade, PrefixesInBinaries) {
    const std::string old = "/opt/placeholder";
    const Content content = {.files = {{"lib", "x" + old + "/lib" + std::string(1, '\0') + "y"}},
                             .placeholders = {{"lib", old}},
                             .mode = "binary"};
    const std::string installed_lib =
        "x/data/env/lib" + std::string(old.size() - 9, '\0') + std::string(1, '\0') + "y";
    EXPECT_EQ(installed({content}), (Installed{{"lib", installed_lib}}));
    EXPECT_EQ(installed({content}, "/data/env/deep/in/a/tree")["error"],
              "/data/env/deep/in/a/tree: the prefix is too long for this package (a-1-0): its binary file "
              "'lib' has room for 16 bytes, and the prefix has 24\nChoose a prefix of at most 16 bytes.");
}

TEST_F(LinkMade, FilesBelowALinkOfTheirOwnPackage) {
    const Content content = {.files = {{"lib/x", "x"}}, .links = {{"lib64", "lib"}}};
    const TemporaryDirectory directory;
    const auto file = write_package(directory, "a", content);
    // bsdtar would not put it there.
    const auto added =
        run(shell("cd '" + directory.path().string() +
                  "' && mkdir -p more/lib64 && echo y > more/lib64/y && "
                  "python3 - a-1-0.tar.bz2 more/lib64/y <<'END'\n"
                  "import io, json, sys, tarfile\n"
                  "old = tarfile.open(sys.argv[1])\n"
                  "members = [(m, old.extractfile(m).read() if m.isfile() else None) for m in old]\n"
                  "new = tarfile.open(sys.argv[1], 'w:bz2')\n"
                  "for m, content in members:\n"
                  "    if m.name == 'info/paths.json':\n"
                  "        paths = json.loads(content)\n"
                  "        paths['paths'].append({'_path': 'lib64/y', 'path_type': 'hardlink'})\n"
                  "        content = json.dumps(paths).encode()\n"
                  "        m.size = len(content)\n"
                  "    new.addfile(m, io.BytesIO(content) if content is not None else None)\n"
                  "new.add(sys.argv[2], 'lib64/y')\n"
                  "new.close()\n"
                  "END"));
    ASSERT_TRUE(added && added->ok()) << added->output;
    const auto refused = test::error_of(packed(package_of(file)));
    EXPECT_EQ(refused.why, "'lib64/y' is below 'lib64', which is not a directory");
}

TEST(Link, APackageThatIsNoneIsNamed) {
    const TemporaryDirectory directory;
    const auto file = directory.write("a-1.0-0.conda", "this is no zip file");
    const auto refused = test::error_of(link_into(directory / "image", {package_of(file)}, 1));
    EXPECT_TRUE(to_string(refused).starts_with(file.string() + ": cannot read the package a-1.0-0: "))
        << to_string(refused);
    EXPECT_FALSE(fs::exists(directory / "image"));
}

/// The tar header of a file.
std::string tar_header(std::string_view name, std::size_t size) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    header.replace(100, 7, "0000644");
    header.replace(124, 11, fmt::format("{:011o}", size));
    header.replace(148, 8, "        ");
    header[156] = '0';
    header.replace(257, 8, std::string_view("ustar\00000", 8));
    unsigned sum = 0;
    for (const char c : header)
        sum += static_cast<unsigned char>(c);
    header.replace(148, 7, fmt::format("{:06o}", sum) + '\0');
    return header;
}

/// The error for a package that is this tar archive.
std::string complaint(std::string_view tar) {
    const TemporaryDirectory directory;
    directory.write("tar", tar);
    const auto file = directory / "a-1-0.tar.bz2";
    const auto packed =
        run(shell("bzip2 -c '" + (directory / "tar").string() + "' > '" + file.string() + "'"));
    EXPECT_TRUE(packed && packed->ok());
    const auto info = PackageArchive::open(OpenFile::open(file).value(), "a")->info();
    return info ? "none" : info.error().what + ": " + info.error().why;
}

TEST(PackageArchive, HeadersThatPromiseMoreThanComes) {
    constexpr std::size_t large = 100U << 20U;
    EXPECT_EQ(complaint(tar_header("info/paths.json", large) + "{}"),
              "the package a is damaged: Truncated tar archive");
    const auto index = tar_header("info/index.json", 1U << 20U) + std::string(1U << 20U, ' ');
    EXPECT_EQ(complaint(index + tar_header("info/paths.json", 128U << 20U)),
              "the package a is unsafe: its metadata has 135266304 bytes, including info/paths.json");
}

} // namespace
} // namespace containerize::conda
