#!/bin/bash
# One task per GPU, started by Slurm without torchrun; each rank has its own CPUs.
#SBATCH --job-name=@NAME@
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=@TASKS@
#SBATCH --gpus-per-node=@GPUS@
#SBATCH --time=01:00:00
@SITE_LINES@
set -e
export PATH=@PREFIX@/bin:$PATH
@SITE_EXPORT@

# containerize-rank sets RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and binds to the CPUs next to the GPU.
srun --cpu-bind=none --kill-on-bad-exit=1 containerize-rank python @PROGRAM@
