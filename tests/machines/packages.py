#!/usr/bin/python3
"""Prints a directory of what the machines install without a network: wheels for their Pythons, and a conda channel.

Usage: packages.py CACHE      makes it in that directory, unless it is there
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
import conda_channel  # noqa: E402
from common import made_once  # noqa: E402
from machine import MIRROR, apt_options  # noqa: E402

WHEELS = ["six==1.14.0", "six==1.15.0", "six==1.16.0", "six==1.17.0", "iniconfig==2.0.0"]
COMPILED = "markupsafe==3.0.3"
PYTHONS = [("x86_64", "3.9"), ("x86_64", "3.11"), ("x86_64", "3.13"), ("x86_64", "3.14"), ("aarch64", "3.11")]


def download(place, *wanted):
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:", "-d", place,
                    *wanted], check=True)


def download_compiled(place, wheel, architecture, python):
    download(place, "--python-version", python, "--platform", f"manylinux_2_17_{architecture}", "--platform", f"manylinux2014_{architecture}", wheel)


def make_wheels(place):
    for wheel in WHEELS:
        download(place, wheel)
    for architecture, python in PYTHONS:
        download_compiled(place, COMPILED, architecture, python)


def add_aarch64(channel):
    """For aarch64, the packages that the machines install: Python, NumPy and a program in C."""
    aarch64 = {"subdir": "linux-aarch64"}
    with tempfile.TemporaryDirectory() as work:
        root, wheels = Path(work) / "root", Path(work) / "wheels"
        subprocess.run(["mmdebstrap", "--quiet", "--variant=extract", "--architectures=arm64", "--include=python3.11", *apt_options(), "bookworm", root,
                        MIRROR], check=True)
        conda_channel.python_package(root, **aarch64).write(channel)
        download_compiled(wheels, "numpy==1.26.4", "aarch64", "3.11")
        (wheel,) = wheels.iterdir()
        conda_channel.Package("numpy", "1.26.4", "py311_0", depends=["python >=3.11,<3.12"], **aarch64).wheel(wheel).byte_code().write(channel)
    conda_channel.c_program("aarch64-linux-gnu-gcc", "-static", **aarch64).write(channel)


def make_channel(place, tests_channel):
    """The tests' channel, changed for machines that are older than this one."""
    shutil.copytree(tests_channel, place)
    conda_channel.c_program("gcc", "-static").write(place)
    add_aarch64(place)
    conda_channel.index(place, ("linux-64", "linux-aarch64", "noarch"))
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
