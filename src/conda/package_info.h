// Parses the metadata in a package: its files, and how to install each.
#pragma once

#include "conda/package_record.h"
#include "core/error.h"

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
    std::string sha256 = {}; ///< of the content as packed; empty if unknown
    std::uint64_t size = 0;
    bool has_size = false;
    std::string placeholder = {}; ///< the prefix it was built for; empty if the file does not contain it
    FileMode mode = FileMode::text;
    bool no_link = false;
};

struct EntryPoint {
    std::string command, module, function;
};

struct PackageInfo {
    PackageRecord record; ///< from info/index.json: without URL and checksums
    std::vector<PathEntry> paths;
    std::vector<EntryPoint> entry_points; ///< for noarch: python
};

/// `files` are those in info/, by name (PackageArchive::info()): paths.json or the older files, has_prefix
/// and no_link; and link.json. `package` is the name for messages.
Result<PackageInfo> parse_package_info(const std::map<std::string, std::string>& files,
                                       const std::string& package);

} // namespace containerize::conda
