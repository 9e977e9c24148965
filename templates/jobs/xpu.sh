#!/bin/bash
# Intel GPUs with oneCCL: one task per device, started by mpiexec of Intel MPI or MPICH.
#SBATCH --job-name=@NAME@
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=@TASKS@
#SBATCH --gpus-per-node=@GPUS@
#SBATCH --time=01:00:00
@SITE_LINES@
set -e
export PATH=@PREFIX@/bin:$PATH
@SITE_EXPORT@

# FLAT: each stack of a card is a device. COMPOSITE: each card is a device; then start half as many tasks.
export ZE_FLAT_DEVICE_HIERARCHY=${ZE_FLAT_DEVICE_HIERARCHY:-FLAT}
eval "$(containerize-rank --print)"

mpiexec -n @NTASKS@ -ppn @TASKS@ containerize-rank python @PROGRAM@
