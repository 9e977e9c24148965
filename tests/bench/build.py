#!/usr/bin/env python3
"""Building an environment from a requirements file, compared with what installs and packs without package images.

Usage (as root, to drop the page cache):
    tests/bench/build.py [--only torch,small,stack,section] [--runs N] [--build DIR] [--uv UV]

The ways take turns, as the user containerize-test, with all downloads in the caches of pip and uv:
    first         containerize new, without package images
    again         the same with them
    pip           python -m venv, pip install, compileall, mksquashfs
    uv            uv venv, uv pip install, compileall, mksquashfs
`section` is a conda environment with a `pip:` section, for which there is another way instead of the last two:
    pip-tree      like `again`, but pip installs the section in the environment
CPU time and memory are those of all processes of a way, memory that of the largest one. Disk use is the most that the filesystem
had less than before, looked at twenty times a second.
"""

import argparse
import os
import pwd
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench import SOURCE, drop_caches

sys.path.insert(0, str(SOURCE / "tests/lib"))
import conda_channel
from python_wheels import wheel

SMALL = 200
TORCH = "torch==2.13.0\nnumpy\nscipy\nrequests\n"
STACK = "\n".join(["torch==2.13.0", "jax", "ray", "transformers", "jupyterlab", "dask[complete]", "pyarrow", "pandas", "scikit-learn", "matplotlib",
                   "numba", "polars", "duckdb", "lightning", "datasets", "xarray", "sympy", "networkx", "plotly", "h5py"]) + "\n"
SECTION = "jupyterlab, pandas, scipy, matplotlib, scikit-learn"
COLUMNS = ("seconds", "CPU", "memory", "disk", "written")


class DiskUse(threading.Thread):
    """The most that was in use at once, compared with the start."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.place, self.ended, self.least = place, threading.Event(), self.free(place)
        self.first = self.least

    @staticmethod
    def free(place):
        about = os.statvfs(place)
        return about.f_bfree * about.f_frsize

    def run(self):
        while not self.ended.wait(0.05):
            self.least = min(self.least, self.free(self.place))

    def peak(self):
        self.ended.set()
        self.join()
        return self.first - self.least


MEASURING = """import resource, subprocess, sys
for command in sys.argv[2:]:
    subprocess.run(["sh", "-ec", command], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
counts = dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())
with open(sys.argv[1], "w") as out:
    print(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, counts["write_bytes"], file=out)
"""


def measured(work, commands, environment):
    os.sync()
    disk = DiskUse(work)
    disk.start()
    start = time.perf_counter()
    entry = pwd.getpwnam("containerize-test")
    done = subprocess.run([sys.executable, "-c", MEASURING, str(work / "measured"), *commands], env=environment, cwd=work, stderr=subprocess.PIPE,
                          text=True, user=entry.pw_uid, group=entry.pw_gid, extra_groups=[])
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{commands}\n{done.stderr}")
    cpu, memory, written = (work / "measured").read_text().split()
    return dict(zip(COLUMNS, (seconds, float(cpu), int(memory), disk.peak(), int(written))))


def ways_of(work, requirements, tool, uv):
    venv, image = work / "venv", work / "image.sqfs"
    pack = [f"{venv}/bin/python -m compileall -q -j0 --invalidation-mode unchecked-hash {venv}/lib || true",
            f"mksquashfs {venv} {image} -comp zstd -Xcompression-level 3 -b 128K -no-progress -quiet -processors $(nproc)", f"sync {image}"]
    build = f"{tool} new --quiet --prefix {work}/env --no-profile {requirements}"
    if requirements.suffix == ".yml":
        return {"first": [build], "again": [build], "pip-tree": [f"{build} --installer pip-tree"]}
    ways = {"first": [build], "again": [build],
            "pip": [f"python3 -m venv {venv}", f"{venv}/bin/pip install --quiet --no-compile -r {requirements}", *pack]}
    if uv:
        ways["uv"] = [f"{uv} venv --quiet --seed --python python3 {venv}", f"{uv} pip install --quiet --python {venv}/bin/python -r {requirements}", *pack]
    return ways


def clear(work, way):
    for name in ("env", "venv", "image.sqfs"):
        path = work / name
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    if way == "first":
        shutil.rmtree(work / "cache/images", ignore_errors=True)


def small_wheels(work):
    place = work / "wheels"
    place.mkdir()
    for number in range(SMALL):
        name = f"small{number}"
        wheel(place, name, {f"{name}/m{i}.py": f"# {number}\ndef f{i}(x):\n    return x + {i}\n".encode() * 20 for i in range(10)})
    return "".join(f"small{number}\n" for number in range(SMALL)), {"PIP_FIND_LINKS": str(place), "UV_FIND_LINKS": str(place)}


def section():
    """Conda's packages are those of the tests."""
    channel = conda_channel.make(Path("/var/cache/containerize-tests/conda"))
    return f"channels: ['file://{channel}/main', nodefaults]\ndependencies: [python, pip, {{pip: [{SECTION}]}}]\n"


def compare(title, text, variables, options, work):
    requirements = work / ("env.yml" if title == "section" else "requirements.txt")
    requirements.write_text(text)
    environment = {**os.environ, "HOME": str(work), "CONTAINERIZE_CACHE": str(work / "cache"), "TMPDIR": str(work / "tmp"), **variables}
    if options.uv:
        environment["PATH"] = f"{options.uv.parent}:{environment['PATH']}"
        environment.setdefault("UV_FIND_LINKS", environment.get("PIP_FIND_LINKS", ""))
    ways = ways_of(work, requirements, options.build / "bin/containerize", options.uv)
    results = {way: [] for way in ways}
    for number in range(options.runs + 1):  # the first one fills the caches of downloads
        for way, commands in ways.items():
            clear(work, way)
            drop_caches()
            one = measured(work, commands, environment)
            one["image"] = (work / ("image.sqfs" if way in ("pip", "uv") else "env/env.sqfs")).stat().st_size
            if number > 0:
                results[way].append(one)
    print(f"\n| {title} | seconds | spread | CPU s | memory MB | disk, x image | written MB | image MB |\n|" + " --- |" * 8)
    for way, runs in results.items():
        middle = {name: statistics.median(run[name] for run in runs) for name in (*COLUMNS, "image")}
        seconds = [run["seconds"] for run in runs]
        print(f"| {way} | {middle['seconds']:.1f} | {min(seconds):.1f} to {max(seconds):.1f} | {middle['CPU']:.1f} | {middle['memory'] / 1e6:,.0f} "
              f"| {middle['disk'] / middle['image']:.2f} | {middle['written'] / 1e6:,.0f} | {middle['image'] / 1e6:,.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="torch,small")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--build", type=lambda text: Path(text).resolve(), default=SOURCE / "build/release")
    parser.add_argument("--uv", type=Path, help="the program; without it, that way is left out, and containerize uses pip")
    options = parser.parse_args()
    for name in options.only.split(","):
        work = Path(tempfile.mkdtemp(prefix="containerize-bench-", dir="/var/tmp"))
        work.chmod(0o755)
        try:
            (work / "tmp").mkdir()
            if name == "small":
                text, variables = small_wheels(work)
            else:
                text, variables = section() if name == "section" else {"torch": TORCH, "stack": STACK}[name], {}
            subprocess.run(["chown", "-R", "containerize-test:", str(work)], check=True)
            compare(name, text, variables, options, work)
        finally:
            shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
