"""Root's own installations, where the configuration lets the kernel mount their images through a loop device, which goes away with
the session. If one of the conditions for that does not hold, our server serves them."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from conftest import BUILD, eventually, next_line

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root may have the kernel mount images")

MOUNTED = "print('squashfs' if [line for line in open('/proc/self/mountinfo') if line.split()[4] == {!r} and ' - squashfs ' in line] else 'served')"


def run(*argv, check=True, **environment):
    clean = {"PATH": "/usr/bin:/bin", "HOME": "/root", "CONTAINERIZE_SESSION_IDLE": "1"}
    clean.update({name: value for name, value in os.environ.items() if name.startswith("PIP_")})
    done = subprocess.run([str(word) for word in argv], env={**clean, **environment}, cwd="/", capture_output=True, text=True, timeout=300)
    assert not check or done.returncode == 0, done.stderr
    return done


def shown_by(env: Path) -> str:
    """Whether the kernel ("squashfs") or our server ("served") shows the image to the installation's programs."""
    return run(env / "bin/python", "-c", MOUNTED.format(str(env))).stdout.strip()


def loops(env: Path) -> list[str]:
    return [line for line in subprocess.run(["losetup", "--list", "--noheadings", "--output", "BACK-FILE"], capture_output=True, text=True,
                                            check=True).stdout.splitlines() if str(env) in line]


@pytest.fixture(scope="module")
def place():
    """Only root can write to this directory and its parents."""
    directory = Path(tempfile.mkdtemp(prefix="containerize-e2e-", dir="/opt"))
    config = directory / "config.yaml"
    config.write_text("defaults:\n  kernel_mount: yes\n")
    (directory / "requirements.txt").write_text("six\n")
    run(BUILD / "bin/containerize", "new", "--prefix", directory / "env", directory / "requirements.txt", CONTAINERIZE_CONFIG=str(config))
    (directory / "env").rename(directory / "kept")
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def env(place):
    """A fresh copy of one installation, at the path for which it was built."""
    subprocess.run(["cp", "-a", place / "kept", place / "env"], check=True)
    yield place / "env"
    subprocess.run(["pkill", "-f", f"^{place}"], check=False)
    eventually(lambda: not loops(place))
    shutil.rmtree(place / "env")


def test_the_kernel_mounts_what_is_roots(env):
    assert shown_by(env) == "squashfs"
    assert run(env / "bin/python", "-c", "import six; print(six.__file__)").stdout.startswith(f"{env}/lib/")
    said = run(BUILD / "bin/containerize", "stats", env, check=False)
    assert said.returncode == 1 and "the kernel mounts its image" in said.stderr
    # An idle session ends by itself, and the loop device goes away with it.
    eventually(lambda: not loops(env))
    assert shown_by(env) == "squashfs"


def test_the_mount_goes_with_a_killed_session(env):
    held = subprocess.Popen([env / "bin/python", "-c", "import six, sys; print('up', flush=True); sys.stdin.read(); import json, this"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert next_line(held.stdout) == "up\n"
    assert loops(env)
    subprocess.run(["pkill", "-KILL", "-f", f"^{env}/libexec/containerize-session"], check=True)
    # The mount needs only the kernel, so running programs continue.
    out, _ = held.communicate("", timeout=60)
    assert held.returncode == 0 and "Zen of Python" in out
    eventually(lambda: not loops(env))


def test_an_image_that_another_could_have_written_is_served(env):
    for change in (lambda: os.chown(env / "env.sqfs", 1, 0), lambda: (env / "env.sqfs").chmod(0o664), lambda: env.parent.chmod(0o777)):
        before = {path: path.stat() for path in (env / "env.sqfs", env.parent)}
        change()
        assert shown_by(env) == "served"
        for path, info in before.items():
            os.chown(path, info.st_uid, info.st_gid)
            path.chmod(info.st_mode & 0o7777)
        subprocess.run(["pkill", "-f", f"^{env}/libexec/containerize-session"], check=True)
        eventually(lambda: subprocess.run(["pgrep", "-f", f"^{env}/libexec/containerize-session"], check=False).returncode == 1)
    assert shown_by(env) == "squashfs"


def test_an_image_that_somebody_could_still_write_is_served(env):
    """A process that opened the image before it belonged to root could still write to it."""
    with open(env / "env.sqfs", "r+b"):
        assert shown_by(env) == "served"
    subprocess.run(["pkill", "-f", f"^{env}/libexec/containerize-session"], check=True)
    eventually(lambda: subprocess.run(["pgrep", "-f", f"^{env}/libexec/containerize-session"], check=False).returncode == 1)
    assert shown_by(env) == "squashfs"


def test_layers_are_served_until_they_are_one(env):
    run(BUILD / "bin/containerize", "update", env, "--", "pip", "install", "sniffio")
    assert shown_by(env) == "served"
    run(BUILD / "bin/containerize", "squash", env)
    assert shown_by(env) == "squashfs"
    assert run(env / "bin/python", "-c", "import sniffio, six").returncode == 0


def test_without_a_free_loop_device_it_is_served(env):
    """As in a container whose /dev has no loop devices."""
    lines = f"mount --bind /dev/null /dev/loop-control; {env}/bin/python -c \"$1\""
    done = run("unshare", "--mount", "sh", "-ec", lines, "sh", MOUNTED.format(str(env)))
    assert done.stdout.strip() == "served"


def test_beside_others_in_one_session(env, place, only_python):
    """Each is mounted as it was configured when it was built, whichever comes first."""
    other = place / "other"
    (place / "python.txt").write_text(only_python)
    run(BUILD / "bin/containerize", "new", "--prefix", other, place / "python.txt")
    for first, second, shown in ((env, other, "served"), (other, env, "squashfs")):
        inner = f"import subprocess; subprocess.run([{str(second / 'bin/python')!r}, '-c', {MOUNTED.format(str(second))!r}], check=True)"
        assert run(first / "bin/python", "-c", inner).stdout.strip() == shown
        subprocess.run(["pkill", "-f", f"^{first}/libexec/containerize-session"], check=True)
        eventually(lambda: subprocess.run(["pgrep", "-f", f"^{first}/libexec/containerize-session"], check=False).returncode == 1)
    assert not loops(env)
