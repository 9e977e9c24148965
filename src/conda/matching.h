// Which packages a dependency means, and which version is newer, as libsolv is told: by our own judgement, so
// that a request and a dependency of the same text mean the same. libsolv's own differs from conda's in
// details.
#pragma once

#include "conda/match_spec.h"
#include "conda/package_record.h"
#include "conda/version.h"
#include "util/error.h"

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
    /// The whole record of a solvable, for specs that ask for more than name, version and build.
    using RecordOf = std::function<Result<PackageRecord>(Id solvable)>;

    /// The pool asks this object from then on.
    Matching(Pool* pool, RecordOf record_of);
    Matching(const Matching&) = delete;
    Matching& operator=(const Matching&) = delete;

    /// A dependency as a record has it; 0 for what can be none.
    Id dependency(std::string_view text);
    /// Puts the order of versions into the solvables, each of which has its version's text until then.
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
    std::vector<Id> versions_; ///< by solvable: their texts, once they have ranks in their place
    mutable std::unordered_map<Id, std::optional<Version>> parsed_; ///< by text
};

/// What a dependency of the pool says, as the record had it.
std::string dependency_text(Pool* pool, Id dependency);

} // namespace containerize::conda
