// Reads the cache of the dynamic linker, which tells where libraries are.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace containerize::elf {

/// Real caches are below 1 MiB.
inline constexpr std::size_t largest_library_cache = 4U << 20U;

struct CachedLibrary {
    std::string name; ///< "libcuda.so.1"
    std::string path; ///< "/lib/x86_64-linux-gnu/libcuda.so.1"
};

/// Parses ld.so.cache in the format of glibc 2.2 and later ("glibc-ld.so.cache1.1"), also when it follows the
/// older format in the same file, as written by ldconfig before 2.32. Leaves out libraries for certain
/// processors only. Returns nothing if the file is invalid.
std::optional<std::vector<CachedLibrary>> parse_library_cache(std::string_view bytes);

} // namespace containerize::elf
