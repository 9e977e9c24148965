#!/usr/bin/env python3
"""Whether wrapped programs use this node's GPUs as others do, and what that costs.

Usage: tests/gpu/check.py SOFTWARE [--build DIRECTORY] [--place DIRECTORY] [--runs N]

SOFTWARE is a directory with bin/python and torch. It becomes two installations, one for the host's root and one on a minimal base
(`containerize base bootstrap`), which gets its drivers from the host. In each of them, and without containerize, nvidia-smi, a
matrix product that is compared with the CPU's, and two epochs of training by torchrun (one rank for each GPU) are run; then `import torch` and a training
are timed. It needs no network and no privileges. On a node without a GPU everything runs on the CPU, and the output says so.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
EXAMPLES = SOURCE / "examples/ddp"
PRODUCT = """
import torch
one, two = torch.randn(512, 512), torch.randn(512, 512)
names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
device = "cuda" if names else "cpu"
difference = ((one.to(device) @ two.to(device)).cpu() - one @ two).abs().max().item()
assert difference < 0.1, difference
print(f"{torch.__version__}, {', '.join(names) or 'no GPU'}")
"""


def run(*words, **more) -> str:
    done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))} gave {done.returncode}:\n{done.stdout}")
    return done.stdout


def make_ways(tool: Path, software: Path, place: Path) -> dict[str, Path]:
    """The path of python for each way."""
    base = place / "base.sqfs"
    run(tool, "base", "bootstrap", "--python", "-o", base)
    ways = {"bare": software / "bin/python"}
    for name, words in (("on the host's root", []), ("in a minimal base", ["--base", str(base)])):
        prefix = place / name.replace(" ", "-").replace("'", "")
        run(tool, "wrap-install", "--no-profile", "--prefix", prefix, "-w", "bin", *words, software)
        ways[name] = prefix / "bin/python"
    return ways


def ranks_of(python: Path) -> int:
    """How many ranks train. NCCL refuses two ranks on one GPU."""
    return int(run(python, "-c", "import torch; print(torch.cuda.device_count())")) or 2


def check(name: str, python: Path, ranks: int, place: Path) -> str:
    """Runs the checks and returns the losses of the training."""
    debug = python.parent / "_debug_exec"
    program = [str(debug)] if debug.exists() else []
    if shutil.which("nvidia-smi"):
        print(f"{name}: {run(*program, 'nvidia-smi', '-L').strip()}")
    print(f"{name}: torch {run(python, '-c', PRODUCT).strip()}")
    with tempfile.TemporaryDirectory(dir=place) as work:
        told = run(python, "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}", EXAMPLES / "multi_gpu.py", "2", "2", cwd=work)
    losses = sorted(line.split("Final loss ")[1] for line in told.splitlines() if "Final loss" in line)
    assert len(losses) == ranks, told
    return " and ".join(losses)


def seconds(python: Path, *arguments, place: Path) -> float:
    with tempfile.TemporaryDirectory(dir=place) as work:
        start = time.perf_counter()
        run(python, *arguments, cwd=work)
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("software", type=Path)
    parser.add_argument("--build", type=Path, default=SOURCE / "build/release")
    parser.add_argument("--place", type=Path, default=Path(os.environ.get("TMPDIR", "/tmp")))
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="containerize-gpu-", dir=options.place) as directory:
        place = Path(directory)
        ways = make_ways(options.build / "bin/containerize", options.software, place)
        ranks = ranks_of(ways["bare"])
        losses = {name: check(name, python, ranks, place) for name, python in ways.items()}
        print(f"Losses: {losses}")
        assert len(set(losses.values())) == 1, "they differ"
        print("| | import torch, s | training, s |\n|---|---|---|")
        tasks = (("-c", "import torch"), (str(EXAMPLES / "single_gpu.py"), "20", "20"))
        measured = {name: [[] for _ in tasks] for name in ways}
        for _ in range(options.runs):
            for name, python in ways.items():
                for number, task in enumerate(tasks):
                    measured[name][number].append(seconds(python, *task, place=place))
        for name, of_tasks in measured.items():
            print(f"| {name} | " + " | ".join(f"{statistics.median(times):.2f}" for times in of_tasks) + " |")


if __name__ == "__main__":
    main()
