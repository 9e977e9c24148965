// Reads from a program or library what the dynamic linker needs to know.
#pragma once

#include "core/error.h"
#include "gpu/tree.h"

#include <cstdint>
#include <string>
#include <vector>

namespace containerize::gpu {

/// Only 64-bit little-endian files are supported; GPU drivers come in no other form.
struct Elf {
    struct SymbolVersion {
        std::string library; ///< "libc.so.6"
        std::string name;    ///< "GLIBC_2.34"
    };
    std::uint16_t machine = 0; ///< e.g. EM_X86_64
    std::string soname;        ///< may be empty
    std::vector<std::string> needed;
    std::vector<SymbolVersion> needed_versions;
    std::vector<std::string> defined_versions;
};

/// The file is not trusted: fails on any inconsistency.
Result<Elf> read_elf(const TreeView& tree, const std::string& path);

/// Whether the file's name is that of the dynamic linker or of a library of the C library or compiler. A
/// container must use its own set, because these belong together.
bool is_system_library(std::string_view name);

} // namespace containerize::gpu
