#!/usr/bin/python3
"""Pulls an image from a registry on this machine and converts it to squashfs: containerize, and skopeo, umoci and mksquashfs.

Usage: pull.py [--runs N] [--build DIRECTORY] [--packages LIST] PLACE

PLACE is a directory for everything that is written. The image is made there once, of Debian packages, and kept. Both take turns in
each run. Printed are medians of wall-clock seconds, CPU seconds and the peak of the bytes on disk.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/lib"))
from registry import Registry  # noqa: E402

PACKAGES = "python3,python3-numpy,python3-scipy,g++,git,llvm"


def make_image(place: Path, packages: str) -> Path:
    layout = place / "layout"
    if layout.exists():
        return layout
    tar = place / "root.tar"
    subprocess.run(["mmdebstrap", "--variant=extract", f"--include={packages}", "bookworm", str(tar)], check=True)
    for words in (["init", "--layout", str(layout)], ["new", "--image", f"{layout}:image"],
                  ["raw", "add-layer", "--image", f"{layout}:image", str(tar)]):
        subprocess.run(["umoci", *words], check=True)
    tar.unlink()
    return layout


class Disk:
    """Watches a directory and records the peak of its size."""

    def __init__(self, directory: Path):
        self.directory, self.most, self.stop = directory, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while not self.stop.wait(0.2):
            done = subprocess.run(["du", "-sk", str(self.directory)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.most = max(self.most, int(done.stdout.split()[0]) * 1024 if done.stdout else 0)

    def finish(self) -> int:
        self.stop.set()
        self.thread.join()
        return self.most


def measured(place: Path, commands, env=None):
    work = place / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    disk = Disk(work)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    for words in commands(work):
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    most = disk.finish()
    size = max(file.stat().st_size for file in work.rglob("*.sqfs"))
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, most, size


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("place", type=Path)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--build", type=Path, default=SOURCE / "build/release")
    options.add_argument("--packages", default=PACKAGES)
    given = options.parse_args()
    given.place.mkdir(parents=True, exist_ok=True)
    layout = make_image(given.place, given.packages)
    registry = Registry(given.place, given.place / "storage")
    try:
        name = f"docker://127.0.0.1:{registry.port}/image:1"
        subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", "--dest-tls-verify=false", f"oci:{layout}:image", name], check=True)

        def tools(work):
            yield ["skopeo", "--insecure-policy", "copy", "-q", "--src-tls-verify=false", name, f"oci:{work}/layout:image"]
            yield ["umoci", "unpack", "--rootless", "--image", f"{work}/layout:image", f"{work}/bundle"]
            yield ["mksquashfs", f"{work}/bundle/rootfs", f"{work}/image.sqfs", "-quiet", "-no-progress", "-comp", "zstd",
                   "-Xcompression-level", "3", "-all-root"]

        def ours(work):
            yield [str(given.build / "bin/containerize"), "base", "pull", name]

        results = {"containerize": [], "skopeo+umoci+mksquashfs": []}
        for _ in range(given.runs):
            results["containerize"].append(
                measured(given.place, ours, {"CONTAINERIZE_BASES": str(given.place / "work/store")}))
            results["skopeo+umoci+mksquashfs"].append(measured(given.place, tools))
        print(f"{'':26}{'wall s':>8}{'CPU s':>8}{'disk MB':>9}{'image MB':>10}")
        for title, runs in results.items():
            wall, cpu, disk, size = (statistics.median(values) for values in zip(*runs))
            print(f"{title:26}{wall:8.1f}{cpu:8.1f}{disk / 1e6:9.0f}{size / 1e6:10.0f}")
    finally:
        registry.close()
        shutil.rmtree(given.place / "work", ignore_errors=True)


if __name__ == "__main__":
    main()
