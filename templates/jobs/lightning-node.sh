#!/bin/bash
# PyTorch Lightning: one task per node, and Lightning starts the other processes there. Its Trainer needs num_nodes=@NODES@,
# devices=@TASKS@ and plugins=LightningEnvironment().
#SBATCH --job-name=@NAME@
#SBATCH --nodes=@NODES@
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=@GPUS@
#SBATCH --time=01:00:00
@SITE_LINES@
set -e
export PATH=@PREFIX@/bin:$PATH
@SITE_EXPORT@

# containerize-rank sets NODE_RANK, MASTER_ADDR and MASTER_PORT. If LOCAL_RANK were set, Lightning would not start the other processes.
srun --cpu-bind=none --kill-on-bad-exit=1 containerize-rank env -u LOCAL_RANK python @PROGRAM@
