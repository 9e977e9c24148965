"""Fixtures for tests that need a real Slurm; test files import them by name."""

import os
import shutil
import sys

import pytest

from conftest import SOURCE

sys.path.insert(0, str(SOURCE / "tests/lib"))
from slurm import cluster  # noqa: E402

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="a cluster needs namespaces that only root may make")


@pytest.fixture(scope="session")
def place(user):
    """Not in /tmp, because each machine has a /tmp of its own."""
    path = user.directory(parent=user.entry.pw_dir)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module")
def slurm(user):
    with cluster(user.entry) as started:
        yield started


@pytest.fixture(scope="module")
def contained(user):
    """A cluster configured like most sites: control groups, and a private /tmp for each job."""
    if not os.path.isdir("/sys/fs/cgroup/freezer"):
        pytest.skip("Debian 12's Slurm wants control groups of the first version, which this machine has not")
    with cluster(user.entry, contained=True) as started:
        yield started
