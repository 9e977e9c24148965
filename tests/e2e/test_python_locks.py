"""Locks and projects of Python's own tools: an installation has the packages that the tool itself installs."""

import json
import shutil
import subprocess

import pytest
from conftest import CACHE, SOURCE, made_once
from installation import Installation

DATA = SOURCE / "tests/data/python-locks"
PACKAGES = "import importlib.metadata as m, json; print(json.dumps(sorted({f'{d.name}=={d.version}' for d in m.distributions()})))"
OF_VENV = ("pip==", "setuptools==", "wheel==")


@pytest.fixture
def work(user):
    directory = user.directory()
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def tools():
    """uv, Poetry and pipenv from PyPI."""

    def make(target):
        subprocess.run(["/usr/bin/python3", "-m", "venv", target], check=True)
        subprocess.run([f"{target}/bin/python", "-m", "pip", "install", "-q", "uv", "poetry>=2,<3", "pipenv"], check=True)

    return made_once(CACHE / "python-tools", make)


def packages(text):
    return {one for one in json.loads(text) if not one.startswith(OF_VENV)}


@pytest.fixture
def project(user, work):
    """A copy of the project of these locks."""
    user.run("cp", "-r", DATA, work / "project")
    return work / "project"


def built(user, tool, work, spec, *options, **more):
    installation = Installation(user, tool, work / "env")
    installation.new(spec, "--force", *options, **more)
    return packages(installation.python(PACKAGES))


def installed_by(user, tools, directory, *command):
    """What the tool puts into `.venv` of its project."""
    python = f"{tools}/bin/python"
    env = {"HOME": str(directory), "PATH": "/usr/bin:/bin", "POETRY_VIRTUALENVS_IN_PROJECT": "true", "PIPENV_VENV_IN_PROJECT": "1",
           "PIPENV_IGNORE_VIRTUALENVS": "1", "UV_PYTHON": "/usr/bin/python3", "PIP_FIND_LINKS": None}
    first = [f"{tools}/bin/uv"] if command[0] == "uv" else [python, "-m", command[0]]
    user.run(*first, *command[1:], env=env, cwd=directory)
    return packages(user.run(directory / ".venv/bin/python", "-c", PACKAGES).stdout)


CASES = [
    ("uv.lock", [], ["uv", "sync", "--frozen", "--no-dev", "--no-install-project"]),
    ("uv.lock", ["--group", "dev", "--extra", "all"], ["uv", "sync", "--frozen", "--extra", "all", "--no-install-project"]),
    ("poetry/poetry.lock", [], ["poetry", "install", "--only", "main"]),
    ("poetry/poetry.lock", ["--group", "dev", "--extra", "net"], ["poetry", "install", "--with", "dev", "--extras", "net"]),
    ("Pipfile.lock", [], ["pipenv", "sync"]),
    ("Pipfile.lock", ["--group", "dev"], ["pipenv", "sync", "--dev"]),
]


@pytest.mark.parametrize("file,options,command", CASES)
def test_the_packages_are_those_that_the_tool_installs(user, tool, work, tools, project, file, options, command):
    lock = project / file
    expected = installed_by(user, tools, lock.parent, *command)
    assert len(expected) > 2
    for installer in ("pip", "uv"):
        env = {"PATH": f"{tools}/bin:/usr/bin:/bin", "PIP_FIND_LINKS": None, "UV_CACHE_DIR": str(work / "uv-cache")}
        installation = Installation(user, tool, work / "env", env)
        installation.new(lock, "--force", "--python", "/usr/bin/python3", "--installer", installer, *options)
        assert packages(installation.python(PACKAGES)) == expected


def test_pylock_has_the_packages_of_uv_lock(user, tool, work, project):
    assert built(user, tool, work, project / "pylock.toml") == built(user, tool, work, project / "uv.lock")


def test_a_project_brings_what_it_depends_on(user, tool, work, project):
    found = built(user, tool, work, project / "pyproject.toml", "--group", "lint", "--extra", "net")
    assert {one.split("==")[0] for one in found} == {"idna", "markdown-it-py", "mdurl", "packaging", "certifi"}
    assert {"packaging==24.0", "certifi==2024.2.2"} <= found


def test_a_script_brings_what_it_depends_on(user, tool, work):
    script = user.write(work / "x.py", '# /// script\n# dependencies = ["six==1.16.0"]\n# requires-python = ">=3.8"\n# ///\nimport six\nprint(six.__version__)\n')
    assert built(user, tool, work, script) == {"six==1.16.0"}
    assert user.run(work / "env/bin/python", script).stdout == "1.16.0\n"


def test_another_python_is_refused(user, tool, work):
    script = user.write(work / "x.py", '# /// script\n# requires-python = ">=3.30"\n# dependencies = ["six"]\n# ///\n')
    done = Installation(user, tool, work / "env").call("new", "--prefix", work / "env", script, check=False)
    assert done.returncode == 2, done.stderr
    assert f"{script}:2: this file is for Python >=3.30, and the environment has Python 3." in done.stderr
    assert not (work / "env").exists()


def test_a_wrong_checksum_is_refused(user, tool, work, project):
    lock = user.write(work / "uv.lock", (project / "uv.lock").read_text().replace("sha256:", "sha256:0"))
    text = (project / "pylock.toml").read_text()
    for digits in {part.split('"')[1] for part in text.split("sha256 = ")[1:]}:
        text = text.replace(digits, "0" * 64)
    done = Installation(user, tool, work / "env").call("new", "--prefix", work / "env", user.write(work / "pylock.toml", text), check=False)
    assert done.returncode == 1 and "hash" in done.stderr.lower(), done.stderr
    done = Installation(user, tool, work / "env").call("new", "--prefix", work / "env", lock, check=False)
    assert done.returncode == 2 and "that pip can verify" in done.stderr, done.stderr
    assert not (work / "env").exists()


def test_an_update_takes_a_lock(user, tool, work, project):
    installation = Installation(user, tool, work / "env")
    installation.new(user.write(work / "requirements.txt", "idna==3.7\n"))
    installation.update(str(project / "uv.lock"))
    assert {"idna==3.20", "mdurl==0.1.2"} <= packages(installation.python(PACKAGES))
