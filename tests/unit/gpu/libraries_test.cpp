#include "gpu/c_library.h"
#include "gpu/elf.h"
#include "gpu/libraries.h"
#include "trees.h"

#include <algorithm>
#include <fstream>

#include <elf.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

namespace containerize::gpu {
namespace {

using test::library_place;
using test::Tree;
using Texts = std::vector<std::string>;

TEST(Elf, SaysWhatTheDynamicLinkerWouldWant) {
    const Tree tree;
    tree.make_library("a.so", "liba.so.1",
                      {{"libc.so.6", "GLIBC_2.34"}, {"libstdc++.so.6", "GLIBCXX_3.4.30"}});
    tree.make_versions("b.so", "libb.so.2", {"B_1", "B_2"});
    const DirectoryView view(tree.path());
    const auto elf = read_elf(view, "/a.so");
    ASSERT_TRUE(elf) << to_string(elf.error());
    EXPECT_EQ(elf->machine, EM_X86_64);
    EXPECT_EQ(elf->soname, "liba.so.1");
    EXPECT_EQ(elf->needed, (Texts{"libc.so.6", "libstdc++.so.6"}));
    ASSERT_EQ(elf->needed_versions.size(), 2U);
    for (const auto& [library, name] :
         {std::pair("libc.so.6", "GLIBC_2.34"), {"libstdc++.so.6", "GLIBCXX_3.4.30"}})
        EXPECT_TRUE(std::ranges::any_of(elf->needed_versions, [&](const auto& one) {
            return one.library == library && one.name == name;
        })) << name;
    const auto versions = read_elf(view, "/b.so");
    ASSERT_TRUE(versions);
    EXPECT_EQ(versions->defined_versions, (Texts{"libb.so.2", "B_1", "B_2"}));
}

TEST(Elf, ReadsThisMachinesOwnLibrary) {
    const DirectoryView view("/");
    const auto path = Libraries(view).find("libc.so.6", 0);
    ASSERT_TRUE(path);
    const auto elf = read_elf(view, *path);
    ASSERT_TRUE(elf) << to_string(elf.error());
    EXPECT_NE(std::ranges::find(elf->defined_versions, "GLIBC_2.17"), elf->defined_versions.end());
}

// Truncated or changed anywhere, a file gives an error or a result.
TEST(Elf, SurvivesEveryTruncationAndChange) {
    const Tree tree;
    tree.make_library("a.so", "liba.so.1");
    const auto whole = read_file(tree.path() / "a.so");
    ASSERT_TRUE(whole);
    const DirectoryView view(tree.path());
    std::size_t errors = 0;
    for (std::size_t size = 0; size < whole->size(); size += 61) {
        tree.write("cut.so", whole->substr(0, size));
        errors += read_elf(view, "/cut.so") ? 0 : 1;
    }
    EXPECT_GT(errors, 0U);
    for (std::size_t at = 0; at < std::min<std::size_t>(whole->size(), 4096); at += 7) {
        auto changed = *whole;
        changed[at] = static_cast<char>(changed[at] ^ 0xff);
        tree.write("changed.so", changed);
        if (const auto elf = read_elf(view, "/changed.so")) {
            EXPECT_LE(elf->needed_versions.size(), 4096U);
        }
    }
    tree.write("text.so", "#!/bin/sh\n");
    const auto text = read_elf(view, "/text.so");
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().why, "it is not an ELF program or library");
}

TEST(SystemLibraries, StayTheImagesOwn) {
    for (const char* name :
         {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libc-2.31.so",
          "ld-linux-x86-64.so.2", "libstdc++.so.6", "libgcc_s.so.1", "libnss_files.so.2"})
        EXPECT_TRUE(is_system_library(name)) << name;
    for (const char* name : {"libcuda.so.1", "libcap.so.2", "libmd.so.0", "libdrm.so.2", "libcuda-12.so"})
        EXPECT_FALSE(is_system_library(name)) << name;
}

class LibraryCache : public testing::TestWithParam<const char*> {};

TEST_P(LibraryCache, AsLdconfigWritesIt) {
    const Tree tree;
    tree.make_library(std::string(library_place) + "libone.so.1.2", "libone.so.1");
    tree.make_library("usr/lib64/libtwo.so.2", "libtwo.so.2");
    tree.make_cache(GetParam());
    const DirectoryView view(tree.path());
    const auto bytes = view.text("/etc/ld.so.cache");
    const auto parsed = parse_library_cache(bytes);
    ASSERT_TRUE(parsed);
    Texts paths;
    for (const auto& library : *parsed)
        paths.push_back(library.name + " " + library.path);
    std::ranges::sort(paths);
    EXPECT_EQ(paths, (Texts{"libone.so.1 /usr/lib/x86_64-linux-gnu/libone.so.1",
                            "libtwo.so.2 /usr/lib64/libtwo.so.2"}));
    std::size_t refused = 0;
    for (std::size_t size = 0; size < bytes.size(); ++size)
        refused += parse_library_cache(std::string_view(bytes).substr(0, size)) ? 0 : 1;
    EXPECT_GT(refused, bytes.size() / 2);
}

INSTANTIATE_TEST_SUITE_P(Formats, LibraryCache, testing::Values("new", "compat"));

TEST(LibraryCache, OfMoreEntriesThanBytesIsNone) {
    std::string bytes = "glibc-ld.so.cache1.1";
    bytes += "\xff\xff\xff\xff";
    bytes.resize(4096);
    EXPECT_FALSE(parse_library_cache(bytes));
    EXPECT_FALSE(parse_library_cache(""));
}

TEST(LibraryCache, WhoseStringsAreAllTheSameLongOneIsNone) {
    constexpr std::uint32_t count = 1000;
    std::string bytes = "glibc-ld.so.cache1.1";
    bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
    bytes.resize(48);
    for (std::uint32_t i = 0; i < count; ++i)
        for (const std::uint32_t field : {0U, 48U + 24U * count, 48U + 24U * count, 0U, 0U, 0U})
            bytes.append(reinterpret_cast<const char*>(&field), sizeof field);
    auto small = bytes + std::string("libx.so.1\0", 10);
    EXPECT_TRUE(parse_library_cache(small));
    bytes += std::string(100'000, 'x') + '\0';
    EXPECT_FALSE(parse_library_cache(bytes));
}

TEST(Libraries, AreFoundWithoutACacheAndForTheRightMachine) {
    const Tree tree;
    tree.make_library(std::string(library_place) + "libone.so.1", "libone.so.1");
    tree.write("usr/lib64/libone.so.1", "INPUT(other)"); // found first, but it is no library
    tree.make_library("opt/x/libmore.so.1", "libmore.so.1");
    const DirectoryView view(tree.path());
    const Libraries libraries(view, {"/opt/x"});
    EXPECT_EQ(libraries.find("libone.so.1", EM_X86_64), "/usr/lib/x86_64-linux-gnu/libone.so.1");
    EXPECT_EQ(libraries.find("libone.so.1", EM_AARCH64), std::nullopt);
    EXPECT_EQ(libraries.find("libmore.so.1", 0), "/opt/x/libmore.so.1");
    EXPECT_EQ(libraries.find("libnone.so.1", 0), std::nullopt);
}

TEST(GlibcVersion, IsWhatTheLibrarySaysOfItself) {
    const test::Root root;
    const DirectoryView view(root.path());
    const std::string library = std::string(library_place) + "libc.so.6";
    EXPECT_EQ(glibc_version(view), "") << "no C library";
    root.make_libc({"GLIBC_2.17"});
    EXPECT_EQ(glibc_version(view), "") << "another one";
    std::ofstream(root.path() / library, std::ios::app)
        << "x GNU C Library (Debian GLIBC 2.41-12) stable release version 2.41.\nCopyright";
    EXPECT_EQ(glibc_version(view), "2.41");
    EXPECT_EQ(glibc_version(DirectoryView("/")), gnu_get_libc_version());
}

} // namespace
} // namespace containerize::gpu
