// Which packages of conda channels an environment is made of.
#pragma once

#include "conda/channel.h"
#include "conda/link.h"
#include "install/build.h"
#include "install/inputs.h"
#include "util/error.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace containerize::install {

struct CondaPlan {
    std::vector<conda::PackageRecord> packages;   ///< in link order
    std::map<std::string, std::string> requested; ///< by name: the spec that asked for it
    std::vector<conda::Channel> channels;
    bool locked = false; ///< as a list has them, not solved
};

/// Solves what the input asks for, or takes a lock's packages. Shows what it does through util/log.h.
/// `cache` is conda::cache_directory().
Result<CondaPlan> plan_conda(const BuildOptions& options, const Inputs& inputs,
                             const std::filesystem::path& cache);

} // namespace containerize::install
