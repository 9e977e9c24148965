#!/usr/bin/env python3
"""clang-tidy over all sources of the program. One that was found good is not looked at again until it, a header of ours that
it includes or the configuration changes.  Usage: tests/lib/tidy.py BUILD_DIRECTORY CACHE_DIRECTORY

The program comes from PyPI, by its digest: since version 21 it passes over the declarations of system headers, which takes a
third of the time that Debian 12's version needs."""

import functools
import hashlib
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

REQUIREMENTS = Path(__file__).with_name("clang-tidy.txt")
OPTIONS = ["--quiet", "--extra-arg=-Wno-unknown-warning-option"]


def installed(environments: Path) -> Path:
    """The program of the pinned version, in a virtual environment that is named by what is pinned."""
    wanted = environments / hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    program = wanted / "bin/clang-tidy"
    if not (wanted / "complete").exists():
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", str(wanted)], check=True)
        subprocess.run([str(wanted / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", str(REQUIREMENTS)],
                       check=True)
        (wanted / "complete").touch()
    return program


@functools.cache
def included(path: Path) -> frozenset[Path]:
    """The file and all of ours that it includes, at any depth."""
    found = {path}
    for name in re.findall(r'^#include "(.*)"', path.read_text(), re.MULTILINE):
        # One that is in neither place, the build makes from data.
        for header in (place for place in (Path("src") / name, path.parent / name) if place.is_file()):
            found |= included(header)
    return frozenset(found)


def digest(path: Path) -> str:
    sum_of_all = hashlib.sha256(REQUIREMENTS.read_bytes() + " ".join(OPTIONS).encode())
    for part in [Path(".clang-tidy"), *sorted(included(path))]:
        sum_of_all.update(part.read_bytes())
    return sum_of_all.hexdigest()[:32]


def check(program: Path, path: Path, build: str, stamps: Path) -> bool:
    stamp = stamps / digest(path)
    if stamp.exists():
        return True
    done = subprocess.run([str(program), *OPTIONS, "-p", build, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode != 0:
        print(f"clang-tidy: {path}\n{done.stdout}", flush=True)
        return False
    stamp.touch()
    return True


def main(build: str, cache: Path) -> int:
    stamps = cache / "good"
    stamps.mkdir(parents=True, exist_ok=True)
    program = installed(cache)
    listed = subprocess.run(["git", "ls-files", "src/*.cpp", "wrappers/*.cpp"], check=True, capture_output=True, text=True).stdout
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        good = pool.map(lambda name: check(program, Path(name), build, stamps), listed.splitlines())
        return 0 if all(list(good)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
