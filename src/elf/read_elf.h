// Reads from a program or library what the dynamic linker needs to know.
#pragma once

#include "core/error.h"
#include "image/tree_view.h"

#include <cstdint>
#include <string>
#include <vector>

namespace containerize::elf {

/// Only 64-bit little-endian files are supported: nothing else runs here, and GPU drivers come in no other
/// form.
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

/// The file is not trusted: fails on any inconsistency.
Result<Elf> read_elf(const image::TreeView& tree, const std::string& path);

} // namespace containerize::elf
