#!/bin/bash
# PyTorch Lightning: one task for each GPU. Its Trainer gets num_nodes=@NODES@ and devices=@TASKS@.
#SBATCH --job-name=@NAME@
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=@TASKS@
#SBATCH --gpus-per-node=@GPUS@
#SBATCH --time=01:00:00
@SITE_LINES@
# Told a minute and a half before the end of its time, Lightning saves and hands the job in again.
#SBATCH --signal=SIGUSR1@90
set -e
export PATH=@PREFIX@/bin:$PATH
@SITE_EXPORT@

srun --cpu-bind=none --kill-on-bad-exit=1 containerize-rank python @PROGRAM@
