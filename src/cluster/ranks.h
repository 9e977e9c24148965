// Determines this process's rank, as told by its launcher: Slurm or MPI.
#pragma once

#include "core/error.h"
#include "core/variables.h"

namespace containerize::cluster {

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
Result<Ranks> find_ranks(const Environment& variables);

/// Returns the variable as a number, or `otherwise` if it is unset or empty. Fails with an input error on
/// anything else.
Result<unsigned> number_in(const Environment& variables, Variable which, unsigned otherwise);

} // namespace containerize::cluster
