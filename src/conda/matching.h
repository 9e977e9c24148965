// Decides for libsolv which packages satisfy a dependency and which version is newer. libsolv's own rules
// differ from conda's in details, and requests and dependencies must be judged alike.
#pragma once

#include "conda/match_spec.h"
#include "conda/package_record.h"
#include "conda/version.h"
#include "core/error.h"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

extern "C" {
#include <solv/pooltypes.h>
}

namespace containerize::conda {

class Matching {
public:
    /// Reads the full record of a solvable, for specs with more than name, version and build.
    using RecordOf = std::function<Result<PackageRecord>(Id solvable)>;

    /// Installs itself as the pool's namespace callback; must outlive its use of the pool.
    Matching(Pool* pool, RecordOf record_of);
    Matching(const Matching&) = delete;
    Matching& operator=(const Matching&) = delete;

    /// The pool's id for a dependency in a record; 0 if it is invalid.
    Id dependency(std::string_view text);
    /// Replaces the solvables' versions, texts until then, by their ranks in the order of versions.
    void rank_versions();
    [[nodiscard]] std::string version(Id solvable) const;
    [[nodiscard]] bool matches(const MatchSpec& spec, Id solvable) const;

private:
    static Id provide(Pool* pool, void* self, Id name, Id text);
    [[nodiscard]] Id version_id(Id solvable) const;
    [[nodiscard]] std::vector<Id> named(const std::string& name) const;
    const std::optional<Version>& parsed(Id version) const;

    Pool* pool_;
    RecordOf record_of_;
    std::unordered_map<std::string, Id> dependencies_;
    std::vector<Id> versions_; ///< by solvable: the version's text, after rank_versions()
    mutable std::unordered_map<Id, std::optional<Version>> parsed_; ///< by the version's text
};

/// The text of a dependency as it is in the record.
std::string dependency_text(Pool* pool, Id dependency);

} // namespace containerize::conda
