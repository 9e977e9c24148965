"""Where pip environments get their Python from: from the host, or from conda's channels where the host has none that fits."""

import json
import shutil
from pathlib import Path

import pytest
from installation import Installation, staging_directories

REQUIREMENTS = "six==1.16.0\n"
# Runs the questions that are asked of an interpreter, by one that says that it is Python 3.6.
OLD_PYTHON = """#!/bin/sh
exec /usr/bin/python3 -I -c 'import sys; sys.version_info = (3, 6, 8, "final", 0); exec(sys.argv[-1])' "$@"
"""
PYTHON_OF_HOST = "/usr/bin/python3.11"


@pytest.fixture(scope="module")
def without_python(user, place):
    """A PATH with every program but Python."""
    programs = user.directory(place)
    for path in Path("/usr/bin").iterdir():
        if not path.name.startswith("python"):
            (programs / path.name).symlink_to(path)
    return str(programs)


@pytest.fixture(scope="module")
def with_old_python(user, place, without_python):
    """A PATH whose python3 is too old."""
    programs = user.directory(place)
    user.write(programs / "python3", OLD_PYTHON, 0o755)
    return f"{programs}:{without_python}"


@pytest.fixture(scope="module")
def conda(user, place, channels):
    """Variables for the tests' channel, which .condarc names, and a cache."""
    condarc = user.write(place / "condarc", f"channels: ['file://{channels}/main']\n")
    return {"CONDARC": str(condarc), "CONTAINERIZE_CACHE": str(place / "cache")}


@pytest.fixture()
def host(user, tool, work, conda, without_python):
    """An installation to be made on a host without Python."""
    return Installation(user, tool, work / "env", {**conda, "PATH": without_python})


@pytest.fixture()
def spec(user, work):
    return user.write(work / "requirements.txt", REQUIREMENTS)


def image_of(prefix):
    return json.loads((prefix / "containerize.json").read_text())["image"]["sha256"]


def test_host_without_python(host, user, work, channels, sessions):
    """The environment is made, changed, locked and used as one of the host's Python is, and nothing of the host's is needed."""
    project = user.directory(work)
    user.write(project / "pyproject.toml", "[project]\nname = 'own'\nversion = '1.0'\n[tool.setuptools]\npy-modules = ['own']\n")
    user.write(project / "own.py", "")
    spec = user.write(work / "requirements.txt", f"{REQUIREMENTS}-e {project}\n")
    log = host.new(spec).stderr
    assert log.count("Python comes from conda (python3 is not on PATH).\n") == 1 and "warning" not in log
    assert f"'{project}' is installed as editable" in log
    assert host.python("import six, own; print(six.__version__)") == "1.16.0"
    for path in host.python("import os, sys; print(sys.prefix, os.path.realpath(sys.executable), os.__file__)").split():
        assert path.startswith(str(host.prefix)), path
    assert host.call("run", host.prefix, "--", "sh", "-c", "command -v python").stdout == f"{host.prefix}/bin/python\n"
    about = host.call("inspect", host.prefix).stdout
    assert f"Python        3.11.2 from conda: file://{channels}/main, bundled\n" in about
    packages = host.call("inspect", host.prefix, "--packages").stdout
    assert {line.split()[0] for line in packages.splitlines()} == {"python", "pip", "setuptools", "wheel", "six", "own"}
    traced = user.run("strace", "-f", "-e", "trace=openat,execve", host.prefix / "bin/python", "-c", "import six, ssl").stderr
    assert "/usr/lib/python3" not in traced and PYTHON_OF_HOST not in traced

    user.run(host.prefix / "bin/python", "-m", "venv", work / "venv")
    assert user.run(work / "venv/bin/python", "-c", "import six, sys; print(sys.prefix)").stdout == f"{work}/venv\n"

    # As in a venv, pip may replace itself and what it needs.
    host.update("--", "pip", "install", "-q", "iniconfig==2.0.0")
    host.update(user.write(work / "more.txt", "setuptools==69.0.2\npackaging==24.0\n"))
    assert host.python("import iniconfig, packaging, setuptools; print(setuptools.__version__)") == "69.0.2"
    assert [state["state"] for state in host.log()] == [1, 2, 3]
    assert "3.11.2 from conda" in host.call("inspect", host.prefix).stdout
    host.call("rollback", host.prefix, "1")
    assert host.python("import setuptools; print(setuptools.__version__)") == "68.2.2" and not host.has("iniconfig")
    host.call("rollback", host.prefix, "3")
    host.call("squash", host.prefix)
    assert host.python("import six, own, iniconfig, setuptools; print(setuptools.__version__)") == "69.0.2"
    assert "3.11.2 from conda" in host.call("inspect", host.prefix).stdout
    assert staging_directories(user) == []


def test_a_lock_gives_the_same(host, user, spec, work, channels):
    """The lock has conda's packages with their addresses and checksums, and pip's."""
    host.new(spec)
    lock = json.loads((host.prefix / "share/containerize.lock").read_text())
    packages = {one["name"]: one for one in lock["conda"]}
    assert set(packages) == {"python", "pip", "setuptools", "wheel"}
    assert packages["python"]["url"].startswith(f"file://{channels}/main/linux-64/python-3.11.2-")
    assert all(len(one["sha256"]) == 64 for one in packages.values())
    assert [line.split()[0] for line in lock["pip"]] == ["six==1.16.0"] and "--hash=sha256:" in lock["pip"][0]
    before = image_of(host.prefix)
    host.new(user.write(work / "again.lock", json.dumps(lock)), "--force")
    assert image_of(host.prefix) == before
    # The lock tells, too, that this environment serves pip's packages.
    host.update(user.write(work / "more.txt", "setuptools==69.0.2\n"))
    assert host.python("import setuptools; print(setuptools.__version__)") == "69.0.2"


@pytest.mark.parametrize(("options", "reason"), [((), "PATH/python3: this Python is too old: its version is 3.6.8"),
                                                 (("--python", "3"), "PATH/python3: this Python is too old: its version is 3.6.8"),
                                                 (("--python", "3.11"), "python3.11 is not on PATH")])
def test_host_whose_python_does_not_fit(host, user, spec, with_old_python, options, reason):
    host.env["PATH"] = with_old_python
    log = host.new(spec, *options).stderr
    assert f"Python comes from conda ({reason.replace('PATH/', with_old_python.split(':')[0] + '/')}).\n" in log
    assert host.python("import six, sys; print(sys.version_info[:2])") == "(3, 11)"
    assert host.call("new", "--prefix", host.prefix.parent / "other", "--python", PYTHON_OF_HOST, spec).stderr.count(f"from {PYTHON_OF_HOST} (requested)") == 1


def test_condas_python_where_the_host_has_one(user, tool, work, conda, spec, uv):
    """It is asked for, and uv installs; what is recorded first is put first."""
    asked = Installation(user, tool, work / "env", {**conda, **uv})
    log = asked.new(spec, "--python", "conda:3.11", "--layout", "profile", "--installer", "uv").stderr
    assert "Python comes from conda (requested).\n" in log and "Installing pip packages: with uv" in log
    assert asked.python("import six, os; print(os.__file__)") == f"{asked.prefix}/lib/python3.11/os.py"
    asked.update("--", "sh", "-c", "uv pip install -q --python $(command -v python) iniconfig==2.0.0")
    assert asked.has("iniconfig")


def test_a_base_with_condas_python(user, tool, work, conda, spec, base):
    """Debian 13 has another Python."""
    asked = Installation(user, tool, work / "env", conda)
    asked.new(spec, "--base", base, "--python", "conda")
    assert asked.python("import six, sys; print(sys.version_info[:2], open('/etc/debian_version').read()[:2])") == "(3, 11) 13"


def test_configured_python(user, tool, work, conda, spec, channels):
    """It holds for requirements files without --python, and not for conda environments."""
    configuration = user.write(work / "config.yaml", "defaults:\n  python: conda:3.11\n")
    configured = Installation(user, tool, work / "env", {**conda, "CONTAINERIZE_CONFIG": str(configuration)})
    assert "Python comes from conda (requested).\n" in configured.new(spec).stderr
    assert "from conda (requested)" in finding(configured)["found"]
    assert f"from {PYTHON_OF_HOST} (requested)" in configured.new(spec, "--force", "--python", PYTHON_OF_HOST).stderr
    env_yml = user.write(work / "env.yml", f"channels: ['file://{channels}/main']\ndependencies: [where]\n")
    assert "Python" not in configured.new(env_yml, "--force").stderr
    user.write(configuration, "defaults:\n  python: 2.7\n")
    assert f"{configuration}:2: `python`: Python 2.7 is too old" in configured.call("config", "check", configuration, check=False).stderr


@pytest.mark.parametrize(("options", "code", "messages"), [
    (("--python", "9.9"), 2, ["python9.9 is not on PATH", "no channel has python=9.9", "To use one of the host, give --python its path."]),
    (("--python", "conda:3.6"), 2, ["Python 3.6 is too old"]),
    (("--system-site-packages",), 2, ["--system-site-packages needs a Python of the host", "python3 is not on PATH"]),
])
def test_no_python_anywhere(host, user, spec, options, code, messages):
    done = host.call("new", "--prefix", host.prefix, *options, spec, check=False)
    assert done.returncode == code and all(message in done.stderr for message in messages), done.stderr
    assert not host.prefix.exists() and staging_directories(user) == []


def test_offline_without_a_cache(host, user, spec, work):
    """One message says what is missing, and why it is needed."""
    host.env |= {"CONDARC": str(user.write(work / "condarc", "channels: ['http://127.0.0.1:9/main']\n")), "CONTAINERIZE_CACHE": str(work / "empty")}
    done = host.call("new", "--prefix", host.prefix, "--offline", spec, check=False)
    assert done.returncode == 1 and done.stderr.count("containerize: ") == 1, done.stderr
    message = done.stderr[done.stderr.index("containerize: "):]
    assert "127.0.0.1:9/main" in message and "--offline" in message and "python3 is not on PATH" in message, done.stderr
    assert not host.prefix.exists()


def finding(installation):
    findings = json.loads(installation.call("doctor", "--json").stdout)["findings"]
    return next(one for one in findings if one["name"] == "python")


def test_doctor_says_which_python_is_taken(host, with_old_python):
    assert finding(host) == {"name": "python", "verdict": "ok", "found": "from conda (python3 is not on PATH)", "advice": ""}
    host.env["PATH"] = with_old_python
    assert finding(host)["found"].endswith("/python3: this Python is too old: its version is 3.6.8)")
    host.env["PATH"] = "/usr/bin:/bin"
    found = finding(host)
    assert found["verdict"] == "ok" and found["found"].endswith(f" from {PYTHON_OF_HOST} (python3 on PATH)") and found["advice"] == ""


def test_a_python_that_other_nodes_may_lack_causes_a_warning(user, tool, work, spec):
    """Such as one in a home directory. The distribution's own may be expected, and one in the image is there."""
    (work / "bin").mkdir()
    shutil.copy(PYTHON_OF_HOST, work / "bin/python3")
    warning = f"Each node that runs this environment needs {work}/bin/python3, which is not the distribution's python3."
    installation = Installation(user, tool, work / "env", {"PATH": f"{work}/bin:/usr/bin:/bin"})
    log = installation.new(spec).stderr
    assert f"Python 3.11.2 from {work}/bin/python3 (python3 on PATH)" in log and log.count(f"warning: {warning}") == 1
    found = finding(installation)
    assert found["verdict"] == "note" and found["advice"].startswith(warning)
    assert warning not in installation.new(spec, "--force", "--python", "/usr/bin/python3").stderr
