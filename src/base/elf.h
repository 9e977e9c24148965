// Which libraries a program needs, and where the host has them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::base {

struct ElfNeeds {
    std::string interpreter;            ///< the dynamic loader's path; empty for libraries
    std::vector<std::string> libraries; ///< names: "libc.so.6"
    std::vector<std::string> run_path;  ///< directories to look in first, with $ORIGIN replaced
};

/// Nullopt if `file` is not a 64-bit ELF file for this machine, or is damaged.
std::optional<ElfNeeds> read_elf(const std::filesystem::path& file);

/// Parses the loader's cache (ld.so.cache): the files of libraries by name, without those for certain
/// processors only. Empty if `bytes` is not such a cache.
std::map<std::string, std::filesystem::path> parse_loader_cache(std::string_view bytes);

} // namespace containerize::base
