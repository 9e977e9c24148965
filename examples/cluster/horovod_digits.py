"""Trains on the digits of digits.py with Horovod. An MPI launcher starts the ranks:

    containerize job --nodes 2 --gpus 4 --kind mpi -- horovod_digits.py 5 > job.sh

Horovod is compiled against torch and MPI when it is installed. Its last release, 0.28.1, uses an older C++ standard than current
versions of torch need. So build a wheel once, with CMAKE_CXX_STANDARD set to 20 in its sources and with the MPI that the jobs use,
and give the path of that file in requirements.txt.
"""

import sys

import horovod.torch as hvd
import torch
import torch.nn.functional as F
from digits import accuracy, draw, make_model
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler


def main():
    hvd.init()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", hvd.local_rank() % torch.cuda.device_count())
    data = draw(6000, seed=1)
    sampler = DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank(), seed=1)
    loader = DataLoader(data, batch_size=64, sampler=sampler)
    model = make_model().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    for epoch in range(int(sys.argv[1])):
        sampler.set_epoch(epoch)
        for pictures, labels in loader:
            optimizer.zero_grad()
            F.cross_entropy(model(pictures.to(device)), labels.to(device)).backward()
            optimizer.step()
        if hvd.rank() == 0:
            print(f"epoch {epoch}, {hvd.size()} ranks: {accuracy(model, draw(1000, seed=2), device):.1%} of 1000 digits read", flush=True)


if __name__ == "__main__":
    main()
