"""What users download: the archives and the wheel."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from conftest import BUILD, CACHE, SOURCE

sys.path.insert(0, str(SOURCE / "tests/lib"))
import conda_channel
from common import pinned_programs
from installation import mounted_in_memory
from local_server import LocalServer

VERSION = re.search(r"project\(containerize VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
NAME = f"containerize-{VERSION}-linux-{os.uname().machine}"
ARCHIVE = BUILD / f"{NAME}.tar.zst"
TYKKY = ("conda-containerize", "pip-containerize", "wrap-container", "wrap-install")
LARGEST = 12_000_000  # bytes


@pytest.fixture(scope="module")
def wheel(place):
    """Where the user can read it."""
    (file,) = BUILD.glob(f"containerize-{VERSION}-py3-none-manylinux*.whl")
    return Path(shutil.copy(file, place))


@pytest.fixture()
def unpacked(user, place, work):
    user.run("tar", "--zstd", "-xf", shutil.copy(ARCHIVE, place), "-C", work)
    return work / NAME


@pytest.fixture(scope="module")
def channel(place):
    """A channel with one package, of a static program, so that it needs nothing of the machine either."""
    directory = place / "channel"
    package = conda_channel.Package("tools", "1.0")
    package.add("bin/busybox", Path("/bin/busybox").read_bytes(), 0o755)
    package.write(directory)
    conda_channel.index(directory)
    return directory


class Channel(LocalServer):
    """Serves the files of a channel."""

    def __init__(self, directory):
        super().__init__()
        self.directory = directory

    def answer(self, request):
        file = self.directory / request.path.lstrip("/")
        if file.is_file():
            self.send(request, 200, {}, file.read_bytes())
        else:
            self.send(request, 404, {})


def files_of(tree: Path) -> set[str]:
    return {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_symlink() or path.is_file()}


def test_archives_contain_the_installed_tree(tool, wheel):
    tree = tool.parents[1]
    for file in (ARCHIVE, BUILD / f"{NAME}.tar.gz", wheel):
        assert 1_000_000 < file.stat().st_size <= LARGEST
    with tarfile.open(BUILD / f"{NAME}.tar.gz") as archive:
        members = {member.name.removeprefix(f"{NAME}/"): member for member in archive if not member.isdir()}
    assert set(members) == files_of(tree)
    assert {(member.uid, member.gid, member.mode & 0o022) for member in members.values() if member.isfile()} == {(0, 0, 0)}
    unpacked = subprocess.run(["tar", "--zstd", "-tf", ARCHIVE], check=True, capture_output=True, text=True).stdout.split()
    assert {name.removeprefix(f"{NAME}/") for name in unpacked if not name.endswith("/")} == files_of(tree)


@pytest.mark.parametrize("program", ["bin/containerize", "libexec/containerize/launcher", "libexec/containerize/session"])
def test_programs_need_no_library(tool, program):
    headers = subprocess.run(["readelf", "--program-headers", "--dynamic", tool.parents[1] / program], check=True, capture_output=True, text=True).stdout
    assert "LOAD" in headers and "INTERP" not in headers and "NEEDED" not in headers


def test_works_where_nothing_else_is_installed(user, work, unpacked, channel):
    """In a root with a shell only, with a channel that is found by its name in /etc/hosts. Neither glibc's modules nor any library of
    the machine may be loaded."""
    root = user.directory(work)
    for name in ("etc", "bin", "opt", "home", "tmp", "proc", "dev"):
        (root / name).mkdir()
    shutil.copy("/bin/busybox", root / "bin/sh")
    (root / "etc/hosts").write_text("127.0.0.1 channel.example\n")
    (root / "etc/nsswitch.conf").write_text("passwd: files sss\nhosts: files sss dns\n")
    for path in [root, *root.rglob("*")]:
        os.chown(path, user.uid, user.entry.pw_gid)
    server = Channel(channel)
    try:
        user.write(root / "home/env.yml", f"channels: ['http://channel.example:{server.port}', nodefaults]\ndependencies: [tools]\n")
        inside = ["bwrap", "--bind", root, "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--ro-bind", unpacked, "/opt", "--chdir", "/home",
                  "--setenv", "HOME", "/home", "--setenv", "PATH", "/bin", "--setenv", "LANG", "de_DE.ISO-8859-1"]
        doctor = user.run(*inside, "/opt/bin/containerize", "doctor", check=False).stdout
        assert re.search(r"^ok +user namespaces", doctor, re.MULTILINE) and re.search(r"^ok +FUSE", doctor, re.MULTILINE)
        user.run("strace", "-f", "-qq", "-e", "trace=execve,openat,open", "-o", work / "opened", *inside,
                 "/opt/bin/containerize", "new", "--prefix", "/home/env", "env.yml")
        assert user.run(*inside, "/home/env/bin/busybox", "echo", "works").stdout == "works\n"
    finally:
        server.close()
    opened = re.findall(r'open(?:at)?\((?:AT_FDCWD, )?"(.*?)"', (work / "opened").read_text().partition('execve("/opt/bin/containerize"')[2])
    assert "/etc/hosts" in opened
    assert [path for path in opened if re.search(r"\.so(\.|$)|gconv|locale", path)] == []


def test_wheel_is_installed_and_removed(user, work, wheel, channel):
    venv = work / "venv"
    user.run("/usr/bin/python3", "-m", "venv", venv)
    before = files_of(venv)
    user.run(venv / "bin/pip", "install", "--no-index", wheel)
    for name in TYKKY:  # each command says its own name
        assert f"usage: {name} " in user.run(venv / "bin" / name, "--help").stdout
    spec = user.write(work / "env.yml", f"channels: ['file://{channel}', nodefaults]\ndependencies: [tools]\n")
    user.run(venv / "bin/containerize", "new", "--prefix", work / "env", spec)
    assert user.run(work / "env/bin/busybox", "echo", "works").stdout == "works\n"
    user.run(venv / "bin/pip", "uninstall", "--yes", "containerize")
    assert {path for path in files_of(venv) - before if "__pycache__" not in path} == set()
    assert user.run(work / "env/bin/busybox", "echo", "still").stdout == "still\n"


@pytest.mark.parametrize("missing", ["libexec/containerize/session", "libexec/containerize/launcher", "share/containerize/python", "share/containerize/profile"])
def test_archive_that_was_unpacked_in_part(user, work, unpacked, channel, missing):
    shutil.rmtree(unpacked / missing) if (unpacked / missing).is_dir() else (unpacked / missing).unlink()
    spec = user.write(work / "env.yml", f"channels: ['file://{channel}', nodefaults]\ndependencies: [tools]\n")
    failed = user.run(unpacked / "bin/containerize", "new", "--prefix", work / "env", spec, check=False)
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == (f"containerize: {unpacked / missing}: containerize is not completely installed: a file is missing\n"
                             "Install or unpack it again.\n")
    assert not (work / "env").exists()
    doctor = user.run(unpacked / "bin/containerize", "doctor", check=False)
    assert doctor.returncode == 1 and re.search(r"^missing +containerize +.*a file is missing$", doctor.stdout, re.MULTILINE)


@pytest.mark.parametrize("program", ["session", "launcher"])
def test_truncated_program(user, work, unpacked, channel, program):
    os.truncate(unpacked / "libexec/containerize" / program, 100_000)
    spec = user.write(work / "env.yml", f"channels: ['file://{channel}', nodefaults]\ndependencies: [tools]\n")
    failed = user.run(unpacked / "bin/containerize", "new", "--prefix", work / "env", spec, check=False)
    assert failed.returncode == 1 and f"/{program}: containerize is not completely installed: the file is truncated\n" in failed.stderr
    assert not (work / "env").exists()


def test_moved_while_it_runs(user, work, unpacked, channel):
    spec = user.write(work / "env.yml", f"channels: ['file://{channel}', nodefaults]\ndependencies: [tools]\n")
    script = user.write(work / "move.sh", f"mv {unpacked} {work}/elsewhere\n")
    failed = user.run(unpacked / "bin/containerize", "new", "--prefix", work / "env", "--post-install", script, spec, check=False)
    assert failed.returncode == 1, failed.stderr
    assert failed.stderr.endswith(f"containerize was moved or removed while it ran: it was in {unpacked}. Run the command again.\n")
    assert not (work / "env").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
def test_prefix_where_no_program_can_be_started(user, tool, work, channel):
    spec = user.write(work / "env.yml", f"channels: ['file://{channel}', nodefaults]\ndependencies: [tools]\n")
    with mounted_in_memory(work / "noexec", "mode=1777,noexec") as place:
        refused = user.run(tool, "new", "--prefix", place / "below/env", spec, check=False)
        assert (refused.returncode, list(place.iterdir())) == (2, [])
        assert "no program can be started in this prefix: its filesystem is mounted noexec\n" in refused.stderr
        doctor = user.run(tool, "doctor", "--prefix", place / "env", check=False)
        assert doctor.returncode == 1 and "mounted noexec" in doctor.stdout


def test_doctor_names_a_mistake_in_the_configuration(user, tool, work):
    settings = user.write(work / "config.yaml", "nonsense: [\n")
    doctor = user.run(tool, "doctor", check=False, env={"CONTAINERIZE_CONFIG": str(settings)})
    assert doctor.returncode == 1
    assert re.search(rf"^missing +configuration +{settings}:", doctor.stdout, re.MULTILINE) and "user namespaces" in doctor.stdout


def test_easybuild_makes_a_module(user, work):
    """By the easyconfig that is released with the archive, which has its checksum."""
    programs = pinned_programs(SOURCE / "tests/lib/easybuild.txt", CACHE / "easybuild")
    for file in (f"{NAME}.tar.gz", f"containerize-{VERSION}.eb"):
        shutil.copy(BUILD / file, work)
    script = """
        . /usr/share/lmod/lmod/init/bash
        eb --sourcepath="$PWD" --prefix="$PWD/software" containerize-*.eb >&2
        module use "$PWD/software/modules/all"
        module load containerize
        command -v containerize
        containerize --version"""
    done = user.run("bash", "-euc", script, cwd=work, env={"PATH": f"{programs}:/usr/bin:/bin"})
    path, version = done.stdout.splitlines()[:2]
    assert (path, version.split()[:2]) == (f"{work}/software/software/containerize/{VERSION}/bin/containerize", ["containerize", VERSION])
