"""Data-parallel training like Horovod's, with only mpi4py and NumPy: every rank has a share of the data, and MPI sums
the gradients.  For example:  srun --mpi=pmi2 python mpi_ranks.py 20
"""

import argparse
import socket

import numpy as np
from mpi4py import MPI

SAMPLES = 2048
FEATURES = 20


def make_data():
    """Returns the same data on each rank."""
    generator = np.random.default_rng(7)
    inputs = generator.standard_normal((SAMPLES, FEATURES))
    weights = generator.standard_normal(FEATURES)
    return inputs, inputs @ weights


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("epochs", type=int, help="how many times all data are gone through")
    options = parser.parse_args()

    world = MPI.COMM_WORLD
    inputs, targets = make_data()
    mine = slice(world.rank, None, world.size)
    weights = np.zeros(FEATURES)
    loss = float("nan")
    for _ in range(options.epochs):
        wrong = inputs[mine] @ weights - targets[mine]
        gradient = inputs[mine].T @ wrong
        world.Allreduce(MPI.IN_PLACE, gradient)
        weights -= 0.5 * gradient / SAMPLES
        loss = world.allreduce(float(wrong @ wrong)) / SAMPLES
    print(f"[rank {world.rank} of {world.size} on {socket.gethostname()}] Final loss {loss:.6f}", flush=True)


if __name__ == "__main__":
    main()
