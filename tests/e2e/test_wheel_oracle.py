"""Odd wheels, and those of the projects that are used most: what is linked equals what pip installs."""

import hashlib
import json
import os
import subprocess

import odd_wheels
import pytest
from conftest import CACHE, SOURCE, made_once
from test_build import new
from trees import differences, tree_of

PINS = (SOURCE / "tests/data/most-used-projects.txt").read_text().split()
# How many share an environment.
BATCH = 25
long = pytest.mark.skipif(not os.environ.get("CONTAINERIZE_TEST_ORACLE"), reason="takes long")


@pytest.fixture(scope="module")
def wheels():
    """The projects' wheels, downloaded once."""

    def download(directory):
        subprocess.run(["/usr/bin/python3", "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", directory, *PINS], check=True)

    return made_once(CACHE / f"projects-{hashlib.sha256(' '.join(PINS).encode()).hexdigest()[:12]}", download)


def build_both(user, tool, work, lines, check=True):
    """Two installations: linked, and as pip installs."""
    spec = user.write(work / "requirements.txt", "".join(f"{line}\n" for line in lines))
    # The prompt in bin/activate is the directory's name.
    places = {installer: user.directory(work) / "env" for installer in ("pip", "pip-tree")}
    env = {"CONTAINERIZE_CACHE": str(work / "cache"), "PIP_NO_DEPS": "1", "PIP_NO_INDEX": "1"}
    return places, [new(user, tool, place, spec, "--installer", installer, env=env, check=check) for installer, place in places.items()]


def compare(user, tool, work, lines):
    """Where the two differ."""
    places, _ = build_both(user, tool, work, lines)
    logs = ["installed into a directory, because --installer pip-tree" in (place / "share/build.log").read_text() for place in places.values()]
    assert logs == [False, True]
    return differences(*(tree_of(user, place) for place in places.values()))


def check_same(found, expected=()):
    unexpected = {path: how for path, how in found.items() if path not in expected}
    assert not unexpected, json.dumps(unexpected, indent=1)
    assert set(expected) <= found.keys()


@pytest.mark.parametrize("made", [odd_wheels.special, pytest.param(odd_wheels.systematic, marks=long), pytest.param(odd_wheels.large, marks=long)])
def test_odd_wheels(user, tool, work, made):
    odd = made()
    check_same(compare(user, tool, work, [one.write(work / "wheels") for one in odd]), [path for one in odd for path in one.differs])


@long
@pytest.mark.parametrize("odd", list(odd_wheels.refused()), ids=lambda odd: odd.name)
def test_refused_wheels(user, tool, work, odd):
    places, done = build_both(user, tool, work, [odd.write(work / "wheels")], check=False)
    assert [one.returncode for one in done] == {"both": [1, 1], "us": [1, 0], "pip": [0, 1]}[odd.refused], "\n".join(one.stderr for one in done)
    assert done[0].stderr.count("\ncontainerize: ") == (odd.refused != "pip"), done[0].stderr
    assert [(place / "containerize.json").exists() for place in places.values()] == [one.returncode == 0 for one in done]


@long
@pytest.mark.parametrize("first", range(0, len(PINS), BATCH))
def test_most_used_projects(user, tool, work, wheels, first):
    check_same(compare(user, tool, work, [f"--find-links {wheels}", *PINS[first:first + BATCH]]))
