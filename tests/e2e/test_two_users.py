"""Two users on one node: what one of them puts in the other's way is never run by the other."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import OTHER_USER, User

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")

TMP = Path("/tmp")


@pytest.fixture(scope="module")
def other():
    """Who would like to run programs as the test user."""
    try:
        pwd.getpwnam(OTHER_USER)
    except KeyError:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", OTHER_USER], check=True)
    return User(OTHER_USER)


class Trap:
    """Files of the other user's, with programs in them that tell who has run them."""

    def __init__(self, other):
        self.other = other
        self.caught = TMP / "caught"

    def shell(self, script, *arguments, check=True):
        return self.other.run("/bin/sh", "-ec", script, "sh", *map(str, arguments), check=check)

    def plant(self, path: Path, text: str | None = None, mode: int = 0o755):
        """As the other user would: in directories that it makes where they are missing."""
        told = f"#!/bin/sh\nid -u >> {self.caught}\nexit 66\n"
        self.shell('mkdir -p "${1%/*}"; printf %s "$2" > "$1"; chmod "$3" "$1"', path, told if text is None else text, f"{mode:o}")

    def assert_nobody_was_caught(self):
        assert not self.caught.exists(), self.caught.read_text()


@pytest.fixture
def trap(other, sessions):
    sessions.kill_all()
    before = set(TMP.iterdir())
    trap = Trap(other)
    trap.caught.touch()
    trap.caught.chmod(0o666)
    trap.caught.unlink()
    yield trap
    sessions.kill_all()
    for path in set(TMP.iterdir()) - before:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    trap.assert_nobody_was_caught()


@pytest.fixture
def home(user):
    """A directory of the user's that nobody else can write to, all the way up."""
    path = user.directory(user.entry.pw_dir)
    yield path
    shutil.rmtree(path)


def python(user, installation, code="print('fine')", check=True, **more):
    return user.run(f"{installation}/bin/python", "-c", code, check=check, **more)


def test_a_manifest_beside_the_installation(user, small, trap):
    """A wrapper that has lost its own manifest takes none from a directory that everybody writes to."""
    env = user.copy(small, TMP / "env", TMP / "env")
    manifest = (env / "containerize.json").read_text()
    (env / "containerize.json").unlink()
    trap.plant(TMP / "containerize.json", manifest, 0o644)
    trap.plant(TMP / "libexec/containerize-session")
    done = python(user, env, check=False)
    assert done.returncode == 1 and f"{TMP}/containerize.json: this is not used" in done.stderr
    assert "everybody may write to its directory" in done.stderr
    trap.assert_nobody_was_caught()
    assert python(user, env, check=False, env={"CONTAINERIZE_ENGINE": "apptainer"}).returncode == 1


def test_parts_of_an_installation_that_others_could_have_written(user, other, small, home, trap):
    env = user.copy(small, home / "env", home / "env")
    for part, change in (("containerize.json", lambda path: os.chown(path, other.uid, other.uid)), ("containerize.json", lambda path: path.chmod(0o666)),
                         (".", lambda path: path.chmod(0o777)), (".", lambda path: os.chown(path, other.uid, other.uid)),
                         ("libexec", lambda path: path.chmod(0o1777)), ("libexec/containerize-session", lambda path: os.chown(path, other.uid, other.uid))):
        path = env / part
        info = path.stat()
        change(path)
        done = python(user, env, check=False)
        assert done.returncode == 1 and "this is not used" in done.stderr, f"{part}: {done.stderr}"
        os.chown(path, info.st_uid, info.st_gid)
        path.chmod(info.st_mode & 0o7777)
    assert python(user, env).stdout == "fine\n"


def test_a_colleagues_installation_is_used(user, other, small, home, trap):
    """All of it is the colleague's, or root's, or a group keeps it."""
    env = user.copy(small, home / "env", home / "env")
    for uid in (other.uid, 0):
        for path in [env, *env.rglob("*")]:
            os.chown(path, uid, uid, follow_symlinks=False)
        assert python(user, env).stdout == "fine\n"
    for path in env.rglob("*"):
        os.chown(path, other.uid, 100, follow_symlinks=False)
    for path in (env, env / "libexec"):
        os.chown(path, user.uid, 100)
        path.chmod(0o2775)
    assert python(user, env).stdout == "fine\n"
