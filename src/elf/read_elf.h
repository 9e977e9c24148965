// Reads from a program or library what the dynamic linker needs to know.
#pragma once

#include "core/error.h"
#include "image/tree_view.h"

#include <cstdint>
#include <string>
#include <vector>

#include <elf.h>

namespace containerize::elf {

/// Only 64-bit files in this machine's byte order are supported: nothing else runs here.
struct Elf {
    struct SymbolVersion {
        std::string library; ///< "libc.so.6"
        std::string name;    ///< "GLIBC_2.34"
    };
    std::uint16_t machine = 0; ///< e.g. EM_X86_64
    std::string interpreter;   ///< the dynamic linker's path; empty for libraries
    std::string soname;        ///< may be empty
    std::vector<std::string> needed;
    std::vector<std::string> run_path; ///< directories to look in first, as written: "$ORIGIN/../lib"
    std::vector<SymbolVersion> needed_versions;
    std::vector<std::string> defined_versions;
};

/// The machine that this program was built for.
#if defined(__x86_64__)
inline constexpr std::uint16_t this_machine = EM_X86_64;
#elif defined(__aarch64__)
inline constexpr std::uint16_t this_machine = EM_AARCH64;
#elif defined(__powerpc64__)
inline constexpr std::uint16_t this_machine = EM_PPC64;
#elif defined(__riscv)
inline constexpr std::uint16_t this_machine = EM_RISCV;
#else
inline constexpr std::uint16_t this_machine = EM_S390;
#endif

/// The file is not trusted: fails on any inconsistency.
Result<Elf> read_elf(const image::TreeView& tree, const std::string& path);

} // namespace containerize::elf
