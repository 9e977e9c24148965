"""The first diagnostic of a job: how fast the ranks sum vectors. Any launcher can start it, such as

    containerize launch -- all_reduce.py

If this is slow or hangs, training will be or do so as well. Rank 0 prints a line for each size, with the bandwidth that the
network of each rank had to carry (2 (n - 1) / n of the bytes). Compare it with the nominal bandwidth of the network.
"""

import argparse
import os
import socket
import sys
import time

import torch
import torch.distributed as dist


def device_and_backend(local_rank: int) -> tuple[torch.device, str]:
    if torch.cuda.is_available():
        return torch.device("cuda", local_rank % torch.cuda.device_count()), "nccl"
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        return torch.device("xpu", local_rank % torch.xpu.device_count()), "xccl"
    return torch.device("cpu"), "gloo"


def wait_for(device: torch.device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "xpu":
        torch.xpu.synchronize(device)


def seconds_of(vector: torch.Tensor, rounds: int) -> float:
    dist.all_reduce(vector)  # the first call makes the connections
    wait_for(vector.device)
    begin = time.perf_counter()
    for _ in range(rounds):
        dist.all_reduce(vector)
    wait_for(vector.device)
    return (time.perf_counter() - begin) / rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=256, help="size of the largest vector in MiB (default: 256)")
    parser.add_argument("--rounds", type=int, default=10, help="how often each is added up (default: 10)")
    options = parser.parse_args()

    device, backend = device_and_backend(int(os.environ["LOCAL_RANK"]))
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(backend)
    rank, size = dist.get_rank(), dist.get_world_size()
    print(f"rank {rank} of {size} on {socket.gethostname()}, {device.type} by {backend}", flush=True)

    ones = torch.ones(1024, device=device)
    dist.all_reduce(ones)
    assert ones.eq(size).all(), f"the sum of {size} ones is {ones[0].item()}"

    mebibytes = 1
    while mebibytes <= options.largest:
        seconds = seconds_of(torch.zeros(mebibytes << 18, device=device), options.rounds)
        carried = (mebibytes << 20) * 2 * (size - 1) / size
        if rank == 0:
            print(f"{mebibytes:6d} MiB  {seconds * 1e3:10.2f} ms  {carried / seconds / 1e9:8.2f} GB/s", flush=True)
        mebibytes *= 4
    dist.barrier()
    dist.destroy_process_group()
    if backend == "gloo":
        # Gloo's threads outlive the group. One that still releases its last tensors while Python shuts down aborts the process (PyTorch 2.13,
        # github.com/pytorch/pytorch/issues/190489).
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
