// Decides which conda packages an environment consists of.
#pragma once

#include "conda/channel.h"
#include "conda/installed.h"
#include "conda/link.h"
#include "core/cutoff.h"
#include "core/error.h"
#include "inputs/build_options.h"
#include "inputs/inputs.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace containerize::environments {

struct CondaPlan {
    std::filesystem::path cache;
    std::vector<conda::PackageRecord> packages; ///< in link order
    conda::Requests requested;
    std::vector<conda::Channel> channels;
    std::optional<Cutoff> exclude_newer;
    bool locked = false; ///< the packages come from a lock or list and were not solved
};

/// The changes that an update makes to an environment.
struct CondaChanges {
    CondaPlan plan; ///< `packages` lists those to be installed
    std::vector<conda::InstalledPackage> removed;
};

/// Plans to remove and reinstall a package that stays in the environment.
void relink(const conda::InstalledPackage& package, CondaChanges& changes);

/// Solves the input against the `installed` packages, which are kept as far as the request and the `pinned`
/// specs (conda-meta/pinned) allow. With `prune`, or if the input is a lock, packages that the input does not
/// need are removed. `directory` holds temporary files.
Result<CondaChanges> plan_conda_changes(const inputs::BuildOptions& options, const inputs::Inputs& inputs,
                                        const std::vector<conda::InstalledPackage>& installed,
                                        const std::vector<Located>& pinned, bool prune,
                                        const std::filesystem::path& directory);

/// Adds to an error about a package that it is listed in the input, if that is a lock or list.
Error with_list(Error error, const inputs::Inputs& inputs);

/// What a lock of the planned environment contains besides its packages and pip's part.
spec::LockedEnvironment lock_of(const CondaPlan& plan, const inputs::Inputs& inputs);

/// Solves the input, or takes the packages of a lock. Reports progress through util/log.h.
Result<CondaPlan> plan_conda(const inputs::BuildOptions& options, const inputs::Inputs& inputs);

} // namespace containerize::environments
