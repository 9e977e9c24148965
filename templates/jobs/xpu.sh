#!/bin/bash
# Intel GPUs: mpiexec of Intel MPI or MPICH, one task for each device, oneCCL.
#SBATCH --job-name=@NAME@
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=@TASKS@
#SBATCH --gpus-per-node=@GPUS@
#SBATCH --time=01:00:00
@SITE_LINES@
set -e
export PATH=@PREFIX@/bin:$PATH
@SITE_EXPORT@

# FLAT: each stack of a card is a device. COMPOSITE: a card is; then start half as many tasks.
export ZE_FLAT_DEVICE_HIERARCHY=${ZE_FLAT_DEVICE_HIERARCHY:-FLAT}
eval "$(containerize-rank --print)"

mpiexec -n @NTASKS@ -ppn @TASKS@ containerize-rank python @PROGRAM@
