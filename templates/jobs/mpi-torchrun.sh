#!/bin/bash
# The MPI launcher starts one torchrun on each node.
#SBATCH --job-name=@NAME@
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=@GPUS@
#SBATCH --time=01:00:00
@SITE_LINES@
set -e
export PATH=@PREFIX@/bin:$PATH
@SITE_EXPORT@

eval "$(containerize-rank --print)"

# With RoCE, NCCL needs the index of the adapter's RoCE v2 address, which show_gids lists.
# export NCCL_IB_GID_INDEX=3

# Open MPI. With MPICH or Intel MPI:  mpiexec -n "$SLURM_JOB_NUM_NODES" -ppn 1 containerize-rank ...
mpirun -n "$SLURM_JOB_NUM_NODES" --map-by ppr:1:node --bind-to none \
    containerize-rank --torchrun --nproc-per-node @TASKS@ @PROGRAM@
