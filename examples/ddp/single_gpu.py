"""One process on one GPU, or on the CPU if there is none:  python single_gpu.py 5 2"""

from common import Place, Trainer, make_loader, make_model
from options import parse


def main():
    options = parse(__doc__)
    place = Place(rank=0, local_rank=0)
    loader = make_loader(options.batch_size, distributed=False)
    Trainer(make_model(), loader, place, options.save_every, options.snapshot).train(options.total_epochs)


if __name__ == "__main__":
    main()
