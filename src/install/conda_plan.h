// Which packages of conda channels an environment is made of.
#pragma once

#include "conda/channel.h"
#include "conda/installed.h"
#include "conda/link.h"
#include "install/build.h"
#include "install/inputs.h"
#include "util/error.h"

#include <filesystem>
#include <string>
#include <vector>

namespace containerize::install {

struct CondaPlan {
    std::vector<conda::PackageRecord> packages; ///< in link order
    conda::Requests requested;
    std::vector<conda::Channel> channels;
    bool locked = false; ///< as a list has them, not solved
};

/// What is to be changed in an environment.
struct CondaChanges {
    CondaPlan plan; ///< `packages`: those that come
    std::vector<conda::InstalledPackage> removed;
};

/// A package that stays is to be linked once more.
void relink(const conda::InstalledPackage& package, CondaChanges& changes);

/// Solves what the input asks for, to be added to what is `installed`: that stays, as far as the request
/// lets it and as `pinned` says (conda-meta/pinned). With `prune`, or if the input is a lock, what the input
/// does not need goes. `directory` is for files of ours.
Result<CondaChanges> plan_conda_changes(const BuildOptions& options, const Inputs& inputs,
                                        const std::filesystem::path& cache,
                                        const std::vector<conda::InstalledPackage>& installed,
                                        const std::vector<conda::Located>& pinned, bool prune,
                                        const std::filesystem::path& directory);

/// `error` is about a package: where a lock or list names that, the message says which.
Error with_list(Error error, const Inputs& inputs);

/// Solves what the input asks for, or takes a lock's packages. Shows what it does through util/log.h.
/// `cache` is conda::cache_directory().
Result<CondaPlan> plan_conda(const BuildOptions& options, const Inputs& inputs,
                             const std::filesystem::path& cache);

} // namespace containerize::install
