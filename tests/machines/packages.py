#!/usr/bin/python3
"""Prints a directory of what the machines install without a network: wheels for their Pythons, and a conda channel.

Usage: packages.py CACHE      makes it in that directory, unless it is there
"""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
import conda_channel  # noqa: E402
from common import made_once  # noqa: E402

WHEELS = ["six==1.14.0", "six==1.15.0", "six==1.16.0", "six==1.17.0", "iniconfig==2.0.0"]
COMPILED = "markupsafe==3.0.3"
PYTHONS = ["3.9", "3.11", "3.13", "3.14"]


def make_wheels(place):
    download = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "-d", place]
    for wheel in WHEELS:
        subprocess.run([*download, wheel], check=True)
    for python in PYTHONS:
        subprocess.run([*download, "--python-version", python, "--platform", "manylinux_2_17_x86_64", "--platform", "manylinux2014_x86_64", COMPILED],
                       check=True)


def make_channel(place, tests_channel):
    """The tests' channel, changed for machines that are older than this one."""
    shutil.copytree(tests_channel, place)
    conda_channel.c_program("-static").write(place)
    conda_channel.index(place)
    # Says which C library Python needs, as channels do when a package's own list is incomplete.
    repodata = place / "linux-64/repodata.json"
    data = json.loads(repodata.read_text())
    for package in data["packages.conda"].values():
        if package["name"] == "python":
            package["depends"] = ["__glibc >=2.36"]
    repodata.write_text(json.dumps(data))
    for form in (".zst", ".bz2"):
        Path(f"{repodata}{form}").unlink()


def main():
    cache = Path(sys.argv[1])
    tests_channel = conda_channel.make(cache / "conda") / "main"
    kept = cache / "machines"
    kept.mkdir(exist_ok=True)

    def make(place):
        place.mkdir()
        make_wheels(place / "wheels")
        make_channel(place / "channel", tests_channel)

    sources = Path(__file__).read_bytes() + str(tests_channel).encode()
    print(made_once(kept / f"packages-{hashlib.sha256(sources).hexdigest()[:12]}", make))


main()
