// The packages that a request can reach, of all channels, in libsolv's form.
#pragma once

#include "conda/match_spec.h"
#include "conda/package_record.h"
#include "conda/repodata.h"
#include "util/error.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

extern "C" {
#include <solv/pooltypes.h>
}

struct s_Repo;

namespace containerize::conda {

/// A package that the machine has and no channel: "__glibc" 2.36.
struct VirtualPackage {
    std::string name, version, build;
};

class PackagePool {
public:
    /// Of every list, the packages with the `wanted` names (or patterns of them) and all that these can need.
    /// `installed`, if there is one, is such a list of what the environment has now, in which each record has
    /// its "channel".
    static Result<PackagePool> load(const std::vector<Repodata>& lists, std::vector<std::string> wanted,
                                    const std::vector<VirtualPackage>& machine,
                                    const Repodata* installed = nullptr);
    PackagePool(PackagePool&&) noexcept;
    PackagePool& operator=(PackagePool&&) noexcept;
    ~PackagePool();

    [[nodiscard]] Pool* pool() const;
    /// What the machine has: must be installed in every solution.
    [[nodiscard]] s_Repo* machine() const;
    /// The whole record, from the list that it was read from; of what the machine has, the little that there
    /// is.
    [[nodiscard]] Result<PackageRecord> record(Id solvable) const;
    /// As it is written: libsolv has a number in its place.
    [[nodiscard]] std::string version(Id solvable) const;
    /// What matches the spec, for libsolv; whatever the channel.
    [[nodiscard]] Id dependency(const MatchSpec& spec);
    /// The channel's URL; empty for a virtual package. Of an installed one: where it came from.
    [[nodiscard]] const std::string& channel(Id solvable) const;
    [[nodiscard]] bool is_virtual(Id solvable) const;
    [[nodiscard]] bool is_installed(Id solvable) const;

    /// Solvables that match, of the channels with these URLs; of any if there are none.
    [[nodiscard]] std::vector<Id> matching(const MatchSpec& spec,
                                           const std::vector<std::string>& channels) const;
    /// Every name that a channel has, whether it was wanted or not.
    [[nodiscard]] std::vector<std::string> names() const;
    [[nodiscard]] std::size_t size() const; ///< packages that the channels have

private:
    struct State;
    explicit PackagePool(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace containerize::conda
