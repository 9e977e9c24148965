"""Locks and projects of Python's own tools: an installation has the packages that the tool itself installs."""

import hashlib
import json
import re
import shutil
import subprocess
import sys

import pytest
from conftest import CACHE, SOURCE, made_once
from installation import Installation

sys.path.insert(0, str(SOURCE / "tests/lib"))
import guarded_server  # noqa: E402
import python_wheels  # noqa: E402

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


def built(user, tool, work, spec, *options):
    installation = Installation(user, tool, work / "env")
    installation.new(spec, "--force", *options)
    assert is_linked(installation)
    return packages(installation.python(PACKAGES))


def is_linked(installation):
    return "installed into a directory" not in (installation.prefix / "share/build.log").read_text()


def with_installer(tools, work, installer):
    """Options and variables with which pip or uv decides what to install, on the packages of PyPI."""
    return ["--installer", installer], {"PATH": f"{tools}/bin:/usr/bin:/bin", "PIP_FIND_LINKS": None, "UV_CACHE_DIR": str(work / "uv-cache")}


def planned(user, tool, env, *options):
    plan = user.run(str(tool), "new", "--dry-run", "--json", *options, env=env).stdout
    return {f"{one['name']}=={one['version']}" for one in json.loads(plan)}


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
        by_installer, env = with_installer(tools, work, installer)
        installation = Installation(user, tool, work / "env", env)
        installation.new(lock, "--force", "--python", "/usr/bin/python3", *by_installer, *options)
        assert is_linked(installation)
        assert packages(installation.python(PACKAGES)) == expected
        assert planned(user, tool, env, "--python", "/usr/bin/python3", *by_installer, *options, lock) == expected


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


@pytest.mark.parametrize("spec", ["pyproject.toml", "pylock.toml"])
def test_a_dry_run_shows_what_is_built(user, tool, work, tools, project, spec):
    _, env = with_installer(tools, work, "pip")
    assert planned(user, tool, env, project / spec) == built(user, tool, work, project / spec)


@pytest.fixture
def served(work):
    """A server of wheels that requires a login."""
    root = work / "served"
    for name in ("inindex", "direct"):
        file = python_wheels.wheel(root / name, name, {f"{name}.py": "there = True\n"})
        (root / name / "index.html").write_text(f'<a href="{file.name}">{file.name}</a>')
    server = guarded_server.Guarded(root, {"index": ("me", "s3cretOfIndex"), "direct": ("me", "s3cretOfIndex")})
    yield server
    server.close()


def digest(server, name):
    return hashlib.sha256((server.root / name / f"{name}-1.0-py3-none-any.whl").read_bytes()).hexdigest()


def locked(user, place, server):
    """A pylock.toml of a package from an index and one from an address, both with a login."""
    return user.write(place, f'''lock-version = "1.0"
created-by = "x"
[[packages]]
name = "inindex"
version = "1.0"
index = "{server.url('login/index', 'me:s3cretOfIndex@')}"
wheels = [{{name = "inindex-1.0-py3-none-any.whl", hashes = {{sha256 = "{digest(server, 'inindex')}"}}}}]
[[packages]]
name = "direct"
archive = {{url = "{server.url('login/index/direct/direct-1.0-py3-none-any.whl', 'me:s3cretOfIndex@')}", hashes = {{sha256 = "{digest(server, 'direct')}"}}}}
''')


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_logins_in_a_lock_are_used_and_written_nowhere(user, tool, work, tools, served, installer):
    lock = locked(user, work / "pylock.toml", served)
    by_installer, env = with_installer(tools, work, installer)
    env |= {"PIP_INDEX_URL": served.url("login/index", "me:s3cretOfIndex@"), "CONTAINERIZE_CACHE": str(work / "cache")}
    shown = user.run(str(tool), "new", "--dry-run", "--json", *by_installer, lock, env=env, check=False)
    # uv hides the login, without which it would be asked for another file.
    assert shown.returncode == 0 if installer == "pip" else "a requirement's URL has a login" in shown.stderr, shown.stderr
    installation = Installation(user, tool, work / "env", env)
    done = installation.new(lock, "--python", "/usr/bin/python3", "--verbose", *by_installer)
    assert packages(installation.python(PACKAGES)) == {"inindex==1.0", "direct==1.0"} and "login/index" in served.given
    assert "s3cret" not in done.stdout + done.stderr + shown.stdout + shown.stderr
    files = [path for place in ("env", "cache") for path in (work / place).rglob("*") if path.is_file() and not path.is_symlink()]
    assert files and not [path for path in files if b"s3cret" in path.read_bytes()]
    assert "s3cret" not in installation.python("import pathlib, sys; print(*[p.read_text(errors='replace') for p in pathlib.Path(sys.prefix).rglob('*.json')])")


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_package_that_is_listed_twice_is_refused(user, tool, work, tools, served, installer):
    """Also if pip and uv cannot notice, because they read verified lines apart from others."""
    user.run("mkdir", work / "mine")
    user.write(work / "mine/pyproject.toml", '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n')
    user.write(work / "mine/backend.py", f"import shutil\ndef build_wheel(directory, *_):\n"
               f"    return shutil.copy('{served.root}/inindex/inindex-1.0-py3-none-any.whl', directory).split('/')[-1]\n")
    lock = user.write(work / "pylock.toml", f'''lock-version = "1.0"
created-by = "x"
[[packages]]
name = "inindex"
version = "1.0"
wheels = [{{path = "served/inindex/inindex-1.0-py3-none-any.whl", hashes = {{sha256 = "{digest(served, 'inindex')}"}}}}]
[[packages]]
name = "Inindex"
marker = "python_version > '3'"
directory = {{path = "mine"}}
''')
    by_installer, env = with_installer(tools, work, installer)
    done = Installation(user, tool, work / "env", env).call("new", "--prefix", work / "env", *by_installer, lock, check=False)
    assert done.returncode == 2, done.stderr
    assert re.search(f"{lock}: this file lists [Ii]nindex twice for the environment's Python", done.stderr), done.stderr
    assert not (work / "env").exists()
