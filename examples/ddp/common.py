"""What the examples share: data that can be learnt, a small model, and a trainer."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

SAMPLES = 2048
FEATURES = 20


def say(line: str):
    """Prints a line at once. print() writes the end of the line by itself, after which another rank may have written."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class LinearDataset(Dataset):
    """Random points with the values of a fixed linear function and a little noise, so that the loss must fall."""

    def __init__(self, samples: int = SAMPLES):
        generator = torch.Generator().manual_seed(7)
        self.inputs = torch.randn(samples, FEATURES, generator=generator)
        weights = torch.randn(FEATURES, 1, generator=generator)
        noise = 0.01 * torch.randn(samples, 1, generator=generator)
        self.targets = self.inputs @ weights + noise

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int):
        return self.inputs[index], self.targets[index]


@dataclass
class Place:
    """Where one rank runs."""

    rank: int  # among all ranks
    local_rank: int  # on its node

    @property
    def device(self) -> torch.device:
        if torch.cuda.is_available():
            return torch.device("cuda", self.local_rank % torch.cuda.device_count())
        return torch.device("cpu")

    @property
    def backend(self) -> str:
        return "nccl" if self.device.type == "cuda" else "gloo"


def place_from_torchrun() -> Place:
    return Place(rank=int(os.environ["RANK"]), local_rank=int(os.environ["LOCAL_RANK"]))


def leave_group(place: Place):
    """Ends the process group, and with Gloo the process. Gloo's threads outlive the group, and one that still releases the
    last gradients while Python shuts down aborts the process (PyTorch 2.13, github.com/pytorch/pytorch/issues/190489)."""
    dist.barrier()
    dist.destroy_process_group()
    if place.backend == "gloo":
        sys.stdout.flush()
        os._exit(0)


def make_model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Linear(FEATURES, 1)


def make_loader(batch_size: int, distributed: bool) -> DataLoader:
    dataset = LinearDataset()
    sampler = DistributedSampler(dataset) if distributed else None
    return DataLoader(dataset, batch_size=batch_size, sampler=sampler, shuffle=sampler is None)


class Trainer:
    """Trains. Every `save_every` epochs, rank 0 writes a snapshot, from which a later run resumes."""

    def __init__(self, model, loader, place: Place, save_every: int, snapshot: Path):
        self.place = place
        self.loader = loader
        self.save_every = save_every
        self.snapshot = snapshot
        self.epochs_done = 0
        self.inner = model.to(place.device)
        self._resume()
        self.model = self._distribute() if isinstance(loader.sampler, DistributedSampler) else self.inner
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)

    def _distribute(self):
        ids = [self.place.device.index] if self.place.device.type == "cuda" else None
        return nn.parallel.DistributedDataParallel(self.inner, device_ids=ids)

    def _resume(self):
        if not self.snapshot.exists():
            return
        state = torch.load(self.snapshot, map_location=self.place.device, weights_only=True)
        self.inner.load_state_dict(state["model"])
        self.epochs_done = state["epochs_done"]
        say(f"[GPU{self.place.rank}] Resuming after epoch {self.epochs_done} from {self.snapshot}")

    def _save(self):
        temporary = self.snapshot.with_suffix(".new")
        torch.save({"model": self.inner.state_dict(), "epochs_done": self.epochs_done}, temporary)
        temporary.replace(self.snapshot)
        say(f"[GPU{self.place.rank}] Epoch {self.epochs_done - 1} | Snapshot saved at {self.snapshot}")

    def _step(self, inputs, targets) -> float:
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(inputs), targets)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def _epoch(self, epoch: int) -> float:
        say(f"[GPU{self.place.rank}] Epoch {epoch} | Batchsize: {self.loader.batch_size} | Steps: {len(self.loader)}")
        if isinstance(self.loader.sampler, DistributedSampler):
            self.loader.sampler.set_epoch(epoch)
        losses = [
            self._step(inputs.to(self.place.device), targets.to(self.place.device)) for inputs, targets in self.loader
        ]
        return sum(losses) / len(losses)

    def train(self, total_epochs: int):
        loss = float("nan")
        for epoch in range(self.epochs_done, total_epochs):
            loss = self._epoch(epoch)
            self.epochs_done = epoch + 1
            if self.place.rank == 0 and self.epochs_done % self.save_every == 0:
                self._save()
        say(f"[GPU{self.place.rank}] Final loss {loss:.6f} on {self.place.device.type}")
