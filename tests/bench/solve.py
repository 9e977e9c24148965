#!/usr/bin/env python3
"""Package lists and solving, compared with py-rattler: a channel of 500,000 packages is loaded, loaded from the cache, and solved.

Usage: tests/bench/solve.py [--packages N] [--runs N] [--build DIR]

Every run is a new process, so that time and memory are those that a user sees. The channel is served over HTTP, as a whole list that is
compressed with zstd, and in shards. containerize uses either. py-rattler uses the whole list: with shards, it fails at the second use,
as it takes this server's answer 304 for an error.
"""

import argparse
import json
import multiprocessing
import os
import random
import re
import resource
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/lib"))
import conda_channel

RATTLER = """
import asyncio, os, rattler, sys
machine = [rattler.GenericVirtualPackage(rattler.PackageName("__glibc"), rattler.Version("2.36"), rattler.BuildString("0"))]
gateway = rattler.Gateway(cache_dir=sys.argv[2], default_config=rattler.SourceConfig(sharded_enabled=False))
records = asyncio.run(rattler.solve([rattler.Channel(sys.argv[1])], sys.argv[3:], gateway=gateway, platforms=["linux-64", "noarch"], virtual_packages=machine))
print(len(records), flush=True)
os._exit(0)  # its threads crash an orderly end at times
"""


def names_of(count):
    return [f"package-{i}" for i in range(max(count // 100, 10))]


def make_channel(directory, count):
    """A channel with a hundred versions of each name. Dependencies are like real ones: on the same names in all versions, with higher
    versions required by newer ones."""
    chance = random.Random(1)
    names = names_of(count)
    records = {}
    for i, name in enumerate(names):
        needed = [names[chance.randrange(i)] for _ in range(min(i, 2))]
        for j in range(100):
            version = f"{j // 10}.{j % 10}.0"
            needs = [f"{other} >={j // 20}.0" for other in needed]
            records[f"{name}-{version}-h{i:06x}_{j % 3}.conda"] = {
                "build": f"h{i:06x}_{j % 3}", "build_number": j % 3, "depends": ["__glibc >=2.17", *needs], "license": "BSD-3-Clause",
                "md5": f"{i * 100 + j:032x}", "name": name, "sha256": f"{i * 100 + j:064x}", "size": 12345 + i, "subdir": "linux-64",
                "timestamp": 1_700_000_000_000 + i * 100 + j, "version": version}
    for subdir, packages in (("linux-64", records), ("noarch", {})):
        (directory / subdir).mkdir(parents=True)
        file = directory / subdir / "repodata.json"
        data = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": dict(sorted(packages.items()))}
        file.write_text(json.dumps(data))
        subprocess.run(["zstd", "-q", "-T0", file], check=True)
        conda_channel.write_shards(file.parent, data)


@contextmanager
def served(directory, log):
    """Serves these files over HTTP and yields the address. Writes a line to `log` for each request."""
    server = subprocess.Popen([sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--protocol", "HTTP/1.1",
                               "--directory", directory, "0"], stdout=subprocess.PIPE, stderr=log.open("w"), text=True)
    try:
        ready, _, _ = select.select([server.stdout], [], [], 30)
        told = re.search(r"port (\d+) ", server.stdout.readline() if ready else "")
        if not told:
            sys.exit("solve.py: the web server did not come up")
        yield f"http://127.0.0.1:{told[1]}"
    finally:
        server.kill()
        server.wait()


def transferred(directory, log, start):
    """The number of requests and of bytes of the files that were sent, according to the lines of the log from `start` on."""
    requests = re.findall(r'"GET /(\S+) HTTP/1.1" (\d+)', log.read_text()[start:])
    return len(requests), sum((directory / path).stat().st_size for path, status in requests if status == "200")


def measured(*argv, env=None):
    """Returns seconds, the peak of the memory in megabytes, and the output."""
    start = time.perf_counter()
    process = subprocess.Popen([str(one) for one in argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(env or {})})
    out, err = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    assert status == 0, (argv, err.decode())
    return seconds, usage.ru_maxrss / 1024, out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--build", type=Path, default=SOURCE / "build/release")
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="containerize-bench-"))
    try:
        place = Path("/var/tmp/containerize-bench-rattler")
        if not (place / "bin/python").exists():
            subprocess.run(["/usr/bin/python3", "-m", "venv", place], check=True)
            subprocess.run([place / "bin/pip", "install", "-q", "py-rattler==0.28.0"], check=True)
        channel = work / "channel"
        # In a process of its own, because a child's peak of memory would include what this process had when it forked.
        maker = multiprocessing.Process(target=make_channel, args=(channel, options.packages))
        maker.start()
        maker.join()
        log = work / "log"
        with served(channel, log) as address:
            compare(options, work, place, channel, address, log)
    finally:
        shutil.rmtree(work)


def compare(options, work, place, channel, address, log):
    names = names_of(options.packages)
    wanted = [names[-1], names[-2], names[len(names) // 2]]
    spec = work / "env.yml"
    spec.write_text(f"channels:\n- {address}\ndependencies:\n" + "".join(f"- {name}\n" for name in wanted))
    cache = work / "cache"
    tool = [options.build / "bin/containerize", "new", "--dry-run", "--json", spec]
    rows = {}

    def run(way, title, *argv, env=None):
        start = log.stat().st_size
        seconds, memory, out = measured(*argv, env={"HOME": str(work), "CONDA_LOCAL_REPODATA_TTL": "0", **(env or {})})
        rows.setdefault((way, title), []).append((seconds, memory, *transferred(channel, log, start)))
        return out

    for _ in range(options.runs):
        shutil.rmtree(cache, ignore_errors=True)
        shutil.rmtree(work / "rattler", ignore_errors=True)
        for title in ("first use", "second use"):
            plans = [json.loads(run(f"containerize, {way}", title, *tool,
                                    env={"CONTAINERIZE_CACHE": str(cache / way), "CONDA_REPODATA_USE_SHARDS": use}))
                     for way, use in (("shards", "true"), ("whole list", "false"))]
            assert plans[0] == plans[1], "the way makes no difference"
            ours = len(plans[0])
            theirs = run("py-rattler, whole list", title, place / "bin/python", "-c", RATTLER, address, work / "rattler", *wanted)
            assert ours > 3 and int(theirs) > 3
    size = sum(file.stat().st_size for file in channel.rglob("repodata.json"))
    print(f"{options.packages:,} packages, {size / 1e6:.0f} MB of JSON, {options.runs} runs; a solution of {ours} packages\n")
    print("| what | way | median s | spread s | memory MB | requests | MB received |\n| --- | --- | --- | --- | --- | --- | --- |")
    for (way, title), values in sorted(rows.items(), key=lambda row: (row[0][1], row[0][0])):
        seconds = [value[0] for value in values]
        print(f"| {title} | {way} | {statistics.median(seconds):.2f} | {min(seconds):.2f} to {max(seconds):.2f} | "
              f"{statistics.median(value[1] for value in values):.0f} | {values[-1][2]} | {values[-1][3] / 1e6:.2f} |")


if __name__ == "__main__":
    main()
