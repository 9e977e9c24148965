#!/bin/bash
# All GPUs of one node, with torchrun.
#SBATCH --job-name=@NAME@
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=@GPUS@
#SBATCH --time=01:00:00
@SITE_LINES@
set -e
export PATH=@PREFIX@/bin:$PATH
@SITE_EXPORT@

# One task, which has all CPUs of the job on the node.
srun --ntasks=1 --cpu-bind=none containerize-rank torchrun --standalone --nproc-per-node=@TASKS@ @PROGRAM@
