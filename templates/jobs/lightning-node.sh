#!/bin/bash
# PyTorch Lightning: one task a node, of which Lightning starts the others. Its Trainer gets num_nodes=@NODES@,
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

# containerize-rank sets NODE_RANK, MASTER_ADDR and MASTER_PORT. Where there is a LOCAL_RANK, Lightning starts no other.
srun --cpu-bind=none --kill-on-bad-exit=1 containerize-rank env -u LOCAL_RANK python @PROGRAM@
