"""All GPUs of one node:  torchrun --standalone --nproc_per_node=gpu multi_gpu.py 5 2

On a node without GPUs, give the number of processes: --nproc_per_node=2.
"""

import torch.distributed as dist
from common import Trainer, leave_group, make_loader, make_model, place_from_torchrun
from options import parse


def main():
    options = parse(__doc__)
    place = place_from_torchrun()
    dist.init_process_group(place.backend)
    loader = make_loader(options.batch_size, distributed=True)
    Trainer(make_model(), loader, place, options.save_every, options.snapshot).train(options.total_epochs)
    leave_group(place)


if __name__ == "__main__":
    main()
