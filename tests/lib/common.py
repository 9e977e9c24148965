"""What the helpers of the tests share: waits with a deadline, locks between runs, pinned programs and free ports."""

import fcntl
import hashlib
import io
import os
import random
import select
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path


def next_line(stream, seconds=120):
    """The next line of a process's pipe, like `stream.readline()` but with a deadline. It takes nothing beyond the line out of the
    pipe, so that communicate() still gets the rest."""
    deadline = time.monotonic() + seconds
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    line = b""
    while not line.endswith(b"\n"):
        assert poll.poll(max(0, deadline - time.monotonic()) * 1000), f"no line in {seconds} seconds, only {line!r}"
        byte = os.read(stream.fileno(), 1)
        if not byte:
            break
        line += byte
    return line.decode() if isinstance(stream, io.TextIOBase) else line


@contextmanager
def locked(file):
    """Holds an exclusive lock, for what several runs of the tests keep in one place."""
    with open(file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pinned_programs(requirements: Path, environments: Path) -> Path:
    """The programs of packages pinned by their digests, in a virtual environment that is kept for later runs."""
    environments.mkdir(exist_ok=True)
    wanted = environments / hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]
    with locked(environments / "lock"):
        if not (wanted / "complete").exists():
            subprocess.run(["/usr/bin/python3", "-m", "venv", "--clear", str(wanted)], check=True)
            subprocess.run([str(wanted / "bin/pip"), "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r", str(requirements)],
                           check=True)
            (wanted / "complete").touch()
    return wanted / "bin"


def made_once(place: Path, make) -> Path:
    """A file or directory that all runs of the tests share: make(PATH) makes it unless it is there."""
    with locked(f"{place}.lock"):
        if not place.exists():
            unfinished = Path(f"{place}.new")
            shutil.rmtree(unfinished, ignore_errors=True)
            make(unfinished)
            unfinished.rename(place)
    return place


def unique_uid() -> int:
    """A user that nothing else runs as, because the kernel counts the processes of a user on the whole machine."""
    return random.randrange(30_000, 60_000)


def free_port() -> int:
    """A TCP port of this machine that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def recordings(uid: int) -> list[int]:
    """The processes that builds of this user have left behind, which record what programs read first."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # it has ended
            if entry.name.isdigit() and entry.stat().st_uid == uid and (entry / "cmdline").read_bytes().startswith(b"containerize\0profile\0"):
                found.append(int(entry.name))
    return found


def wait_for_recordings(uid: int, seconds=300):
    deadline = time.monotonic() + seconds
    while recordings(uid):
        assert time.monotonic() < deadline, f"a recording does not end in {seconds} seconds"
        time.sleep(0.05)
