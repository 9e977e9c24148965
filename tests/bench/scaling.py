#!/usr/bin/env python3
"""What `import torch` asks of a parallel filesystem: counted on one node, and extrapolated to many nodes that start at once.

Usage (as root): tests/bench/scaling.py ENV VENV BASE [--plot FILE.svg]

ENV is an installation with its own Python (--bundle-python), VENV a venv with the same packages, BASE an image made by
`containerize base bootstrap -o`. The four ways are plain files, a container per program as tykky starts it (Debian unstable's
Apptainer with ENV's image), an installation, and an installation with a copy on the node. All system calls on ENV, VENV and BASE
are counted, as if nothing was cached. --plot draws the model: counts times nodes.
"""

import argparse
import os
import re
import subprocess
import tempfile
from pathlib import Path

from ranks import Contained, as_user, end_sessions

# Calls that a filesystem's metadata server answers, and calls that transfer data.
METADATA = ("openat", "open", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink",
            "readlinkat", "getdents64", "execve")
DATA = ("read", "pread64", "preadv")
PROGRAM = ("-c", "import torch")
NODES = (1, 10, 100, 1000, 10000)


def count_calls(trace: str, places: list[str]) -> tuple[int, int, int]:
    """Counts in a trace of `strace -f -y`: metadata calls on paths that contain one of `places`, data calls on such files, and their bytes."""
    metadata = data = size = 0
    for line in trace.splitlines():
        if not (call := re.match(r"(\w+)\((.*)", line)) or not any(place in call[2] for place in places):
            continue
        if call[1] in METADATA:
            metadata += 1
        elif call[1] in DATA and (read := re.search(r"= (\d+)$", line)):
            data += 1
            size += int(read[1])
    return metadata, data, size


def of_launch(trace: str) -> str:
    """The trace without the calls of the program itself, which go to the mount: the program begins with the second execve, if any."""
    calls = trace.split("execve(")
    return "execve(".join(calls[:2])


def traced(command: list[str], trace: Path, **options) -> list[str]:
    """The trace of each thread. strace writes one file per thread, because in a common file it splits calls in two."""
    calls = ",".join((*METADATA, *DATA))
    subprocess.run(["strace", "-ff", "--seccomp-bpf", "-qq", "-y", "-e", f"trace={calls}", "-o", str(trace), *map(str, command)], check=True, **options)
    return [file.read_text(errors="replace") for file in trace.parent.iterdir()]


def count(env: Path, venv: Path, base: Path) -> dict[str, tuple[int, int, int]]:
    found = {}
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)

        def trace(way: str) -> Path:
            (Path(place) / way).mkdir()
            (Path(place) / way).chmod(0o777)
            return Path(place) / way / "trace"

        found["plain files"] = count_calls("".join(traced([venv / "bin/python", *PROGRAM], trace("plain"), **as_user())), [str(venv)])
        # In a container, the same paths belong to its mounts, and only the images are on the filesystem. strace shows paths of the runtime's own mounts
        # relative to the root of that mount.
        contained = Contained(env, base)
        texts = traced(contained.machine.command([*contained.words, *PROGRAM]), trace("contained"))
        found["a container for each program"] = count_calls("".join(texts), [f"/{env.name}/env.sqfs", f"/{base.name}"])
        # Counts the launcher, the session and the server. strace waits for the session as well.
        for way, stage in (("an installation", "off"), ("an installation, staged", "ram")):
            end_sessions(env)
            options = as_user()
            options["env"] |= {"CONTAINERIZE_SESSION_IDLE": "0", "CONTAINERIZE_STAGE": stage}
            found[way] = count_calls("".join(map(of_launch, traced([env / "bin/python", *PROGRAM], trace(stage), **options))), [str(env)])
    return found


def plot(counts: dict[str, tuple[int, int, int]], file: Path):
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "containerize", "font.size": 9})
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.6), sharex=True)
    for kind, (axis, title) in enumerate(zip(axes, ("metadata requests", "reads"))):
        for way, counted in counts.items():
            axis.loglog(NODES, [nodes * counted[kind] for nodes in NODES], marker="o", markersize=3, label=way)
        axis.set_title(title)
        axis.set_xlabel("nodes that start at once")
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("env", "venv", "base"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--plot", type=Path, metavar="FILE.svg")
    options = parser.parse_args()
    counts = count(options.env, options.venv, options.base)
    print("| on one node | metadata requests | reads | MB |\n|---|---|---|---|")
    for way, (metadata, data, size) in counts.items():
        print(f"| {way} | {metadata:,} | {data:,} | {size / 1e6:,.1f} |")
    if options.plot:
        plot(counts, options.plot)


if __name__ == "__main__":
    main()
