// What the cache knows about one subdir's repodata: which content it has, and what the server said.
#pragma once

#include "conda/repodata_file.h"
#include "core/error.h"
#include "core/open_file.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace containerize::conda {

struct RepodataState {
    std::string url;           ///< of the subdir, without credentials
    std::string form = {};     ///< which of repodata_forms the content came in
    std::string identity = {}; ///< SHA-256 in that form; empty if the subdir does not exist
    std::uint64_t size = 0;    ///< of the JSON file in bytes
    std::int64_t changed = 0;  ///< the JSON file's mtime, in nanoseconds since 1970
    std::string etag = {}, last_modified = {};
    std::int64_t max_age = 0; ///< seconds
    std::int64_t checked = 0; ///< when the server was last asked, in seconds since 1970
    std::map<std::string, std::int64_t> lacking = {}; ///< forms that the channel lacked, and when
    std::string source = {};                          ///< for a local channel: signature of the file
};

/// The cached files for one subdir's repodata.
class RepodataSlot {
public:
    RepodataSlot(std::filesystem::path directory, std::string url);

    /// Returns nothing if there is no valid state for this URL that this user wrote.
    [[nodiscard]] std::optional<RepodataState> read() const;
    [[nodiscard]] Status write(const RepodataState& state) const;

    [[nodiscard]] std::filesystem::path json(const RepodataState& state) const;
    [[nodiscard]] std::filesystem::path lock() const;
    /// Opens json(state); empty if that is not the file for which the state was written. Read only through
    /// the result.
    [[nodiscard]] OpenFile content(const RepodataState& state) const;
    /// Moves a finished file to json(state). Sets size and time in `state` and the path in `finished`.
    [[nodiscard]] Status adopt(OpenFile& finished, RepodataState& state) const;
    /// Removes older content that was not used for an hour, with the files derived from it.
    void remove_outdated(const RepodataState& state) const;

private:
    std::filesystem::path directory_;
    std::string url_, key_;
};

/// Whether this is the name of a file in the directory of package lists: one of a RepodataSlot, one derived
/// from its content, or a temporary one.
bool is_repodata_file(std::string_view name);

/// Returns for how many seconds a response is fresh, from its Cache-Control header.
std::int64_t max_age(const std::string& cache_control);

/// Whether the content can be used without asking the server, by conda's local_repodata_ttl.
bool is_fresh(const RepodataState& state, int ttl, std::int64_t now);

/// Marks a cached file as used now, for cleaning up.
void mark_used(const std::filesystem::path& file);
/// When a cached file was last written or used, in seconds since 1970; 0 if unknown.
std::int64_t last_use(const std::filesystem::path& file);

} // namespace containerize::conda
