#include "../good.h"
#include "../gpu/trees.h"
#include "elf/library_cache.h"
#include "image/tree_view.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace containerize::elf {
namespace {

using image::DirectoryView;
using test::library_place;
using test::Tree;
using Texts = std::vector<std::string>;

class LibraryCache : public testing::TestWithParam<const char*> {};

TEST_P(LibraryCache, AsLdconfigWritesIt) {
    const Tree tree;
    tree.make_library(std::string(library_place) + "libone.so.1.2", "libone.so.1");
    tree.make_library("usr/lib64/libtwo.so.2", "libtwo.so.2");
    tree.make_cache(GetParam());
    const DirectoryView view(tree.path());
    const auto bytes = view.text("/etc/ld.so.cache");
    const auto parsed = test::good(parse_library_cache(bytes));
    Texts paths;
    for (const auto& library : parsed)
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

// Flags say which architecture a library is for: here 64-bit libraries of x86-64 and of aarch64. The file
// itself says it, too, so that a cache is read the same on any machine.
TEST(LibraryCache, HasTheLibrariesOfAllArchitectures) {
    constexpr std::uint32_t count = 2;
    std::string bytes = "glibc-ld.so.cache1.1";
    bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
    bytes.resize(48);
    for (const std::uint32_t flags : {0x0303U, 0x0a03U})
        for (const std::uint32_t field : {flags, 96U, flags == 0x0303U ? 101U : 106U, 0U, 0U, 0U})
            bytes.append(reinterpret_cast<const char*>(&field), sizeof field);
    const auto libraries = test::good(parse_library_cache(bytes + std::string("libx\0/x86\0/arm\0", 15)));
    ASSERT_EQ(libraries.size(), 2U);
    EXPECT_EQ(libraries.front().path, "/x86");
    EXPECT_EQ(libraries.back().path, "/arm");
}

TEST(LibraryCache, LibrariesForCertainProcessorsAreLeftOut) {
    constexpr std::uint32_t count = 2;
    std::string bytes = "glibc-ld.so.cache1.1";
    bytes.append(reinterpret_cast<const char*>(&count), sizeof count);
    bytes.resize(48);
    for (const std::uint32_t processors : {0U, 2U})
        for (const std::uint32_t field : {0U, 96U, 101U + processors, 0U, 0U, processors})
            bytes.append(reinterpret_cast<const char*>(&field), sizeof field);
    const auto libraries = test::good(parse_library_cache(bytes + std::string("libx\0/all\0", 10)));
    ASSERT_EQ(libraries.size(), 1U);
    EXPECT_EQ(libraries.front().path, "/all");
}

} // namespace
} // namespace containerize::elf
