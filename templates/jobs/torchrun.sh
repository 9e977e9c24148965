#!/bin/bash
# All GPUs of several nodes: one torchrun on each node, which find each other at the first.
#SBATCH --job-name=@NAME@
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=@GPUS@
#SBATCH --time=01:00:00
@SITE_LINES@
set -e
export PATH=@PREFIX@/bin:$PATH
@SITE_EXPORT@

# MASTER_ADDR, the first node of the job, and a MASTER_PORT that no other job has.
eval "$(containerize-rank --print)"

# containerize-rank makes this node's caches and sets what the site's network wants; torchrun starts the ranks.
srun --cpu-bind=none --kill-on-bad-exit=1 containerize-rank torchrun \
    --nnodes="$SLURM_JOB_NUM_NODES" --nproc-per-node=@TASKS@ \
    --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" \
    @PROGRAM@
