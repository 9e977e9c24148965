#include "elf/read_elf.h"
#include "gpu/libraries.h"
#include "trees.h"

#include <cstddef>
#include <fstream>

#include <elf.h>
#include <gnu/libc-version.h>
#include <gtest/gtest.h>

namespace containerize::gpu {
namespace {

using test::library_place;
using test::Tree;
using Texts = std::vector<std::string>;

TEST(SystemLibraries, StayTheImagesOwn) {
    for (const char* name :
         {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libc-2.31.so",
          "ld-linux-x86-64.so.2", "libstdc++.so.6", "libgcc_s.so.1", "libnss_files.so.2"})
        EXPECT_TRUE(is_system_library(name)) << name;
    for (const char* name : {"libcuda.so.1", "libcap.so.2", "libmd.so.0", "libdrm.so.2", "libcuda-12.so"})
        EXPECT_FALSE(is_system_library(name)) << name;
}

TEST(Libraries, AreFoundWithoutACacheAndForTheRightMachine) {
    const Tree tree;
    tree.make_library(std::string(library_place) + "libone.so.1", "libone.so.1");
    tree.write("usr/lib64/libone.so.1", "INPUT(other)"); // found first, but it is no library
    tree.make_library("opt/x/libmore.so.1", "libmore.so.1");
    const DirectoryView view(tree.path());
    const Libraries libraries(view, {"/opt/x"});
    EXPECT_EQ(libraries.find("libone.so.1", elf::this_machine), "/usr/lib/x86_64-linux-gnu/libone.so.1");
    EXPECT_EQ(libraries.find("libmore.so.1", 0), "/opt/x/libmore.so.1");
    EXPECT_EQ(libraries.find("libnone.so.1", 0), std::nullopt);
}

// As on a node with the libraries of another architecture beside its own.
TEST(Libraries, OfBothArchitecturesAreToldApart) {
    const Tree tree;
    constexpr off_t machine_at = offsetof(Elf64_Ehdr, e_machine);
    for (const auto& [place, machine] :
         {std::pair{"usr/lib/x86_64-linux-gnu/libcuda.so.1", std::uint16_t{EM_X86_64}},
          std::pair{"usr/lib/aarch64-linux-gnu/libcuda.so.1", std::uint16_t{EM_AARCH64}}}) {
        tree.make_library(place, "libcuda.so.1");
        std::fstream(tree / place, std::ios::in | std::ios::out | std::ios::binary)
            .seekp(machine_at)
            .write(reinterpret_cast<const char*>(&machine), sizeof machine);
    }
    const DirectoryView view(tree.path());
    const Libraries libraries(view);
    EXPECT_EQ(libraries.find("libcuda.so.1", EM_X86_64), "/usr/lib/x86_64-linux-gnu/libcuda.so.1");
    EXPECT_EQ(libraries.find("libcuda.so.1", EM_AARCH64), "/usr/lib/aarch64-linux-gnu/libcuda.so.1");
    EXPECT_EQ(libraries.find("libcuda.so.1", EM_PPC64), std::nullopt);
}

TEST(GlibcVersion, IsWhatTheLibrarySaysOfItself) {
    const test::Root root;
    const DirectoryView view(root.path());
    const std::string library = std::string(library_place) + "libc.so.6";
    EXPECT_EQ(glibc_version(view), "") << "no C library";
    root.make_libc({"GLIBC_2.17"});
    EXPECT_EQ(glibc_version(view), "") << "another one";
    std::ofstream(root / library, std::ios::app)
        << "x GNU C Library (Debian GLIBC 2.41-12) stable release version 2.41.\nCopyright";
    EXPECT_EQ(glibc_version(view), "2.41");
    EXPECT_EQ(glibc_version(DirectoryView("/")), gnu_get_libc_version());
}

} // namespace
} // namespace containerize::gpu
