"""The same small model with PyTorch Lightning:  python lightning_ddp.py 5 --nodes 2 --devices 2

Under srun with one task per device, Lightning takes its ranks from Slurm. With --one-per-node there is one task per node, and
Lightning starts the other processes of the node itself; then it needs NODE_RANK, MASTER_ADDR and MASTER_PORT.
"""

import argparse
import os
import sys

import lightning
import torch
import torch.distributed as dist
import torch.nn.functional as F
from lightning.pytorch.plugins.environments import LightningEnvironment
from torch.utils.data import DataLoader, TensorDataset

SAMPLES = 2048
FEATURES = 20


def make_data() -> TensorDataset:
    generator = torch.Generator().manual_seed(7)
    inputs = torch.randn(SAMPLES, FEATURES, generator=generator)
    weights = torch.randn(FEATURES, 1, generator=generator)
    return TensorDataset(inputs, inputs @ weights)


class Linear(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(FEATURES, 1)

    def training_step(self, batch, _):
        inputs, targets = batch
        loss = F.mse_loss(self.layer(inputs), targets)
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.05)


def leave_group():
    """Ends the process group, and with Gloo the process. Gloo's threads outlive the group, and one that still releases its last
    tensors while Python shuts down aborts the process (PyTorch 2.13, github.com/pytorch/pytorch/issues/190489)."""
    if not dist.is_initialized():
        return
    gloo = dist.get_backend() == "gloo"
    dist.barrier()
    dist.destroy_process_group()
    if gloo:
        sys.stdout.flush()
        os._exit(0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("epochs", type=int)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--devices", type=int, default=1, help="on each node")
    parser.add_argument("--one-per-node", action="store_true", help="Lightning starts the processes of a node")
    options = parser.parse_args()

    lightning.seed_everything(1)
    trainer = lightning.Trainer(
        accelerator="auto", devices=options.devices, num_nodes=options.nodes, strategy="ddp", max_epochs=options.epochs,
        plugins=LightningEnvironment() if options.one_per_node else None,
        logger=False, enable_checkpointing=False, enable_progress_bar=False)
    trainer.fit(Linear(), DataLoader(make_data(), batch_size=32, shuffle=True))
    loss = trainer.callback_metrics["loss"].item()
    print(f"[rank {trainer.global_rank} of {trainer.world_size} on node {trainer.node_rank}] Final loss {loss:.6f}", flush=True)
    leave_group()


if __name__ == "__main__":
    main()
