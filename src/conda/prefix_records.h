// conda-meta: what conda and mamba read to know what a prefix holds.
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
    const PathEntry* source = nullptr; ///< what the package says of it; null for what it did not bring
    std::string sha256_in_prefix;      ///< where the prefix was put in; else empty
    Kind kind = Kind::packaged;
};

/// Text of conda-meta/NAME-VERSION-BUILD.json. Names nothing of the machine that installed it.
std::string prefix_record(const PackageRecord& record, const std::vector<InstalledPath>& paths,
                          const std::vector<std::string>& requested);

struct HistoryEntry {
    std::vector<PackageRecord> removed, added;
    std::vector<std::string> requested;
    std::uint32_t time = 0; ///< seconds since 1970
    std::string command_line, tool_version;
};
/// One entry of conda-meta/history.
std::string history_text(const HistoryEntry& entry);

/// Text of conda-meta/state: variables that activation sets.
std::string state(const std::vector<std::pair<std::string, std::string>>& variables);

} // namespace containerize::conda
