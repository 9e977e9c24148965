// What the dynamic linker would want to know of a program or library, read from its file.
#pragma once

#include "gpu/tree.h"
#include "util/error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace containerize::gpu {

/// Of 64-bit little-endian files, the only ones that GPU drivers come as.
struct Elf {
    struct SymbolVersion {
        std::string library; ///< "libc.so.6"
        std::string name;    ///< "GLIBC_2.34"
    };
    std::uint16_t machine = 0; ///< EM_X86_64 and the like
    std::string soname;        ///< empty if it has none
    std::vector<std::string> needed;
    std::vector<SymbolVersion> needed_versions;
    std::vector<std::string> defined_versions;
};

/// The file is not trusted: whatever does not add up is an error.
Result<Elf> read_elf(const TreeView& tree, const std::string& path);

/// Libraries of the C library, the compiler, and the dynamic linker: those of a container must stay its own,
/// because they belong together. Told by the file's name.
bool is_system_library(std::string_view name);

} // namespace containerize::gpu
