#!/bin/bash
# PyTorch Lightning: one task per GPU. Its Trainer needs num_nodes=@NODES@ and devices=@TASKS@.
#SBATCH --job-name=@NAME@
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=@TASKS@
#SBATCH --gpus-per-node=@GPUS@
#SBATCH --time=01:00:00
@SITE_LINES@
# On this signal, 90 seconds before the time limit, Lightning saves a checkpoint and requeues the job.
#SBATCH --signal=SIGUSR1@90
set -e
export PATH=@PREFIX@/bin:$PATH
@SITE_EXPORT@

srun --cpu-bind=none --kill-on-bad-exit=1 containerize-rank python @PROGRAM@
