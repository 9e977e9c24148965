"""Wheels of PyPI, installed by our rules (tests/lib/install_wheel.cpp) and by pip: all files and RECORD must be the same."""

import base64
import csv
import hashlib
import os
import re

import pytest
from conftest import BUILD

# Each has something that others do not have.
WHEELS = {
    "httpie": "three commands and a manual page",
    "jupyterlab": "thousands of data files",
    "ipykernel": "data files of which one contains the interpreter's name",
    "numpy": "libraries in a directory beside the package",
    "nvidia-nvtx-cu12": "a namespace package",
    "pip": "commands whose names have Python's version",
    "pybind11": "headers",
    "pyyaml": "another name than its module",
    "requests": "only Python",
    "ruff": "a program as script",
    "setuptools==50.3.2": "easy_install, and a RECORD with other rules",
    "six": "one module",
    "pyjokes==0.6.0": "an old wheel",
    "awscli==1.32.0": "scripts that begin with #!python",
    "zope.interface": "a name with a dot",
}


def files_of(directory):
    """Path -> (content, whether it is executable)."""
    return {str(path.relative_to(directory)): (path.read_bytes(), bool(path.stat().st_mode & 0o100))
            for path in directory.rglob("*") if path.is_file() and not path.is_symlink()}


def rows_of(record):
    return list(csv.reader(record[0].decode().splitlines()))


def is_command(path, content):
    """Whether pip generated it; ours have other words."""
    return path.startswith("bin/") and content.startswith(b"#!") and b"    sys.argv[0] = " in content


def with_one_interpreter(content):
    """A venv has it by two names."""
    return content.replace(b"/bin/python3\n", b"/bin/python\n", 1)


@pytest.fixture(scope="module")
def trees(user, place):
    """What pip and we install for all wheels: their files, our files, the directory of packages, and the venv."""
    work = user.directory(place)
    venv, wheels = work / "venv", work / "wheels"
    pip = ("/usr/bin/python3", "-m", "pip")
    user.run(*pip, "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", str(wheels), *WHEELS)
    user.run("/usr/bin/python3", "-m", "venv", "--without-pip", str(venv))
    before = files_of(venv)
    user.run(*pip, "--python", str(venv), "install", "-q", "--no-deps", "--no-compile", "--no-index", "--find-links", str(wheels), *WHEELS)
    theirs = {path: file for path, file in files_of(venv).items() if path not in before}
    version = user.run(str(venv / "bin/python"), "-c", "import sys; print('%d.%d' % sys.version_info[:2])").stdout.strip()
    for requirement in WHEELS:
        name = requirement.partition("=")[0]
        (wheel,) = (one for one in wheels.iterdir() if re.sub("[-_.]", "-", one.name).startswith(re.sub("[-_.]", "-", name) + "-"))
        user.run(str(BUILD / "tests/install_wheel"), str(wheel), str(work / "ours"), str(venv), version, name)
    return theirs, files_of(work / "ours"), f"lib/python{version}/site-packages", venv


def test_pip_installs_the_same_files(trees):
    theirs, ours, _, _ = trees
    assert sorted(ours) == sorted(theirs)
    for path, (content, executable) in theirs.items():
        assert ours[path][1] == executable, path
        if is_command(path, content):
            assert with_one_interpreter(ours[path][0]).splitlines()[0] == with_one_interpreter(content).splitlines()[0]
        elif not path.endswith((".dist-info/INSTALLER", ".dist-info/RECORD")):
            assert with_one_interpreter(ours[path][0]) == with_one_interpreter(content), path


def test_pip_records_the_same(trees):
    theirs, ours, site_packages, _ = trees
    records = [path for path in theirs if path.endswith(".dist-info/RECORD")]
    assert len(records) == len(WHEELS)
    for record in records:

        def comparable(row):
            path = os.path.normpath(f"{site_packages}/{row[0]}")
            return row[:1] if path in theirs and theirs[path] != ours[path] else row

        assert list(map(comparable, rows_of(ours[record]))) == list(map(comparable, rows_of(theirs[record]))), record
        for path, digest, size in rows_of(ours[record]):
            content = ours.get(os.path.normpath(f"{site_packages}/{path}"), (None,))[0]
            if digest and content is not None:
                right = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
                assert (digest, size) == (f"sha256={right}", str(len(content))), path


def test_commands_do_the_same(user, trees):
    theirs, ours, _, venv = trees
    commands = [path for path, (content, _) in theirs.items() if is_command(path, content)]
    assert {"bin/pip3", "bin/jupyter-lab", "bin/easy_install"} < set(commands)
    for command in commands:
        outcomes = []
        for content in (theirs[command][0], ours[command][0]):
            done = user.run(str(user.write(venv / command, content.decode(), 0o755)), "--version", check=False)
            outcomes.append((done.returncode, done.stdout, done.stderr.splitlines()[-1:]))
        assert outcomes[0] == outcomes[1], command
