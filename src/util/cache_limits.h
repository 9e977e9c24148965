// Which files of a cache have to go.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace containerize {

/// A file that can be downloaded or made again.
struct CachedFile {
    std::filesystem::path path;
    std::uint64_t bytes = 0;
    std::int64_t last_use = 0; ///< in seconds since 1970
};

struct CacheLimits {
    std::optional<std::uint64_t> bytes;   ///< of all files together
    std::optional<std::chrono::days> age; ///< since the last use
};

/// The files that were not used for `limits.age`, then the least recently used ones, until the others take at
/// most `limits.bytes`. Those that were used since `in_use_since` stay in any case. Times are in seconds
/// since 1970.
std::vector<CachedFile> files_to_remove(std::vector<CachedFile> files, const CacheLimits& limits,
                                        std::int64_t now, std::optional<std::int64_t> in_use_since);

} // namespace containerize
