#!/bin/bash
# All GPUs of several nodes: one torchrun per node; they meet on the first one.
#SBATCH --job-name=@NAME@
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=@GPUS@
#SBATCH --time=01:00:00
@SITE_LINES@
set -e
export PATH=@PREFIX@/bin:$PATH
@SITE_EXPORT@

# Sets MASTER_ADDR to the first node of the job, and MASTER_PORT to a port that no other job uses.
eval "$(containerize-rank --print)"

# containerize-rank creates the caches on this node and sets what the site's network needs; torchrun starts the ranks.
srun --cpu-bind=none --kill-on-bad-exit=1 containerize-rank torchrun \
    --nnodes="$SLURM_JOB_NUM_NODES" --nproc-per-node=@TASKS@ \
    --rdzv_id="$SLURM_JOB_ID" --rdzv_backend=c10d --rdzv_endpoint="$MASTER_ADDR:$MASTER_PORT" \
    @PROGRAM@
