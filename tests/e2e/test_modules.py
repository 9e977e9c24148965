"""Module files in a real Lmod and a real environment-modules, Jupyter kernels, and copies of images on the node."""

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import debian_package

LMOD = "/usr/share/lmod/lmod/init/bash"
SHOW = 'echo "$CONTAINERIZE_PREFIX|$CONTAINERIZE_IMAGE|$CONTAINERIZE_RUNSCRIPTS|${PATH%%:*}"'


@pytest.fixture(scope="module")
def tcl_modules() -> Path:
    """environment-modules, extracted from its package because it cannot be installed beside Lmod."""
    (program,) = debian_package("environment-modules").glob("usr/lib/*/modulecmd.tcl")
    return program


@pytest.fixture(scope="module")
def other(make, place, where):
    return make(place / "other", where)


class Lmod:
    def __init__(self, user):
        self.user = user

    def run(self, *installations, script):
        use = "; ".join(f"module use {shlex.quote(str(one / 'share/modulefiles'))}" for one in installations)
        return self.user.run("bash", "--noprofile", "--norc", "-c", f". {LMOD}; {use}; {script}", check=False)


class Tcl:
    def __init__(self, user, program):
        self.user, self.program = user, program

    def run(self, *installations, script):
        function = f'module() {{ eval "$(/usr/bin/tclsh {shlex.quote(str(self.program))} bash "$@")"; }}'
        use = "; ".join(f"module use {shlex.quote(str(one / 'share/modulefiles'))}" for one in installations)
        return self.user.run("bash", "--noprofile", "--norc", "-c", f"{function}; {use}; {script}", check=False)


@pytest.fixture(params=["Lmod", "Tcl"])
def modules(request, user):
    return Lmod(user) if request.param == "Lmod" else Tcl(user, request.getfixturevalue("tcl_modules"))


def test_loading_and_unloading(modules, small):
    done = modules.run(small, script=f"module load small; {SHOW}; python -c 'import six; print(six.__version__)'; module unload small; {SHOW}")
    loaded, version, unloaded = done.stdout.splitlines()
    assert loaded == f"{small}|{small}/env.sqfs|{small}/bin|{small}/bin"
    assert version == "1.16.0"
    assert unloaded.startswith("|||") and str(small) not in unloaded
    assert done.stderr == ""


def test_of_a_moved_installation_and_of_a_copied_file(modules, user, small, work):
    """The module file of a moved installation uses the new path; one copied elsewhere uses the path for which it was written."""
    moved = user.copy(small, work / "moved", small)
    done = modules.run(moved, script=f"module load small; {SHOW}")
    assert done.stdout.splitlines()[0] == f"{moved}|{moved}/env.sqfs|{moved}/bin|{moved}/bin", done.stderr
    site = work / "site/share/modulefiles"
    shutil.copytree(small / "share/modulefiles", site)
    done = modules.run(site.parents[1], script=f"module load small; {SHOW}")
    assert done.stdout.splitlines()[0] == f"{small}|{small}/env.sqfs|{small}/bin|{small}/bin", done.stderr


def test_help(modules, small):
    done = modules.run(small, script="module help small; module whatis small")
    assert f"{small}/share/packages.txt" in done.stdout + done.stderr
    assert "Python environment small" in done.stdout + done.stderr


def test_one_at_a_time(modules, small, other):
    """The programs of two environments would be mixed. Lmod replaces the first with the second, the other refuses."""
    done = modules.run(small, other, script=f"module load small; module load other; {SHOW}")
    prefix = done.stdout.splitlines()[-1].split("|")[0]
    assert prefix == str(other if isinstance(modules, Lmod) else small)
    assert "containerize_environment" in done.stdout + done.stderr or isinstance(modules, Lmod)


def test_after_an_update(modules, tool, user, make, place):
    prefix = place / "changing"
    if not prefix.exists():
        make(prefix, "six==1.15.0\n")
        user.run(str(tool), "update", str(prefix), "--", "pip", "install", "six==1.16.0")
    done = modules.run(prefix, script="module load changing; python -c 'import six; print(six.__version__)'")
    assert done.stdout == "1.16.0\n"


def test_a_path_with_a_space(modules, user, make, place, where):
    prefix = place / "a b/odd"
    if not prefix.exists():
        user.run("mkdir", str(prefix.parent))
        make(prefix, where)
    done = modules.run(prefix, script=f"module load odd; {SHOW}")
    assert done.stdout.startswith(f"{prefix}|{prefix}/env.sqfs|"), done.stderr


def test_kernel(user, tool, make, place, work):
    """Starts the kernel as Jupyter would, and runs code in it."""
    prefix = make(place / "notebook", "ipykernel\n")
    settings = {"JUPYTER_DATA_DIR": str(work)}
    file = Path(user.run(str(tool), "kernel", str(prefix), "--name", "mine", env=settings).stdout.strip())
    assert file == work / "kernels/mine/kernel.json"
    argv = json.loads(file.read_text())["argv"]
    assert argv[0] == f"{prefix}/bin/python"
    script = """\
import sys
from jupyter_client.manager import run_kernel
with run_kernel(kernel_name="mine") as client:
    client.execute_interactive("import sys; print(sys.executable)", timeout=120, output_hook=lambda m: print(m["content"].get("text", ""), end=""))
"""
    done = user.run(f"{prefix}/bin/python", "-c", script, env=settings)
    assert done.stdout == f"{prefix}/bin/python\n"


@pytest.mark.parametrize("words, message", [
    ([], "the installation does not contain ipykernel"),
    (["--name", "../x"], "../x: invalid kernel name"),
])
def test_kernel_refused(user, tool, small, work, words, message):
    done = user.run(str(tool), "kernel", str(small), *words, env={"JUPYTER_DATA_DIR": str(work)}, check=False)
    assert done.returncode == 2 and message in done.stderr and not any(work.iterdir())


class Copies:
    def __init__(self, user, sessions, prefix):
        self.user, self.sessions, self.prefix = user, sessions, prefix

    def start(self, code="import six; print(six.__version__)", **env):
        self.sessions.kill_all()
        return self.user.run(f"{self.prefix}/bin/python", "-c", code, env=env, check=False)

    def open_images(self) -> list[str]:
        """The images that the server has open, as /proc names them."""
        (server,) = self.sessions.servers()
        names = [os.readlink(f"/proc/{server}/fd/{fd}") for fd in os.listdir(f"/proc/{server}/fd")]
        return [name for name in names if "env.sqfs" in name or "containerize-image" in name or name.startswith("/tmp/#") or "deleted" in name and "/dev/" not in name]

    def log(self) -> str:
        (log,) = self.sessions.state.glob("v*-*/log")
        return log.read_text()


@pytest.fixture()
def copies(user, sessions, small, work):
    return Copies(user, sessions, user.copy(small, work / "staged", work / "staged"))


@pytest.mark.parametrize("where", ["local", "ram"])
def test_a_copy_on_the_node(copies, where):
    """The server reads the copy: all files can be read while the image is away."""
    assert copies.start(CONTAINERIZE_STAGE=where).stdout == "1.16.0\n"
    (name,) = copies.open_images()
    assert str(copies.prefix) not in name
    assert "copied env.sqfs to this node" in copies.log()
    assert not list(Path("/tmp").glob("containerize-image*"))
    image = copies.prefix / "env.sqfs"
    away = image.rename(image.with_name("away"))
    try:
        copies.user.run(f"{copies.prefix}/bin/_debug_exec", "find", f"{copies.prefix}/lib", "-type", "f", "-exec", "cat", "{}", "+", stdout=subprocess.DEVNULL)
    finally:
        away.rename(image)


def test_a_copy_that_the_installation_asks_for(user, sessions, make, only_python, work):
    asking = Copies(user, sessions, make(work / "asking", only_python, "--stage", "ram"))
    assert asking.start("import json; print(json.__name__)").stdout == "json\n"
    assert "copied env.sqfs to this node" in asking.log()
    assert asking.start("import json; print(json.__name__)", CONTAINERIZE_STAGE="auto").stdout == "json\n"
    assert asking.open_images() == [f"{asking.prefix}/env.sqfs"], "who starts it is asked first"


def test_no_copy(copies):
    assert copies.start().stdout == "1.16.0\n"
    assert copies.open_images() == [f"{copies.prefix}/env.sqfs"]


def test_a_copy_for_which_there_is_no_place(copies, work):
    assert copies.start(CONTAINERIZE_STAGE="local", TMPDIR=str(work / "missing")).stdout == "1.16.0\n"
    assert copies.open_images() == [f"{copies.prefix}/env.sqfs"]
    assert "cannot copy the image to this node" in copies.log()


def test_a_copy_of_what_is_damaged(copies):
    """No copy is used then: the log says that it is not what was built."""
    image = copies.prefix / "env.sqfs"
    with open(image, "r+b") as file:
        file.seek(image.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))
    try:
        assert copies.start(CONTAINERIZE_STAGE="ram").stdout == "1.16.0\n", "programs do not need the damaged byte"
        assert copies.open_images() == [str(image)]
        assert "the copy of the image differs from the image that was built" in copies.log()
    finally:
        with open(image, "r+b") as file:
            file.seek(image.stat().st_size // 2)
            file.write(byte)


def test_a_place_that_is_none(copies):
    """The first launch of a session warns once, and programs still start."""
    done = copies.start(CONTAINERIZE_STAGE="disk")
    assert done.returncode == 0 and done.stdout == "1.16.0\n"
    assert done.stderr.startswith("containerize: warning: CONTAINERIZE_STAGE: invalid stage setting: 'disk'"), done.stderr
    again = copies.user.run(f"{copies.prefix}/bin/python", "-c", "", env={"CONTAINERIZE_STAGE": "disk"})
    assert again.stderr == ""
