#!/bin/bash
# One process on one GPU.
#SBATCH --job-name=@NAME@
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=@GPUS@
#SBATCH --time=01:00:00
@SITE_LINES@
set -e
export PATH=@PREFIX@/bin:$PATH
@SITE_EXPORT@

srun containerize-rank python @PROGRAM@
