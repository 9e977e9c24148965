// Writes conda-meta, by which conda and mamba know what a prefix contains.
#pragma once

#include "conda/package_info.h"
#include "conda/package_record.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace containerize::conda {

struct InstalledPath {
    enum class Kind { packaged, byte_code, entry_point };
    std::string path;
    const PathEntry* source = nullptr; ///< the package's entry; null for files that we created
    std::string sha256_in_prefix = {}; ///< set if the prefix was replaced
    Kind kind = Kind::packaged;
};

/// The text of conda-meta/NAME-VERSION-BUILD.json. Contains nothing specific to this machine.
std::string prefix_record(const PackageRecord& record, const std::vector<InstalledPath>& paths,
                          const std::vector<std::string>& requested);

struct HistoryEntry {
    std::vector<PackageRecord> removed, added;
    std::vector<std::string> requested;
    std::uint32_t time = 0; ///< seconds since 1970
    std::string command_line, tool_version;
};
/// An entry of conda-meta/history.
std::string history_text(const HistoryEntry& entry);

/// The text of conda-meta/state: variables set on activation.
std::string state(const std::vector<std::pair<std::string, std::string>>& variables);

} // namespace containerize::conda
