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
    std::vector<std::string> run_path;  ///< directories to look in first, $ORIGIN replaced
};

/// Nothing where `file` is no ELF file of 64 bits for this machine, or is damaged.
std::optional<ElfNeeds> read_elf(const std::filesystem::path& file);

/// The loader's cache (ld.so.cache): libraries' files by name, without those for certain processors only.
/// Empty where `bytes` is none.
std::map<std::string, std::filesystem::path> parse_loader_cache(std::string_view bytes);

} // namespace containerize::base
