// What the cache remembers of one package list: which content, from when, and what the server said of it.
#pragma once

#include "conda/repodata_file.h"
#include "util/error.h"
#include "util/open_file.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace containerize::conda {

struct RepodataState {
    std::string url;          ///< of the subdir, without credentials
    std::string form;         ///< which of repodata_forms the content came in
    std::string identity;     ///< sha256 of it in that form; empty if the subdir does not exist
    std::uint64_t size = 0;   ///< of the JSON file, in bytes
    std::int64_t changed = 0; ///< its time of change, in nanoseconds since 1970
    std::string etag, last_modified;
    std::int64_t max_age = 0;                    ///< seconds
    std::int64_t checked = 0;                    ///< when the server was asked last, in seconds since 1970
    std::map<std::string, std::int64_t> lacking; ///< forms that the channel did not have, and when
    std::string source;                          ///< of a local channel: the state of the file that was read
};

/// One package list's files in the cache.
class RepodataSlot {
public:
    RepodataSlot(std::filesystem::path directory, std::string url);

    /// Nothing if there is no state, if it is not this user's, or of another URL, or no state at all.
    [[nodiscard]] std::optional<RepodataState> read() const;
    [[nodiscard]] Status write(const RepodataState& state) const;

    [[nodiscard]] std::filesystem::path json(const RepodataState& state) const;
    [[nodiscard]] std::filesystem::path lock() const;
    /// json(state), if it is the file that the state was written for. Only what is returned may be read.
    [[nodiscard]] OpenFile content(const RepodataState& state) const;
    /// Puts a finished file in the content's place, completes size and time in `state`, and the path in
    /// `finished`.
    [[nodiscard]] Status adopt(OpenFile& finished, RepodataState& state) const;
    /// Content older than `state`'s that nobody used for a while, and what the solver made of it.
    void remove_outdated(const RepodataState& state) const;
    /// What the solver made of content with this identity.
    void remove_made_of(const std::string& identity) const;

private:
    std::filesystem::path directory_;
    std::string url_, key_;
};

/// Seconds for which an answer holds, by its Cache-Control header.
std::int64_t max_age(const std::string& cache_control);

/// Whether the server need not be asked, by conda's local_repodata_ttl.
bool is_fresh(const RepodataState& state, int ttl, std::int64_t now);

/// Marks a file of the cache as used now, for those who clean up.
void mark_used(const std::filesystem::path& file);
/// When a file of the cache was written or used last, in seconds since 1970; 0 if that cannot be said.
std::int64_t last_use(const std::filesystem::path& file);

} // namespace containerize::conda
