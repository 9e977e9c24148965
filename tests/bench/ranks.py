#!/usr/bin/env python3
"""What many ranks on a node cost until `import torch` is done: with wrappers, and from a plain venv.

Usage (as root, to drop the page cache):
    tests/bench/ranks.py ENV VENV [--counts 1,8,32,64] [--runs N] [--cold] [--apptainer BASE]

ENV is an installation and VENV a venv with the same packages. Each rank imports torch and waits until all ranks have. Measured are
the time until then, the CPU time of ranks and servers, and their memory, with each shared page counted once. The ways take turns, as
the user containerize-test. --apptainer adds a way in which each rank runs in its own `apptainer exec`, like with tykky: a container
of the image BASE (`containerize base bootstrap`) with ENV's image mounted in it. ENV must then contain its own Python
(--bundle-python); Apptainer comes from Debian unstable (tests/lib/machine.py). scaling.py counts what a rank asks of the filesystem.
"""

import argparse
import os
import pwd
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
import machine  # noqa: E402
from bench import drop_caches, end_sessions, sessions  # noqa: E402

USER = "containerize-test"
RANK = "import sys, torch; print('ready', flush=True); sys.stdin.read()"


def as_user(**more):
    entry = pwd.getpwnam(USER)
    environment = {"HOME": entry.pw_dir, "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": [], "env": environment, **more}


def stat_of(pid: int) -> list[str]:
    """The fields from the state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu_seconds(pid: int) -> float:
    """Includes its children that have ended."""
    return sum(map(int, stat_of(pid)[11:15])) / os.sysconf("SC_CLK_TCK")


def with_descendants(pids: list[int]) -> list[int]:
    children = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            children.setdefault(int(stat_of(int(entry.name))[1]), []).append(int(entry.name))
        except OSError:
            pass
    found = list(pids)
    for pid in found:
        found += children.get(pid, [])
    return found


def memory(pid: int) -> int:
    """In bytes. A shared page counts in part for each process that shares it."""
    return int(re.search(r"^Pss: +(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)[1]) * 1024


class Direct:
    """A program started directly."""

    def __init__(self, python: Path):
        self.python = python

    def start(self, *arguments, **more) -> subprocess.Popen:
        return subprocess.Popen([self.python, *arguments], **more, **as_user())


class Contained(Direct):
    """Each rank in its own container."""

    def __init__(self, env: Path, base: Path):
        super().__init__(env / "bin/python")
        options = as_user()
        user = SimpleNamespace(entry=pwd.getpwnam(USER), environment={**options["env"], "HOME": "/tmp"})
        root = machine.make_root(Path("/var/cache/containerize-tests"))
        self.machine = machine.Machine(root, user, [Path("/tmp"), env, base.parent])
        self.words = ["apptainer", "--silent", "exec", "-B", f"{env}/env.sqfs:{env}:image-src=/", str(base), str(self.python)]

    def start(self, *arguments, **more):
        return subprocess.Popen(self.machine.command([*self.words, *arguments]), **more)


def measure(way: Direct, env: Path, count: int) -> tuple[float, float, float]:
    """Returns seconds, CPU seconds and bytes of memory."""
    before = sum(map(cpu_seconds, sessions(env)))
    begin = time.perf_counter()
    ranks = [way.start("-c", RANK, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count)]
    for rank in ranks:
        assert rank.stdout.readline() == b"ready\n"
    seconds = time.perf_counter() - begin
    everything = with_descendants([rank.pid for rank in ranks]) + sessions(env)
    cpu, size = sum(map(cpu_seconds, everything)) - before, sum(map(memory, everything))
    for rank in ranks:
        rank.stdin.close()
        rank.wait()
    return seconds, cpu, size


def compare(env: Path, venv: Path, base: Path | None, counts: list[int], runs: int, cold: bool):
    ways = {"plain venv": Direct(venv / "bin/python"), "wrapped": Direct(env / "bin/python")}
    if base:
        ways["Apptainer for each rank"] = Contained(env, base)
    print("| ranks | way | seconds | CPU seconds | memory, MB |\n|---|---|---|---|---|")
    for count in counts:
        results = {way: [] for way in ways}
        for _ in range(runs):
            for name, way in ways.items():
                end_sessions(env)
                if cold:
                    drop_caches()
                else:
                    assert way.start("-c", "import torch").wait() == 0
                results[name].append(measure(way, env, count))
        for way, measured in results.items():
            seconds, cpu, size = (statistics.median(values) for values in zip(*measured))
            print(f"| {count} | {way} | {seconds:.2f} | {cpu:.2f} | {size / 1e6:,.0f} |", flush=True)
    end_sessions(env)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env", type=Path)
    parser.add_argument("venv", type=Path)
    parser.add_argument("--counts", default="1,8,32,64")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--apptainer", type=Path, metavar="BASE")
    options = parser.parse_args()
    if os.getuid() != 0:
        sys.exit("ranks.py: only root can drop the page cache")
    compare(options.env, options.venv, options.apptainer, [int(count) for count in options.counts.split(",")], options.runs, options.cold)


if __name__ == "__main__":
    main()
