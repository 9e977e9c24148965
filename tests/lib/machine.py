"""Looks like a second machine to programs: a root filesystem of Debian unstable with Apptainer, which Debian 12 lacks. It is made once
and kept. Programs enter it with pivot_root, because Apptainer requires that."""

import hashlib
import os
import socket
import subprocess
from pathlib import Path

from common import locked, made_once

# python3 brings the libraries that any interpreter needs from the machine.
PACKAGES = ("apptainer", "ca-certificates", "fuse3", "procps", "python3", "squashfuse")
MIRROR = "http://deb.debian.org/debian"

# $1 is the root, $2 the working directory, $3 a script of the caller's. Then follow paths to make visible in it, up to "--".
ENTER = """
set -e
root=$1 directory=$2 prepare=$3
shift 3
mount --rbind "$root" "$root"
for path in /dev /proc /sys; do mount --rbind $path "$root$path"; done
while [ "$1" != -- ]; do
    mkdir -p "$root$1"
    mount --rbind "$1" "$root$1"
    shift
done
shift
cd "$root"
/usr/sbin/pivot_root . mnt
umount -l /mnt
eval "$prepare"
cd "$directory"
exec "$@"
"""


def apt_options() -> list[str]:
    """This machine's setting for mirrors that are deliberately old."""
    said = subprocess.run(["apt-config", "dump", "Acquire::Check-Valid-Until"], capture_output=True, text=True).stdout.strip()
    return [f"--aptopt={said}"] if said else []


def make_root(cache: Path) -> Path:
    def make(root):
        subprocess.run(
            ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}", *apt_options(), "sid", str(root), MIRROR],
            check=True, stdin=subprocess.DEVNULL, timeout=1500,
        )

    return made_once(cache / f"sid-{hashlib.sha256(chr(0).join(PACKAGES).encode()).hexdigest()[:12]}", make)


def _replace(file: Path, text: str):
    """Changes the file at once, because other runs of the tests read it."""
    if not file.exists() or file.read_text() != text:
        new = file.with_name(f"{file.name}.new")
        new.write_text(text)
        new.chmod(0o644)
        os.replace(new, file)


class Machine:
    """Runs commands in that root, with the interface of conftest.User."""

    def __init__(self, root: Path, user, seen: list[Path]):
        self.root = root
        self.user = user
        self.seen = [str(path) for path in seen]
        # Each command has a mount namespace of its own and therefore its own session.
        self.environment = {**user.environment, "CONTAINERIZE_SESSION_IDLE": "1"}
        entry = user.entry
        line = f"{entry.pw_name}:x:{entry.pw_uid}:{entry.pw_gid}::{entry.pw_dir}:/bin/bash\n"
        with locked(root.parent / "sid.lock"):
            # The new root cannot resolve host names, not even its own.
            _replace(root / "etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {socket.gethostname()}\n")
            users = (root / "etc/passwd").read_text()
            _replace(root / "etc/passwd", users if line in users else users + line)

    def command(self, argv, env=None, cwd="/", prepare="") -> list[str]:
        """`prepare` is a script that root runs inside before the command."""
        environment = {**self.environment, **(env or {})}
        entry = self.user.entry
        return [
            "unshare", "--mount", "--propagation", "private", "/bin/bash", "-c", ENTER, "enter", str(self.root), str(cwd), prepare, *self.seen, "--",
            "setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups",
            "env", "-i", *(f"{name}={value}" for name, value in environment.items() if value is not None), *argv,
        ]

    def run(self, *argv, check=True, timeout=300, env=None, cwd="/", prepare="", **more):
        for name in ("stdout", "stderr"):
            more.setdefault(name, subprocess.PIPE)
        more.setdefault("stdin", subprocess.DEVNULL)
        more.setdefault("text", True)
        done = subprocess.run(self.command(argv, env, cwd, prepare), timeout=timeout, **more)
        if check:
            assert done.returncode == 0, f"{argv} gave {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *argv, env=None, cwd="/", **more):
        for name in ("stdout", "stderr"):
            more.setdefault(name, subprocess.PIPE)
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(self.command(argv, env, cwd), text=True, **more)
