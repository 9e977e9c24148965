#!/usr/bin/env python3
"""A first `import torch` on a node with slow storage: with and without reading ahead, compared with the alternatives.

Usage (as root, to drop the page cache and mount):
    tests/bench/cold.py --tree DIR [--runs N] [--delays MS,...] [--ranks N,...] [--build DIR] [--only TABLE]

--tree is an environment with torch as a plain directory: a venv, or an unpacked image. There are two tables, and in each all ways
take turns: in "injected" our server waits before each read of the image; in "filesystem" everything is on a filesystem that waits
at each open and read (tests/lib/slow_filesystem.cpp). Before each run the page cache is dropped, every server is started afresh,
and what Python reads from the host itself is read again.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench
from bench import HOST_WARMUP, SOURCE, as_user, drop_caches, end_sessions, have_own_mounts, have_own_sessions, shell

IMPORT = "import torch"


class Directory(bench.Bare):
    """The plain tree."""

    name = "plain directory"

    def command(self):
        return [self.tree / "bin/python", "-c", IMPORT]

    def reads(self):
        return ""


class Ours(Directory):
    def __init__(self, name, place, prefix, prefetch, delay_ms=0):
        super().__init__(prefix)
        self.name = name
        self.place = place  # of all installations
        self.variables = [f"CONTAINERIZE_PREFETCH={prefetch}", f"CONTAINERIZE_DEBUG_READ_DELAY={int(delay_ms * 1000)}"]

    def fresh(self):
        end_sessions(self.place)

    stop = fresh

    def command(self):
        return ["env", *self.variables, self.tree / "bin/python", "-c", IMPORT]

    def reads(self):
        done = as_user(self.place / "tool/bin/containerize", "stats", "--json", self.tree, stdout=subprocess.PIPE, text=True)
        statistics_ = json.loads(done.stdout)
        return f"{statistics_['reads']:,} ({statistics_['bytes_read'] / 1e6:,.0f} MB)"


class Squashfuse(Directory, bench.Squashfuse):
    """One mount for all ranks."""

    name = "squashfuse_ll, one mount"


class MountEach(Directory):
    """Like tykky's wrappers without their container: each process mounts the image for itself."""

    name = "squashfuse_ll, a mount each"

    def __init__(self, image, place):
        super().__init__(place / "each")
        self.image = image
        self.tree.mkdir()
        shutil.chown(self.tree, "containerize-test")

    def command(self):
        script = 'd=$(mktemp -d "$2/XXXXXX") && squashfuse_ll "$1" "$d" && "$d/bin/python" -c "$3"; s=$?; fusermount3 -u "$d"; exit $s'
        return ["sh", "-c", script, "sh", self.image, self.tree, IMPORT]


def run_once(way, ranks):
    way.fresh()
    drop_caches()
    as_user("/usr/bin/python3", "-c", HOST_WARMUP)
    command = [str(word) for word in way.command()]
    start = time.perf_counter()
    if ranks == 1:
        as_user(*command)
    else:
        # Not `wait -n`: it may miss ranks that end at the same time.
        as_user("bash", "-c", 'n=$1; shift; for ((i = 0; i < n; i++)); do "$@" & ranks+=($!); done; for rank in "${ranks[@]}"; do wait $rank || exit; done',
                "bash", ranks, *command)
    return (time.perf_counter() - start) * 1000


def table(title, ways, delays, ranks_list, runs, slow):
    """`slow(delay)` sets the delay of the storage and returns the ways."""
    print(f"\n| {title} | ranks | " + " | ".join(f"{delay:g} ms" for delay in delays) + " | reads of the image |")
    print("| --- | --- | " + " | ".join("---" for _ in delays) + " | --- |")
    times, reads = {}, {}
    for ranks in ranks_list:
        for delay in delays:
            for way in slow(delay):
                way.fresh()
            for _ in range(runs):
                for way in ways:
                    times.setdefault((way.name, ranks, delay), []).append(run_once(way, ranks))
                    reads[way.name, ranks] = way.reads()
                    print(f"{way.name}, {ranks} ranks, {delay} ms: {times[way.name, ranks, delay][-1]:,.0f} ms", file=sys.stderr, flush=True)
            for way in ways:
                way.stop()
        for way in ways:
            cells = [f"{statistics.median(times[way.name, ranks, delay]):,.0f}" for delay in delays]
            print(f"| {way.name} | {ranks} | {' | '.join(cells)} | {reads[way.name, ranks]} |", flush=True)


class SlowFilesystem:
    def __init__(self, program, directory, mounted):
        self.program, self.directory, self.mounted = program, directory, mounted
        self.server = None
        mounted.mkdir()

    def begin(self, delay_ms):
        self.end()
        self.server = subprocess.Popen([self.program, self.directory, self.mounted, str(int(delay_ms * 1000))])
        deadline = time.monotonic() + 30
        while not os.path.ismount(self.mounted):
            assert self.server.poll() is None and time.monotonic() < deadline, "the slow filesystem did not come up"
            time.sleep(0.01)
        # Like parallel filesystems: several megabytes of read-ahead for files that are read sequentially.
        device = os.stat(self.mounted).st_dev
        bdi = Path(f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}/read_ahead_kb")
        bdi.write_text("4096\n")

    def end(self):
        if self.server is None:
            return
        shell(f"umount -l {self.mounted}")
        self.server.wait()
        self.server = None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--delays", default="0,1,5")
    parser.add_argument("--ranks", default="1,8")
    parser.add_argument("--only", default="", help="injected or filesystem")
    parser.add_argument("--build", type=Path, default=SOURCE / "build/release")
    parser.add_argument("--place", default="/var/tmp", help="where there is room for the tree and three images")
    options = parser.parse_args()
    if os.getuid() != 0:
        sys.exit("cold.py must run as root: it drops the page cache and mounts filesystems")
    delays = [float(delay) for delay in options.delays.split(",")]
    ranks = [int(count) for count in options.ranks.split(",")]

    have_own_mounts()
    place = Path(tempfile.mkdtemp(prefix="containerize-cold-", dir=options.place))
    place.chmod(0o755)
    have_own_sessions(place)
    backing, slow = place / "backing", place / "slow"
    backing.mkdir()
    shutil.chown(place, "containerize-test")
    shutil.chown(backing, "containerize-test")
    shell(f"cmake --install {options.build} --prefix {place}/tool > /dev/null")
    tool = place / "tool/bin/containerize"
    filesystem = SlowFilesystem(options.build / "tests/slow_filesystem", backing, slow)
    try:
        env = backing / "env"
        as_user(tool, "-h", stdout=subprocess.DEVNULL)
        as_user(tool, "wrap-install", "--no-profile", "--prefix", env, options.tree)
        as_user(tool, "profile", env, "--", "python", "-c", IMPORT)
        placed = backing / "placed"
        shutil.copytree(env, placed, symlinks=True)
        for path in [placed, *placed.rglob("*")]:
            shutil.chown(path, "containerize-test")
        manifest = placed / "containerize.json"
        manifest.write_text(manifest.read_text().replace(str(env), str(placed)))
        as_user(tool, "squash", "--layout", "profile", placed)
        as_user(tool, "profile", placed, "--replace", "--", "python", "-c", IMPORT)
        for prefix in (env, placed):
            as_user(tool, "inspect", prefix)
        if options.only in ("", "injected"):
            ways = [Ours("as it is", place, env, "off"), Ours("read ahead", place, env, "on"),
                    Ours("read ahead, recorded files first", place, placed, "on")]

            def inject(delay):
                for way in ways:
                    way.variables[1] = f"CONTAINERIZE_DEBUG_READ_DELAY={int(delay * 1000)}"
                return ways

            table("delay before each read of the image", ways, delays, ranks, options.runs, inject)
        if options.only in ("", "filesystem"):
            subprocess.run(["cp", "-a", str(options.tree), str(backing / "tree")], check=True)
            # Manifests contain the path where an installation was built; here they are used through the slow filesystem.
            for prefix in (env, placed):
                manifest = prefix / "containerize.json"
                manifest.write_text(manifest.read_text().replace(str(backing), str(slow)))
            image = slow / "env/env.sqfs"
            ways = [Directory(slow / "tree"), MountEach(image, place), Squashfuse(image, place),
                    Ours("containerize, not read ahead", place, slow / "env", "off"),
                    Ours("containerize", place, slow / "env", "auto"),
                    Ours("containerize, recorded files first", place, slow / "placed", "auto")]

            def remount(delay):
                for way in ways:
                    way.stop()
                filesystem.begin(delay)
                return ways

            table("filesystem that waits at each open and read", ways, delays, ranks, options.runs, remount)
            for way in ways:
                way.stop()
    finally:
        end_sessions(place)
        filesystem.end()
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
