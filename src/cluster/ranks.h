// Which of how many processes this one is, as whoever started it says: Slurm, or an MPI's launcher.
#pragma once

#include "util/error.h"

#include <map>
#include <string>

namespace containerize::cluster {

using Variables = std::map<std::string, std::string>;

enum class Launcher {
    none,  ///< a program that nobody started in parallel
    user,  ///< RANK and WORLD_SIZE were there already
    mpi,   ///< mpirun or mpiexec: its tasks may have the variables of the Slurm task that its helper was
    slurm, ///< srun
};

struct Ranks {
    Launcher launcher = Launcher::none;
    unsigned rank = 0, size = 1;             ///< among all
    unsigned local_rank = 0, local_size = 1; ///< on this node
    unsigned node = 0;                       ///< this node among those of the step
};

/// Read from RANK, Open MPI's, Intel MPI's and MPICH's (Hydra, PALS), PMIx's, or Slurm's variables. Some of
/// them without others, or no numbers, are an input error.
Result<Ranks> find_ranks(const Variables& variables);

/// The variable's value as a number; `otherwise` where it is not set or empty. Anything else is an input
/// error.
Result<unsigned> number_in(const Variables& variables, const std::string& name, unsigned otherwise);

/// A variable's value; empty where it is not set.
std::string value_of(const Variables& variables, const std::string& name);

} // namespace containerize::cluster
