"""Several nodes, inside a Slurm job with one task per node:

    srun torchrun --nnodes=$SLURM_JOB_NUM_NODES --nproc_per_node=gpu --rdzv_id=$SLURM_JOB_ID \\
        --rdzv_backend=c10d --rdzv_endpoint=$HEAD_NODE:29400 multinode.py 50 10

HEAD_NODE is the first line of `scontrol show hostnames $SLURM_JOB_NODELIST`. The snapshot must be on a filesystem that all
nodes share, because a job that is requeued resumes from it.
"""

import os
import socket

import torch.distributed as dist
from common import Trainer, leave_group, make_loader, make_model, place_from_torchrun, say
from options import parse


def main():
    options = parse(__doc__)
    place = place_from_torchrun()
    dist.init_process_group(place.backend)
    say(f"[GPU{place.rank}] of {os.environ['WORLD_SIZE']} on {socket.gethostname()}")
    loader = make_loader(options.batch_size, distributed=True)
    Trainer(make_model(), loader, place, options.save_every, options.snapshot).train(options.total_epochs)
    leave_group(place)


if __name__ == "__main__":
    main()
