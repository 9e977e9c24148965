"""Digits like those of MNIST, drawn here because compute nodes have no internet, and a small convolutional network that
all ranks train on them. Any launcher can start it, such as

    containerize launch -- digits.py 5

Rank 0 prints the accuracy on digits that were not used for training, and writes the model to digits.pt.
"""

import argparse
import os
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

# Five columns and seven rows each, row by row.
SHAPES = [
    "01110 10001 10011 10101 11001 10001 01110", "00100 01100 00100 00100 00100 00100 01110",
    "01110 10001 00001 00010 00100 01000 11111", "11111 00010 00100 00010 00001 10001 01110",
    "00010 00110 01010 10010 11111 00010 00010", "11111 10000 11110 00001 00001 10001 01110",
    "00110 01000 10000 11110 10001 10001 01110", "11111 00001 00010 00100 01000 01000 01000",
    "01110 10001 10001 01110 10001 10001 01110", "01110 10001 10001 01111 00001 00010 01100",
]
SIDE = 28


def draw(count: int, seed: int) -> TensorDataset:
    """Each digit is enlarged three times and drawn at a random place of its picture, over noise."""
    generator = torch.Generator().manual_seed(seed)
    shapes = torch.tensor([[int(pixel) for pixel in shape.replace(" ", "")] for shape in SHAPES]).float()
    shapes = shapes.view(-1, 7, 5).repeat_interleave(3, 1).repeat_interleave(3, 2)
    labels = torch.randint(len(SHAPES), (count,), generator=generator)
    pictures = 0.3 * torch.rand(count, 1, SIDE, SIDE, generator=generator)
    height, width = shapes.shape[1:]
    tops = torch.randint(SIDE - height + 1, (count,), generator=generator)
    lefts = torch.randint(SIDE - width + 1, (count,), generator=generator)
    for picture, label, top, left in zip(pictures, labels, tops, lefts):
        picture[0, top:top + height, left:left + width] += 0.7 * shapes[label]
    return TensorDataset(pictures, labels)


def make_model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(16 * 7 * 7, len(SHAPES)))


def choose_device() -> tuple[torch.device, str]:
    if not torch.cuda.is_available():
        return torch.device("cpu"), "gloo"
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device, "nccl"


def train(model: nn.Module, loader: DataLoader, device: torch.device):
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for pictures, labels in loader:
        optimizer.zero_grad()
        F.cross_entropy(model(pictures.to(device)), labels.to(device)).backward()
        optimizer.step()


@torch.no_grad()
def accuracy(model: nn.Module, data: TensorDataset, device: torch.device) -> float:
    pictures, labels = data.tensors
    return (model(pictures.to(device)).argmax(1).cpu() == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("epochs", type=int)
    parser.add_argument("--digits", type=int, default=6000, help="how many are learnt from (default: 6000)")
    options = parser.parse_args()

    device, backend = choose_device()
    dist.init_process_group(backend)
    data = draw(options.digits, seed=1)
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=64, sampler=sampler)
    model = DistributedDataParallel(make_model().to(device))
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        train(model, loader, device)
        if dist.get_rank() == 0:
            found = accuracy(model.module, draw(1000, seed=2), device)
            print(f"epoch {epoch}: {found:.1%} of 1000 digits read", flush=True)
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), "digits.pt")
    dist.destroy_process_group()
    if backend == "gloo":
        # Gloo's threads outlive the group. One that still releases the last gradients while Python shuts down aborts the process (PyTorch 2.13,
        # github.com/pytorch/pytorch/issues/190489).
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
