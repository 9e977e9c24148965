// Determines this process's rank, as told by its launcher: Slurm or MPI.
#pragma once

#include "core/error.h"

#include <map>
#include <string>

namespace containerize::cluster {

using Variables = std::map<std::string, std::string>;

enum class Launcher {
    none,  ///< not started in parallel
    user,  ///< RANK and WORLD_SIZE were set by somebody else
    mpi,   ///< mpirun or mpiexec; its tasks may inherit the Slurm variables of the launcher's helper
    slurm, ///< srun
};

struct Ranks {
    Launcher launcher = Launcher::none;
    unsigned rank = 0, size = 1;             ///< in total
    unsigned local_rank = 0, local_size = 1; ///< on this node
    unsigned node = 0;                       ///< index of this node in the step
};

/// Reads RANK, or the variables of Open MPI, Intel MPI, MPICH (Hydra, PALS) or Slurm. Fails with an input
/// error if they are incomplete or not numbers.
Result<Ranks> find_ranks(const Variables& variables);

/// Returns the variable as a number, or `otherwise` if it is unset or empty. Fails with an input error on
/// anything else.
Result<unsigned> number_in(const Variables& variables, const std::string& name, unsigned otherwise);

/// Returns the variable's value; empty if it is not set.
std::string value_of(const Variables& variables, const std::string& name);

} // namespace containerize::cluster
