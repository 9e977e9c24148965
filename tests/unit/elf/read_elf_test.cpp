#include "../good.h"
#include "../gpu/trees.h"
#include "core/filesystem.h"
#include "elf/library_cache.h"
#include "elf/read_elf.h"

#include <algorithm>
#include <cstring>

#include <elf.h>
#include <gtest/gtest.h>

namespace containerize::elf {
namespace {

using image::DirectoryView;
using test::TemporaryDirectory;
using test::Tree;
using Texts = std::vector<std::string>;

TEST(Elf, SaysWhatTheDynamicLinkerWouldWant) {
    const Tree tree;
    tree.make_library("a.so", "liba.so.1",
                      {{"libc.so.6", "GLIBC_2.34"}, {"libstdc++.so.6", "GLIBCXX_3.4.30"}});
    tree.make_versions("b.so", "libb.so.2", {"B_1", "B_2"});
    const DirectoryView view(tree.path());
    const auto elf = test::good(read_elf(view, "/a.so"));
    EXPECT_EQ(elf.machine, this_machine);
    EXPECT_EQ(elf.soname, "liba.so.1");
    EXPECT_EQ(elf.needed, (Texts{"libc.so.6", "libstdc++.so.6"}));
    ASSERT_EQ(elf.needed_versions.size(), 2U);
    for (const auto& [library, name] :
         {std::pair("libc.so.6", "GLIBC_2.34"), {"libstdc++.so.6", "GLIBCXX_3.4.30"}})
        EXPECT_TRUE(std::ranges::any_of(elf.needed_versions, [&](const auto& one) {
            return one.library == library && one.name == name;
        })) << name;
    const auto versions = test::good(read_elf(view, "/b.so"));
    EXPECT_EQ(versions.defined_versions, (Texts{"libb.so.2", "B_1", "B_2"}));
}

TEST(Elf, ReadsThisMachinesOwnLibrary) {
    const DirectoryView view("/");
    const auto cached = parse_library_cache(view.text("/etc/ld.so.cache")).value();
    const auto found = std::ranges::find(cached, "libc.so.6", &CachedLibrary::name);
    ASSERT_NE(found, cached.end());
    const auto elf = test::good(read_elf(view, found->path));
    EXPECT_NE(std::ranges::find(elf.defined_versions, "GLIBC_2.17"), elf.defined_versions.end());
}

// Truncated or changed anywhere, a file gives an error or a result.
TEST(Elf, SurvivesEveryTruncationAndChange) {
    const Tree tree;
    tree.make_library("a.so", "liba.so.1");
    const auto whole = test::good(read_file(tree / "a.so"));
    const DirectoryView view(tree.path());
    std::size_t errors = 0;
    for (std::size_t size = 0; size < whole.size(); size += 61) {
        tree.write("cut.so", whole.substr(0, size));
        errors += read_elf(view, "/cut.so") ? 0 : 1;
    }
    EXPECT_GT(errors, 0U);
    for (std::size_t at = 0; at < std::min<std::size_t>(whole.size(), 4096); at += 7) {
        auto changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ 0xff);
        tree.write("changed.so", changed);
        if (const auto elf = read_elf(view, "/changed.so")) {
            EXPECT_LE(elf->needed_versions.size(), 4096U);
        }
    }
    tree.write("text.so", "#!/bin/sh\n");
    EXPECT_EQ(test::error_of(read_elf(view, "/text.so")).why, "it is not an ELF program or library");
}

TEST(Elf, ProgramsTellWhatTheyNeed) {
    const DirectoryView host("/");
    const auto elf = test::good(read_elf(host, "/bin/sh"));
    EXPECT_TRUE(fs::exists(elf.interpreter)) << elf.interpreter;
    EXPECT_NE(std::ranges::find(elf.needed, "libc.so.6"), elf.needed.end());
    EXPECT_FALSE(read_elf(host, "/etc/passwd"));
}

template<class Value>
std::string bytes_of(const Value& value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
}

TEST(Elf, AFileThatNamesTheSameLongTextAgainAndAgainTakesLittleMemory) {
    constexpr std::size_t entries = 100'000, text_size = 1'000'000;
    Elf64_Ehdr header{};
    std::memcpy(&header, read_file("/bin/true")->data(), sizeof header);
    header.e_phoff = sizeof header;
    header.e_phnum = 2;
    const std::uint64_t dynamic = sizeof header + 2 * sizeof(Elf64_Phdr), size = entries * sizeof(Elf64_Dyn);
    const Elf64_Phdr load{.p_type = PT_LOAD,
                          .p_flags = 0,
                          .p_offset = 0,
                          .p_vaddr = 0,
                          .p_paddr = 0,
                          .p_filesz = dynamic + size + text_size,
                          .p_memsz = 0,
                          .p_align = 0};
    const Elf64_Phdr table{.p_type = PT_DYNAMIC,
                           .p_flags = 0,
                           .p_offset = dynamic,
                           .p_vaddr = 0,
                           .p_paddr = 0,
                           .p_filesz = size,
                           .p_memsz = 0,
                           .p_align = 0};
    auto file = bytes_of(header) + bytes_of(load) + bytes_of(table) +
                bytes_of(Elf64_Dyn{.d_tag = DT_STRTAB, .d_un = {.d_val = dynamic + size}}) +
                bytes_of(Elf64_Dyn{.d_tag = DT_STRSZ, .d_un = {.d_val = text_size}});
    const auto needed = bytes_of(Elf64_Dyn{.d_tag = DT_NEEDED, .d_un = {.d_val = 0}});
    for (std::size_t i = 2; i < entries; ++i)
        file += needed;
    file.append(text_size, 'x');
    const TemporaryDirectory directory;
    const DirectoryView view(directory.path());
    directory.write("program", file);
    const auto elf = test::good(read_elf(view, "/program"));
    std::size_t total = 0;
    for (const auto& library : elf.needed)
        total += library.size();
    EXPECT_GT(total, 0U);
    EXPECT_LE(total, 16U << 20U);

    header.e_phnum = 65;
    directory.write("program", bytes_of(header) + std::string(65 * sizeof load, '\0'));
    EXPECT_FALSE(read_elf(view, "/program"));
}

TEST(Elf, DamagedFilesAreSurvived) {
    const TemporaryDirectory directory;
    const DirectoryView view(directory.path());
    const auto whole = *read_file("/bin/true");
    constexpr std::size_t identification = 4; // the magic number of ELF files
    constexpr std::size_t header = 64;
    for (std::size_t at = 0; at < 1024; at += 3) {
        auto damaged = whole;
        damaged[at] = static_cast<char>(~damaged[at]);
        directory.write("damaged", damaged);
        const auto changed = read_elf(view, "/damaged");
        EXPECT_TRUE(at >= identification || !changed) << at;
        EXPECT_TRUE(!changed || changed->needed.size() < 1000) << at;
        directory.write("damaged", whole.substr(0, at * 20));
        const auto cut = read_elf(view, "/damaged");
        EXPECT_TRUE(at * 20 >= header || !cut) << at;
    }
}

} // namespace
} // namespace containerize::elf
