#!/bin/bash
# One MPI task per GPU: mpi4py, Horovod, or torch with ranks from MPI.
#SBATCH --job-name=@NAME@
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=@TASKS@
#SBATCH --gpus-per-node=@GPUS@
#SBATCH --time=01:00:00
@SITE_LINES@
set -e
export PATH=@PREFIX@/bin:$PATH
@SITE_EXPORT@

eval "$(containerize-rank --print)"

# Open MPI. With MPICH or Intel MPI:  mpiexec -n @NTASKS@ -ppn @TASKS@ containerize-rank ...
mpirun -n @NTASKS@ --map-by ppr:@TASKS@:node --bind-to none containerize-rank python @PROGRAM@
