#!/usr/bin/env python3
"""Launch and import with containerize, compared with the same tree as plain files, on the kernel's squashfs and on squashfuse_ll.

Usage (as root, to drop the page cache and mount):
    tests/bench/bench.py [--runs N] [--only NAME,...] [--build DIR] [--keep DIR]

All ways take turns in one run. The table has medians, the spread, and ratios to the plain files and to the kernel's mount.
Programs run as the user containerize-test, which tests/run.sh creates.
"""

import argparse
import ctypes
import os
import pwd
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from common import wait_for_recordings  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
REQUIREMENTS = "torch==2.13.0\nnumpy\nscipy\nsympy\nrequests\n"
# What Python reads from the host at every start. It is read before each cold run, because it is not to be measured.
HOST_WARMUP = "import json, ctypes, subprocess, hashlib, ssl, decimal, sqlite3"


def shell(command, **more):
    return subprocess.run(command, shell=True, check=True, **more)


def as_user(*argv, **more):
    entry = pwd.getpwnam("containerize-test")
    passed_on = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "XDG_RUNTIME_DIR"))}
    return subprocess.run(
        [str(one) for one in argv],
        user=entry.pw_uid,
        group=entry.pw_gid,
        extra_groups=[],
        cwd="/",
        env={"HOME": entry.pw_dir, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **passed_on},
        check=True,
        **more,
    )


def drop_caches():
    shell("sync; echo 3 > /proc/sys/vm/drop_caches")


def have_own_mounts():
    """From now on, only this process and its children see what they mount, and it is unmounted when they end, even if they are killed."""
    new_mount_namespace = 0x00020000  # CLONE_NEWNS
    if ctypes.CDLL(None, use_errno=True).unshare(new_mount_namespace) != 0:
        raise OSError(ctypes.get_errno(), "cannot make a mount namespace")
    shell("mount --make-rprivate /")


def have_own_sessions(place):
    """From now on, launches neither join a session that something else on this machine has started, nor start one that others join."""
    runtime = place / "run"
    runtime.mkdir(mode=0o700)
    shutil.chown(runtime, "containerize-test")
    os.environ["XDG_RUNTIME_DIR"] = str(runtime)


def sessions(below):
    """The session processes that installations below this directory have started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            program = os.fsdecode((entry / "cmdline").read_bytes().split(b"\0")[0])
        except OSError:
            continue
        if program.startswith(f"{below}/") and "/libexec/containerize-session-" in program:
            found.append(int(entry.name))
    return found


def end_sessions(below):
    deadline = time.monotonic() + 30
    while found := sessions(below):
        assert time.monotonic() < deadline, f"these processes do not end: {found}"
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def memory_kb(pids):
    total = 0
    for pid in pids:
        match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
        total += int(match.group(1)) if match else 0
    return total


class Bare:
    name = "bare"

    def __init__(self, tree):
        self.tree = tree

    def fresh(self):
        """Puts the way in the state of a node on which nothing of it was read."""

    def stop(self):
        pass

    def reader(self):
        """The process that reads the image, if there is one."""
        return None


class Ours(Bare):
    name = "containerize"

    def fresh(self):
        end_sessions(self.tree)

    stop = fresh

    def reader(self):
        return max(sessions(self.tree))


class Kernel(Bare):
    name = "kernel mount"

    def __init__(self, image, place):
        super().__init__(place / "kernel")
        self.image = image
        self.tree.mkdir()
        self.mounted = False

    def fresh(self):
        self.stop()
        shell(f"mount -o loop,ro {self.image} {self.tree}")
        self.mounted = True

    def stop(self):
        if self.mounted:
            shell(f"umount {self.tree}")
        self.mounted = False


class Squashfuse(Bare):
    name = "squashfuse_ll"

    def __init__(self, image, place):
        super().__init__(place / "squashfuse")
        self.image = image
        self.tree.mkdir()
        shutil.chown(self.tree, "containerize-test")
        self.mounted = False

    def fresh(self):
        self.stop()
        as_user("squashfuse_ll", self.image, self.tree)
        self.mounted = True

    def stop(self):
        if self.mounted:
            as_user("fusermount3", "-u", self.tree)
        self.mounted = False

    def reader(self):
        return int(subprocess.run(["pgrep", "-n", "squashfuse_ll"], capture_output=True, check=True).stdout)


def import_torch(way):
    as_user(way.tree / "bin/python", "-c", "import torch")


def eight_ranks(way):
    python = f"{way.tree}/bin/python"
    as_user("sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do {python} -c 'import torch' & done; wait")


def list_all(way):
    # For containerize, inside the installation.
    inside(way, "ls", "-lR", f"{way.tree}/lib")


def cat_all(way):
    inside(way, "sh", "-c", f"find {way.tree}/lib -type f -print0 | xargs -0 cat > /dev/null")


def inside(way, *command):
    prefix = [way.tree / "bin/_debug_exec"] if isinstance(way, Ours) else []
    as_user(*prefix, *command, stdout=subprocess.DEVNULL)


def start_python(way):
    as_user(way.tree / "bin/python", "-c", "pass")


def first_start(way):
    as_user(way.tree / "bin/python", "-c", "pass")


# name -> (function, drop the page cache first, start or mount afresh, runs for each of --runs)
TASKS = {
    "python -c pass, warm": (start_python, False, False, 6),
    "python -c pass, first on a node": (first_start, False, True, 3),
    "import torch, warm": (import_torch, False, False, 1),
    "import torch, cold": (import_torch, True, True, 1),
    "8 x import torch, warm": (eight_ranks, False, False, 1),
    "8 x import torch, cold": (eight_ranks, True, True, 1),
    "ls -lR, cold": (list_all, True, True, 1),
    "ls -lR, warm": (list_all, False, False, 1),
    "cat of all files, cold": (cat_all, True, True, 1),
    "cat of all files, warm": (cat_all, False, False, 1),
}


def measure(task, ways, runs):
    work, cold, fresh, factor = TASKS[task]
    times = {way.name: [] for way in ways}
    for way in ways:
        way.fresh()
        work(way)
    for _ in range(runs * factor):
        for way in ways:
            if fresh:
                way.fresh()
            if cold:
                drop_caches()
                as_user("/usr/bin/python3", "-c", HOST_WARMUP)
            start = time.perf_counter()
            work(way)
            times[way.name].append((time.perf_counter() - start) * 1000)
    bare = statistics.median(times["bare"])
    kernel = statistics.median(times["kernel mount"])
    for way in ways:
        values = times[way.name]
        median = statistics.median(values)
        print(
            f"| {task} | {way.name} | {median:,.1f} | {min(values):,.1f} to {max(values):,.1f} | "
            f"{median / bare:.2f} | {median / kernel:.2f} |",
            flush=True,
        )


def count(ways):
    """Counts the server's system calls during import torch: unlike times, counts do not depend on the load of the machine."""
    print("\n| import torch | requests cold | reads of the image cold | requests warm | reads warm | memory of servers |")
    print("| --- | --- | --- | --- | --- | --- |")
    for way in ways:
        if not isinstance(way, (Ours, Squashfuse)):
            continue
        way.fresh()
        start_python(way)
        way.fresh()
        as_user(*([way.tree / "bin/_debug_exec"] if isinstance(way, Ours) else []), "true")
        drop_caches()
        cells = []
        for _ in ("cold", "warm"):
            with tempfile.NamedTemporaryFile("r") as trace:
                strace = subprocess.Popen(
                    ["strace", "-f", "-e", "trace=read,pread64", "-o", trace.name, "-p", str(way.reader())],
                    stderr=subprocess.PIPE,
                )
                strace.stderr.readline()
                import_torch(way)
                strace.send_signal(signal.SIGINT)
                strace.communicate()
                done = [line for line in trace.read().splitlines() if re.search(r"= [1-9][0-9]*$", line)]
                reads = sum("pread64" in line for line in done)
                cells += [str(len(done) - reads), str(reads)]
        pids = sessions(way.tree) if isinstance(way, Ours) else [way.reader()]
        print(f"| {way.name} | {' | '.join(cells)} | {memory_kb(pids) / 1000:.0f} MB |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", default="", help="tasks whose names contain one of these")
    parser.add_argument("--build", type=Path, default=SOURCE / "build/release")
    parser.add_argument("--keep", type=Path, help="directory with the environment of an earlier run, or to keep it in")
    options = parser.parse_args()
    if os.getuid() != 0:
        sys.exit("bench.py must run as root: it drops the page cache and mounts images")

    have_own_mounts()
    place = Path(tempfile.mkdtemp(prefix="containerize-bench-", dir="/var/tmp"))
    place.chmod(0o755)
    have_own_sessions(place)
    home = options.keep or place
    home.mkdir(exist_ok=True)
    shutil.chown(home, "containerize-test")
    shell(f"cmake --install {options.build} --prefix {place}/tool > /dev/null")
    env = home / "env"
    tree = home / "bare"
    if not env.exists():
        spec = place / "requirements.txt"
        spec.write_text(REQUIREMENTS)
        as_user(place / "tool/bin/containerize", "new", "--installer", "pip", "--prefix", env, spec)
        wait_for_recordings(pwd.getpwnam("containerize-test").pw_uid)
        as_user("unsquashfs", "-q", "-n", "-d", tree, env / "env.sqfs")
    else:
        # The environment may come from an earlier build.
        as_user(place / "tool/bin/containerize", "upgrade", env)
    image = env / "env.sqfs"
    image.chmod(0o644)

    ways = [Bare(tree), Ours(env), Kernel(image, place), Squashfuse(image, place)]
    chosen = [task for task in TASKS if not options.only or any(part in task for part in options.only.split(","))]
    try:
        files = sum(1 for path in tree.rglob("*") if path.is_file())
        print(f"{files:,} files, image of {image.stat().st_size / 1e6:,.0f} MB, {os.cpu_count()} CPUs, "
              f"Linux {os.uname().release}, {options.runs} runs\n")
        print("| task | way | median ms | spread ms | x bare | x kernel mount |")
        print("| --- | --- | --- | --- | --- | --- |")
        for task in chosen:
            measure(task, ways, options.runs)
        if not options.only or "counts" in options.only:
            count(ways)
    finally:
        for way in ways:
            way.stop()
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
