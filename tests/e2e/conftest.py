"""What all end-to-end tests share: the installed program, an unprivileged user, and installations that tests only read."""

import contextlib
import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/lib"))
from common import free_port, locked, made_once, next_line, recordings, unique_uid, wait_for_recordings  # noqa: E402, F401 (some are for the test files)

BUILD = Path(os.environ.get("CONTAINERIZE_BUILD", SOURCE / "build/release"))
CACHE = Path("/var/cache/containerize-tests")
TEST_USER = "containerize-test"
OTHER_USER = "containerize-other"
# Prefixes of the environment variables that pip needs to reach its index. Tests see no other variable of the machine.
PASSED_ON = ("PIP_", "SSL_", "REQUESTS_", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY")


# Prepended to a command: runs it in a new user namespace of the test user, in which no further one can be created.
IN_A_NAMESPACE_WITHOUT_FURTHER_ONES = (
    "unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c",
    'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --ambient-caps=-all --inh-caps=-all "$@"', "sh")


class User:
    """Runs commands as an unprivileged user: the test user when pytest runs as root, otherwise the current user."""

    def __init__(self, name=TEST_USER):
        if os.getuid() == 0:
            self.entry = pwd.getpwnam(name)
            self.switch = {"user": self.entry.pw_uid, "group": self.entry.pw_gid, "extra_groups": []}
        else:
            self.entry = pwd.getpwuid(os.getuid())
            self.switch = {}
        self.uid = self.entry.pw_uid
        self.environment = {
            "HOME": self.entry.pw_dir,
            "USER": self.entry.pw_name,
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            **{name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)},
        }
        if CACHE.is_dir():
            self.environment["PIP_CACHE_DIR"] = str(CACHE / "pip")
        # Also keeps builds from downloading a uv of their own, which only test_pinned_uv.py wants.
        self.environment["UV_CACHE_DIR"] = str(Path(self.entry.pw_dir) / ".cache/uv")

    def options(self, env=None, **more):
        environment = {**self.environment, **(env or {})}
        environment = {name: value for name, value in environment.items() if value is not None}
        return {"env": environment, "cwd": "/", "stdin": subprocess.DEVNULL, **self.switch, **more}

    def run(self, *argv, check=True, timeout=300, env=None, **more):
        """Runs a command to completion. With `check`, a non-zero exit status fails the test and shows the output."""
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        text = more.pop("text", True)
        done = subprocess.run(argv, timeout=timeout, text=text, **self.options(env, **more))
        wait_for_recordings(self.uid)
        if check:
            assert done.returncode == 0, f"{argv} gave {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *argv, env=None, **more):
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(argv, text=True, **self.options(env, **more))

    def directory(self, parent=None) -> Path:
        path = Path(tempfile.mkdtemp(prefix="containerize-e2e-", dir=parent))
        os.chown(path, self.entry.pw_uid, self.entry.pw_gid)
        path.chmod(0o755)
        return path

    def copy(self, installation: Path, target: Path, built_for: Path) -> Path:
        """Copies an installation; the manifest of the copy says that it was built at `built_for`."""
        shutil.copytree(installation, target, symlinks=True)
        manifest = target / "containerize.json"
        manifest.write_text(manifest.read_text().replace(str(installation), str(built_for)))
        for path in [target, *target.rglob("*")]:
            os.chown(path, self.entry.pw_uid, self.entry.pw_gid, follow_symlinks=False)
        return target

    def write(self, path: Path, text: str, mode: int = 0o644) -> Path:
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, self.entry.pw_uid, self.entry.pw_gid)
        return path


def namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/user")
    except OSError:
        return "gone"


class Sessions:
    """The session processes of the test user on this machine."""

    def __init__(self, user: User):
        self.user = user

    @property
    def state(self) -> Path:
        return Path(f"/tmp/containerize-{self.user.uid}")

    def processes(self) -> dict[int, int]:
        """Maps the pid of each session process to its parent's pid."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                command = (entry / "cmdline").read_bytes().split(b"\0")[0]
                status = (entry / "stat").read_text().rpartition(")")[2].split()
                owner = entry.stat().st_uid
            except OSError:
                continue
            if owner == self.user.uid and b"/libexec/containerize-session-" in command and status[0] != "Z":
                found[int(entry.name)] = int(status[1])
        return found

    def supervisors(self) -> list[int]:
        processes = self.processes()
        return [pid for pid, parent in processes.items() if parent not in processes]

    def servers(self) -> list[int]:
        """The file servers."""
        processes = self.processes()
        return [pid for pid, parent in processes.items() if parent in processes and namespace(pid) == namespace(parent)]

    def helpers(self) -> list[int]:
        """The processes that stay outside of the user namespace, where they see the owners of files."""
        processes = self.processes()
        return [pid for pid, parent in processes.items() if parent in processes and namespace(pid) != namespace(parent)]

    def kill_all(self):
        for _ in range(100):
            found = self.processes()
            if not found:
                break
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.02)
        assert not self.processes()


def eventually(condition, seconds=30):
    """Polls until `condition` holds; fails the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def linux_is_at_least(*version):
    return tuple(map(int, os.uname().release.split("-")[0].split(".")[:2])) >= version


def resend_is_possible():
    """Whether a killed server is replaced without loss."""
    return linux_is_at_least(6, 9)


class HangingImage:
    """Puts the image of an installation on a filesystem that can be made to hang. Needs root."""

    def __init__(self, installation: Path, work: Path):
        self.installation = installation
        self.image = installation / "env.sqfs"
        self.slow = work / "slow"
        self.fast = work / "fast"

    def __enter__(self):
        self.slow.mkdir()
        self.fast.mkdir()
        self.image.rename(self.fast / self.image.name)
        self.server = subprocess.Popen([BUILD / "tests/slow_filesystem", str(self.fast), str(self.slow), "0"])
        eventually(self.slow.is_mount)
        self.image.touch()
        subprocess.run(["mount", "--bind", str(self.slow / self.image.name), str(self.image)], check=True)
        return self

    def hang(self):
        self.server.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.server.send_signal(signal.SIGCONT)

    def __exit__(self, *_):
        self.go_on()
        subprocess.run(["umount", "--lazy", str(self.image), str(self.slow)], check=True)
        self.server.wait(60)


@pytest.fixture(scope="session")
def user():
    return User()


@pytest.fixture(scope="session")
def sessions(user):
    return Sessions(user)


@pytest.fixture(scope="session")
def place(user):
    """A directory of the user's, shared by all tests of a file."""
    path = user.directory()
    yield path
    Sessions(user).kill_all()
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture()
def work(user, place):
    """A fresh directory of the user's, for one test."""
    return user.directory(place)


@pytest.fixture(scope="session")
def tool(place):
    """The installed program, readable by the user."""
    tree = place / "tool"
    subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(tree)], check=True, stdout=subprocess.DEVNULL)
    return tree / "bin/containerize"


@pytest.fixture(scope="session")
def newer(tool, place):
    """The program as version 99.1.0, which exchanges other messages (tests/lib/other_version.cpp)."""
    tree = shutil.copytree(tool.parents[1], place / "newer", symlinks=True)
    for program in ("bin/containerize", "libexec/containerize/launcher", "libexec/containerize/session"):
        shutil.copy2(BUILD / "tests/other_version" / program, tree / program)
    return tree / "bin/containerize"


@pytest.fixture(scope="session")
def make(user, tool):
    """make(PREFIX, REQUIREMENTS TEXT, OPTION, ...) builds an installation."""

    def build(prefix: Path, requirements: str, *options: str, **more) -> Path:
        spec = user.write(prefix.parent / f"{prefix.name}-requirements.txt", requirements)
        user.run(str(tool), "new", "--prefix", str(prefix), *options, str(spec), timeout=1200, **more)
        return prefix

    return build


@pytest.fixture(scope="session")
def kept(user, tool, make):
    """kept(NAME, REQUIREMENTS TEXT, OPTION, ...) is an installation that this version of the program has built, once for all test files
    and later runs. Tests only read it."""
    parts = [file.read_bytes() for file in sorted(tool.parents[1].rglob("*")) if file.is_file() and file.name != "commit"]
    shared = CACHE / "installations" / hashlib.sha256(b"".join(parts)).hexdigest()[:12]
    shared.mkdir(parents=True, exist_ok=True)
    os.chown(shared, user.uid, user.entry.pw_gid)
    os.utime(shared)
    for other in shared.parent.iterdir():
        if time.time() - other.stat().st_mtime > 24 * 3600:
            shutil.rmtree(other, ignore_errors=True)

    def build(name: str, requirements: str, *options: str) -> Path:
        prefix = shared / name
        with locked(shared / f"{name}.lock"):
            if not (prefix / "containerize.json").exists():
                shutil.rmtree(prefix, ignore_errors=True)
                make(prefix, requirements, *options)
        return prefix

    return build


@pytest.fixture(scope="session")
def env(kept):
    """An installation with numpy, requests and Pygments. Tests only read it."""
    return kept("env", "numpy\nrequests\nPygments\n")


@pytest.fixture(scope="session")
def small(kept):
    """An installation with one small package. Tests only read it."""
    return kept("small", "six==1.16.0\n")


@pytest.fixture(scope="session")
def channels():
    """Conda channels, made from real packages once and kept for later runs."""
    import conda_channel  # imported here because few tests need its dependencies

    return conda_channel.make(CACHE / "conda")


@pytest.fixture(scope="session")
def where(channels):
    """A spec that is built in a moment, for tests to which it is all the same what is built. It has the program `where`, which prints the
    path that it was installed for."""
    return f"channels: ['file://{channels}/main', nodefaults]\ndependencies: [where]\n"


@pytest.fixture(scope="session")
def only_python(channels):
    """A spec of Python without pip, which is built much faster than a venv."""
    (package,) = (channels / "main/linux-64").glob("python-*.conda")
    return f"@EXPLICIT\nfile://{package}\n"


@pytest.fixture(scope="session")
def uv(place):
    """A PATH with uv from PyPI."""

    def make(target):
        subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "-q", "--target", target, "uv"], check=True)

    return {"PATH": f"{made_once(CACHE / 'uv', make)}/bin:/usr/bin:/bin", "PIP_FIND_LINKS": None, "UV_CACHE_DIR": str(place / "uv-cache")}


@pytest.fixture(scope="session")
def torch_env(kept):
    """An installation for training with torch, on CPUs. Tests only read it."""
    return kept("torch", "torch==2.13.0\nnumpy\nmpi4py\nlightning\n", "--installer", "pip")


def debian_package(name: str) -> Path:
    """The files of a Debian package that is not installed."""

    def make(tree):
        tree.mkdir()
        subprocess.run(["sh", "-ec", 'cd "$1"; apt-get -qq download "$2"; dpkg -x "$2"_*.deb .; rm "$2"_*.deb', "sh", tree, name], check=True)

    return made_once(CACHE / f"package-{name}", make)


@pytest.fixture(scope="session")
def trixie():
    """A Debian 13 root filesystem."""

    def make(root):
        subprocess.run(["mmdebstrap", "--variant=minbase", "--include=python3,python3-venv,ca-certificates", "trixie", str(root)],
                       check=True, stderr=subprocess.DEVNULL, timeout=1500)
        for leftover in ("dev", "var/lib/apt/lists"):
            shutil.rmtree(root / leftover)
        (root / "dev").mkdir()
        root.chmod(0o755)

    return made_once(CACHE / "trixie-root", make)


@pytest.fixture(scope="session")
def base(trixie):
    """The `trixie` root as a squashfs image, compressed with gzip as most images are. Tests only read it."""

    def make(image):
        subprocess.run(["mksquashfs", trixie, image, "-comp", "gzip", "-Xcompression-level", "1", "-all-root", "-noappend", "-quiet", "-no-progress"],
                       check=True, stdout=subprocess.DEVNULL)
        image.chmod(0o644)

    return made_once(CACHE / "trixie.sqfs", make)


@pytest.fixture(scope="session")
def machine(user):
    """A second machine, which has Apptainer."""
    import machine as machines

    return machines.Machine(machines.make_root(CACHE), user, [Path("/tmp"), Path(user.entry.pw_dir), CACHE])


@pytest.fixture()
def without_fuse_overlayfs(work):
    """A PATH with every program except fuse-overlayfs."""
    programs = work / "programs"
    programs.mkdir()
    for path in Path("/usr/bin").iterdir():
        if path.name != "fuse-overlayfs":
            (programs / path.name).symlink_to(path)
    return {"PATH": str(programs)}
