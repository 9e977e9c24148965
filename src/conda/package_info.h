// What a package says of itself: its files, and what must be done with each.
#pragma once

#include "conda/package_record.h"
#include "util/error.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace containerize::conda {

enum class PathType { hardlink, softlink, directory };
enum class FileMode { binary, text };

struct PathEntry {
    std::string path;
    PathType type = PathType::hardlink;
    std::string sha256; ///< of the content as packed; empty if not given
    std::uint64_t size = 0;
    bool has_size = false;
    std::string placeholder; ///< the prefix that it was built for; empty if it names none
    FileMode mode = FileMode::text;
    bool no_link = false;
};

struct EntryPoint {
    std::string command, module, function;
};

struct PackageInfo {
    PackageRecord record; ///< of info/index.json: no URL, no checksums
    std::vector<PathEntry> paths;
    std::vector<EntryPoint> entry_points; ///< of noarch: python
};

/// `files` are those of info/ by name (PackageArchive::info()): paths.json, or the older files, has_prefix
/// and no_link; link.json. `package` is the name for messages.
Result<PackageInfo> parse_package_info(const std::map<std::string, std::string>& files,
                                       const std::string& package);

} // namespace containerize::conda
