// Explains in words why a request cannot be satisfied.
#pragma once

#include "conda/solver.h"
#include "core/error.h"

#include <string>
#include <vector>

struct s_Solver;

namespace containerize::conda {

/// The error for a spec that nothing matches. `hidden`: a channel of lower priority matches, but strict
/// channel priority rules it out.
Error nothing_matches(const PackagePool& packages, const Wanted& wanted, bool hidden);

/// The error for conflicting requests. `of_job` maps the solver's jobs to requests.
Error explain_conflict(const PackagePool& packages, s_Solver& solver,
                       const std::vector<const Wanted*>& of_job);

/// Advice for a virtual package such as "__cuda" that the machine lacks.
std::string missing_virtual_hint(const std::string& name);

} // namespace containerize::conda
