#!/usr/bin/env python3
"""What an update costs compared with a rebuild, what layers cost at a launch and at a squash, and wrap-install compared with mksquashfs.

Usage (as root, to drop the page cache):
    tests/bench/update.py TREE [--runs N] [--only update,launch,squash,wrap] [--files N] [--build DIR]

TREE is a large venv (bench.py --keep makes one). Its files become the packages of the environment that is updated, and it is the
software that is wrapped. All ways take turns, as the user containerize-test.
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

from bench import SOURCE, as_user, drop_caches, end_sessions, have_own_sessions, shell

sys.path.insert(0, str(SOURCE / "tests/lib"))
from python_wheels import wheel

LARGEST = 200_000  # larger files are left out: environments consist of many small ones
LAYERS = 10
# Runs a command and writes how many bytes it and the processes it waited for wrote to disk.
COUNTING = """import subprocess, sys
code = subprocess.run(sys.argv[2:]).returncode
counts = dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())
with open(sys.argv[1], "w") as out:
    out.write(counts["write_bytes"])
sys.exit(code)
"""
# Launches a command N times and prints the milliseconds of each launch.
LAUNCH = """import subprocess, sys, time
for _ in range(int(sys.argv[1])):
    start = time.perf_counter()
    subprocess.run(sys.argv[2:], check=True)
    print((time.perf_counter() - start) * 1000)
"""


def row(name, values, unit="s", digits=2):
    print(f"| {name} | {statistics.median(values):,.{digits}f} {unit} | {min(values):,.{digits}f} to {max(values):,.{digits}f} |", flush=True)


def header(title):
    print(f"\n| {title} | median | spread |\n| --- | --- | --- |", flush=True)


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def files_of(tree):
    return [path for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts
            and path.stat().st_size < LARGEST]


def wheels_of(tree, place, count):
    """Wheels with COUNT files in total, a small wheel, and the number of its modules."""
    files = files_of(tree)
    wheels = []
    for number, start in enumerate(range(0, count, len(files))):
        # The first line differs in each round, because equal files would be stored once.
        wheels.append(wheel(place, f"bulk{number}", {f"bulk{number}/{path.relative_to(tree)}": f"# {number}\n".encode() + path.read_bytes()
                                                     for path in files[: count - start]}))
    modules = [path for path in files if path.suffix == ".py" and path.stat().st_size > 2000][:40]
    small = wheel(place, "small", {f"small/module{number}.py": b"# small\n" + path.read_bytes() for number, path in enumerate(modules)})
    return wheels, small, len(modules)


class Bench:
    def __init__(self, place, tool, options):
        self.place, self.tool, self.options = place, tool, options

    def containerize(self, verb, *argv):
        """Returns the bytes that it wrote to disk. Nothing is recorded in the background, because that would disturb what is measured next."""
        counted = self.place / "written"
        options = ["--no-profile"] if verb in ("new", "update", "wrap-install") else []
        as_user("/usr/bin/python3", "-c", COUNTING, counted, self.tool, verb, *options, *argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return int(counted.read_text())

    def user_file(self, name, text):
        path = self.place / name
        path.write_text(text)
        return path

    def update(self):
        wheels, small, count = wheels_of(self.options.tree, self.place, self.options.files)
        spec = self.user_file("requirements.txt", "".join(f"{path}\n" for path in wheels))
        both = self.user_file("both.txt", spec.read_text() + f"{small}\n")
        prefixes = {name: self.place / name for name in ("update", "rebuild")}
        for prefix in prefixes.values():
            self.containerize("new", "--installer", "pip", "--prefix", prefix, spec)
        commands = {"update": ["update", prefixes["update"], "--", "pip", "install", "-q", "--no-deps", small],
                    "rebuild": ["new", "--force", "--installer", "pip", "--prefix", prefixes["rebuild"], both]}
        times, written, layers = {name: [] for name in commands}, {name: [] for name in commands}, []
        for _ in range(self.options.runs):
            for name, command in commands.items():
                shell("sync")
                start = time.perf_counter()
                written[name].append(self.containerize(*command) / 1e6)
                times[name].append(time.perf_counter() - start)
            manifest = json.loads((prefixes["update"] / "containerize.json").read_text())
            layers.append(manifest["layers"][-1]["size"] / 1e6)
            self.containerize("rollback", prefixes["update"], "1")
        alone = self.packed_alone(small) / 1e6
        header(f"a package of {count} modules into {self.options.files:,} files")
        for name in commands:
            row(name, times[name])
        row("the layer", layers, "MB", 3)
        row("the same files, packed by mksquashfs", [alone], "MB", 3)
        for name in commands:
            row(f"{name}: written to disks", written[name], "MB")
        print(f"\nrebuild / update {statistics.median(times['rebuild']) / statistics.median(times['update']):.1f}, "
              f"layer / files {statistics.median(layers) / alone:.2f}")

    def packed_alone(self, package):
        """The size of an image that contains only what pip installs of this package."""
        target, image = self.place / "alone", self.place / "alone.sqfs"
        as_user("/usr/bin/python3", "-m", "pip", "install", "-q", "--no-deps", "--target", target, package)
        self.mksquashfs(target, image)
        return image.stat().st_size

    def mksquashfs(self, tree, image):
        # With the low priority at which containerize builds outside of jobs.
        as_user("nice", "-n", "19", "ionice", "-c", "3", "mksquashfs", tree, image, "-comp", "zstd", "-Xcompression-level", "3", "-b", "128K", "-processors", os.cpu_count(),
                "-quiet", "-no-progress", "-noappend", stdout=subprocess.DEVNULL)

    def launch(self):
        source = self.user_file("true.c", "int main(void) { return 0; }\n")
        shell(f"gcc -static -O2 -o {self.place}/true {source}")
        add = self.user_file("add.sh", f"cp {self.place}/true $env_root/bin/static-true\n")
        prefixes = {count: self.place / f"layers{count}" for count in (1, LAYERS)}
        spec = self.user_file("launch.txt", "six\n")
        for count, prefix in prefixes.items():
            self.containerize("new", "--prefix", prefix, "--post-install", add, spec)
            for number in range(count):
                self.containerize("update", prefix, "--", "sh", "-c", f"echo {number} > {prefix}/lib/change{number}")
        header("a launch")
        for what, command in (("static true", ["bin/static-true"]), ("python -c pass", ["bin/python", "-c", "pass"])):
            for cold in (False, True):
                times = {count: [] for count in prefixes}
                for turn in range(self.options.runs * (2 if cold else 20)):
                    for count, prefix in prefixes.items():
                        if cold:
                            end_sessions(self.place)
                            drop_caches()
                            as_user("/usr/bin/python3", "-c", "import json, subprocess")
                        # Forked by a small, warm process.
                        shown = as_user("/usr/bin/python3", "-c", LAUNCH, 1 if cold else 20, prefix / command[0], *command[1:],
                                        stdout=subprocess.PIPE, text=True).stdout
                        times[count] += map(float, shown.split())
                for count in prefixes:
                    row(f"{what}, {count} layers, {'cold' if cold else 'warm'}", times[count], "ms")
                print(f"\n{what}, {LAYERS} layers / 1, {'cold' if cold else 'warm'}: "
                      f"{statistics.median(times[LAYERS]) / statistics.median(times[1]):.2f}\n")

    def squash(self):
        """Of LAYERS layers with a twentieth of the tree's files each. With --compression, all is compressed again."""
        prefix, layered = self.place / "squashed", self.place / "layered"
        self.containerize("wrap-install", "--prefix", prefix, self.options.tree)
        files = files_of(self.options.tree)
        for number in range(LAYERS):
            # The first line differs in each layer, because equal files would be stored once.
            content = {path.relative_to(self.options.tree): f"# {number}\n".encode() + path.read_bytes() for path in files[: len(files) // 20]}
            archive = wheel(self.place / "layers", f"layer{number}", {str(path): text for path, text in content.items()})
            self.containerize("update", prefix, "--", "/usr/bin/python3", "-m", "zipfile", "-e", archive, prefix / f"layer{number}")
        prefix.rename(layered)
        ways = {"squash": [], "squash --compression zstd:3": ["--compression", "zstd:3"]}
        times, sizes = {name: [] for name in ways}, {name: [] for name in ways}
        for _ in range(self.options.runs):
            for name, options in ways.items():
                shutil.rmtree(prefix, ignore_errors=True)
                as_user("cp", "-a", layered, prefix)
                shell("sync")
                times[name].append(seconds(lambda options=options: (self.containerize("squash", *options, prefix), shell("sync"))))
                sizes[name].append(json.loads((prefix / "containerize.json").read_text())["image"]["size"] / 1e6)
        header(f"{LAYERS} layers into one image")
        for name in ways:
            row(name, times[name])
            row(f"{name}: the image", sizes[name], "MB")

    def wrap(self):
        prefix, image = self.place / "wrapped", self.place / "wrapped.sqfs"
        wrap = ["wrap-install", "--force", "--prefix", prefix, self.options.tree]
        works = {"wrap-install": lambda: self.containerize(*wrap),
                 "mksquashfs": lambda: self.mksquashfs(self.options.tree, image)}
        times = {name: [] for name in works}
        for work in works.values():
            work()  # this reads the tree into the page cache
        for _ in range(self.options.runs):
            for name, work in works.items():
                image.unlink(missing_ok=True)
                shell("sync")
                times[name].append(seconds(lambda: (work(), shell("sync"))))
        header("a tree into an image")
        for name in works:
            row(name, times[name])
        print(f"\nwrap-install / mksquashfs {statistics.median(times['wrap-install']) / statistics.median(times['mksquashfs']):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--only", default="update,launch,squash,wrap")
    parser.add_argument("--files", type=int, default=50_000)
    parser.add_argument("--build", type=Path, default=SOURCE / "build/release")
    options = parser.parse_args()
    if os.getuid() != 0:
        sys.exit("update.py must run as root: it drops the page cache")
    place = Path(tempfile.mkdtemp(prefix="containerize-bench-", dir="/var/tmp"))
    shutil.chown(place, "containerize-test")
    place.chmod(0o755)
    have_own_sessions(place)
    try:
        shell(f"cmake --install {options.build} --prefix {place}/tool > /dev/null")
        bench = Bench(place, place / "tool/bin/containerize", options)
        for name in options.only.split(","):
            getattr(bench, name)()
    finally:
        end_sessions(place)
        shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
