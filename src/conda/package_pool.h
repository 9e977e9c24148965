// Holds the packages that a request can reach, from all channels, in libsolv's form.
#pragma once

#include "conda/match_spec.h"
#include "conda/package_record.h"
#include "conda/reach.h"
#include "conda/repodata.h"
#include "core/cutoff.h"
#include "core/error.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

extern "C" {
#include <solv/pooltypes.h>
}

struct s_Repo;

namespace containerize::conda {

/// A package that the machine itself provides: "__glibc" 2.36.
struct VirtualPackage {
    std::string name, version, build;
};

struct LoadOptions {
    /// If not null, such a list of the installed packages, in which each record has its "channel".
    const Repodata* installed = nullptr;
    ShardAccess shards = {};
    /// Leave out packages of channels that were published then or later, and those that do not tell when.
    std::optional<Cutoff> exclude_newer = {};
};

class PackagePool {
public:
    /// Loads the packages with the `wanted` names (or patterns) and everything they may need, from every
    /// list.
    static Result<PackagePool> load(const std::vector<Repodata>& lists, std::vector<std::string> wanted,
                                    const std::vector<VirtualPackage>& machine,
                                    const LoadOptions& options = {});
    PackagePool(PackagePool&&) noexcept;
    PackagePool& operator=(PackagePool&&) noexcept;
    ~PackagePool();

    [[nodiscard]] Pool* pool() const;
    /// The virtual packages, which every solution must include.
    [[nodiscard]] s_Repo* machine() const;
    /// The full record from the list it was read from; for a virtual package only name, version and build.
    [[nodiscard]] Result<PackageRecord> record(Id solvable) const;
    /// The version's text, which libsolv sees as a rank only.
    [[nodiscard]] std::string version(Id solvable) const;
    /// libsolv's id for the packages that match the spec, in any channel.
    [[nodiscard]] Id dependency(const MatchSpec& spec);
    /// The channel's URL, for an installed package the one it came from; empty for a virtual package.
    [[nodiscard]] const std::string& channel(Id solvable) const;
    [[nodiscard]] bool is_virtual(Id solvable) const;
    [[nodiscard]] bool is_installed(Id solvable) const;

    /// The solvables that match, in the channels with these URLs, or in any if `channels` is empty.
    [[nodiscard]] std::vector<Id> matching(const MatchSpec& spec,
                                           const std::vector<std::string>& channels) const;
    /// All names in the lists, whether they were wanted or not.
    [[nodiscard]] std::vector<std::string> names() const;
    /// The number of packages in the channels; of a channel with shards, in those that were fetched.
    [[nodiscard]] std::size_t size() const;
    /// How many that the request can reach were left out by LoadOptions::exclude_newer.
    [[nodiscard]] std::size_t left_out() const;

private:
    struct State;
    explicit PackagePool(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

} // namespace containerize::conda
