// Why a request cannot be met, in words.
#pragma once

#include "conda/solver.h"
#include "util/error.h"

#include <string>
#include <vector>

struct s_Solver;

namespace containerize::conda {

/// No channel has what was asked for. `hidden` says that a lower channel has it, but strict priority forbids
/// it.
Error nothing_matches(const PackagePool& packages, const Wanted& wanted, bool hidden);

/// What was asked for conflicts. `of_job` names the request of each of the solver's jobs.
Error explain_conflict(const PackagePool& packages, s_Solver& solver,
                       const std::vector<const Wanted*>& of_job);

/// What to do where the machine lacks "__cuda" or the like.
std::string missing_virtual_hint(const std::string& name);

/// Names close to `name`, best first, at most five.
std::vector<std::string> similar_names(const std::vector<std::string>& names, const std::string& name);

} // namespace containerize::conda
