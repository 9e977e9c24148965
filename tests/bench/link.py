#!/usr/bin/env python3
"""Installing packages from a channel on disk to a finished image, compared with unpacking them to disk and packing that tree.

Usage: tests/bench/link.py TREE [--runs N] [--build DIR]

TREE is any directory of real software, such as a venv with torch. It becomes conda packages of some 250 files each, repeated
under other names until there are 50,000 files. The first build also packs each package for the cache. The alternative is what
other tools do: bsdtar for each package, then mksquashfs with the same settings. All end with an fsync.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/lib"))
import conda_channel

FILES = 50_000
PER_PACKAGE = 250


def make_channel(tree, channel):
    files = sorted(path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    made = count = 0
    while made < FILES:
        package = conda_channel.Package(f"part-{count}", "1.0")
        for path in files[made % len(files):][:PER_PACKAGE]:
            # The first line differs in each round, because equal files would be stored once.
            content = path.read_bytes()
            if made >= len(files):
                content = str(made // len(files)).encode() + content
            package.add(f"share/{made // len(files)}/{path.relative_to(tree)}", content, path.stat().st_mode & 0o777)
        made += len(package.files)
        package.write(channel)
        count += 1
    conda_channel.index(channel)
    return count, made


def cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds(function):
    """Elapsed time and CPU time."""
    os.sync()
    start, cpu_start = time.perf_counter(), cpu()
    function()
    return time.perf_counter() - start, cpu() - cpu_start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--build", type=Path, default=SOURCE / "build/release")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="containerize-bench-", dir="/var/tmp"))
    try:
        channel = work / "channel"
        packages, files = make_channel(options.tree, channel)
        spec = work / "env.yml"
        spec.write_text(f"channels:\n- file://{channel}\ndependencies:\n" + "".join(f"- part-{i}\n" for i in range(packages)))
        archives = sorted((channel / "linux-64").glob("*.conda"))

        def first():
            shutil.rmtree(work / "cache/images", ignore_errors=True)
            ours()

        def ours():
            shutil.rmtree(work / "ours", ignore_errors=True)
            subprocess.run([options.build / "bin/containerize", "new", "-q", "--no-profile", "--no-config", "--tmpdir", work, "--prefix", work / "ours", spec],
                           check=True, env={**os.environ, "CONTAINERIZE_CACHE": str(work / "cache")})

        def theirs():
            shutil.rmtree(work / "tree", ignore_errors=True)
            (work / "tree").mkdir()
            (work / "theirs").unlink(missing_ok=True)
            for archive in archives:
                subprocess.run(f"bsdtar -xOf '{archive}' 'pkg-*.tar.zst' | bsdtar -xf - -C '{work}/tree'", shell=True, check=True)
            subprocess.run(["mksquashfs", work / "tree", work / "theirs", "-comp", "zstd", "-Xcompression-level", "3", "-b", "128K", "-quiet",
                            "-no-progress", "-processors", str(os.cpu_count())], check=True, stdout=subprocess.DEVNULL)
            subprocess.run(["sync", work / "theirs"], check=True)

        ways = {"containerize new, packages not packed yet": first, "containerize new": ours, "unpack, then mksquashfs": theirs}
        ours()  # fetches the package list
        times = {way: [] for way in ways}
        for _ in range(options.runs):
            for way, function in ways.items():
                times[way].append(seconds(function))
        print(f"{packages} packages, {files:,} files, {sum(path.stat().st_size for path in archives) / 1e6:.0f} MB of archives, {options.runs} runs\n")
        print("| way | median s | spread s | CPU s | image MB |\n| --- | --- | --- | --- | --- |")
        image = next((work / "ours").glob("*.sqfs"))
        for (way, values), made in zip(times.items(), (image, image, work / "theirs")):
            elapsed, used = zip(*values)
            print(f"| {way} | {statistics.median(elapsed):.1f} | {min(elapsed):.1f} to {max(elapsed):.1f} | {statistics.median(used):.1f} "
                  f"| {made.stat().st_size / 1e6:.1f} |")
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
