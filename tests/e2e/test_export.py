"""Lists of packages in the formats of other tools: what is written is read again, by containerize and by the tools themselves."""

import hashlib
import json
import shutil
import subprocess
import sys
import tomllib

import pytest
from conftest import CACHE, SOURCE, made_once
from installation import Installation
from test_conda import Builder
from test_locks import Repository

sys.path.insert(0, str(SOURCE / "tests/lib"))
import guarded_server  # noqa: E402
import python_wheels  # noqa: E402

TOKEN = "feed4f9e1c7b3d5a8e2f6b0c"
NAMES = {"own": "env.lock", "explicit": "explicit.txt", "conda-lock": "conda-lock.yml", "pixi": "pixi.lock", "environment.yml": "environment.yml"}


def packages(user, tool, prefix):
    """All packages, as name, version and build."""
    listed = json.loads(user.run(tool, "inspect", "--packages", "--json", prefix).stdout)
    return {(one["name"].lower().replace("_", "-"), one["version"], one["build"]) for one in listed}


@pytest.fixture(scope="module")
def conda(user, tool, channels):
    """An installation with packages of conda, of indexes and of a repository, and a variable. Tests only read it."""
    work = user.directory()
    build = Builder(user, tool, work, channels)
    repository = Repository(user, work, "demo", "python/demo")
    build.commit = repository.commit("1.0")
    repository.commit("2.0")
    build(build.spec(["python", "pip", "where"],
                     more=f"  - pip:\n    - six==1.16.0\n    - idna==3.7\n    - git+file://{repository.path}@{build.commit}#egg=demo&subdirectory=python/demo\nvariables:\n  SETTING: '42'\n"))
    build.cache = {"CONTAINERIZE_CACHE": str(work / "cache")}
    yield build
    shutil.rmtree(work, ignore_errors=True)


def exported(conda, work, name):
    """The file and the warnings."""
    file = work / NAMES[name]
    done = conda.user.run(conda.tool, "export", conda.prefix, "--format", name, "-o", file)
    assert done.stdout == ""
    return file, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_conda_packages_are_installed_again(user, tool, work, conda, name):
    expected = packages(user, tool, conda.prefix)
    assert {"six", "idna", "demo", "where", "python"} <= {one[0] for one in expected}
    file, warnings = exported(conda, work, name)
    by_name = user.run(tool, "export", conda.prefix, "-o", work / f"again-{NAMES[name]}" if name == "conda-lock" else work / NAMES[name])
    assert by_name.stderr == warnings
    if name == "explicit":
        expected = {one for one in expected if one[0] not in ("six", "idna", "demo")}
        for left_out in ("six 1.16.0", "idna 3.7", "demo 1.0"):
            assert f"warning: {left_out} is left out: an explicit list contains only conda packages." in warnings
    if name in ("own", "environment.yml"):
        assert warnings == ""
    else:
        assert "warning: the variable SETTING is left out" in warnings and ("left out: its address" not in warnings)
    user.run(tool, "new", "--prefix", work / "again", file, env=conda.cache)
    assert packages(user, tool, work / "again") == expected
    kept = user.run(work / "again/bin/python", "-c", "import os; print(os.environ.get('SETTING'))").stdout.strip()
    assert kept == ("42" if name in ("own", "environment.yml") else "None")
    if name != "explicit":
        code = "import importlib.metadata as m, json; print(json.loads(m.distribution('demo').read_text('direct_url.json'))['vcs_info']['commit_id'])"
        assert user.run(work / "again/bin/python", "-c", code).stdout.strip() == conda.commit


def test_the_own_lock_has_addresses_and_checksums_of_pip(user, conda):
    lock = json.loads((conda.prefix / "share/containerize.lock").read_text())
    sources = {one["name"]: one["source"] for one in lock["pip_packages"]}
    for name in ("six", "idna"):
        assert sources[name]["kind"] == "index" and sources[name]["url"].endswith(sources[name]["file"])
        assert any(f"--hash=sha256:{sources[name]['sha256']}" in line for line in lock["pip"] if line.startswith(name))
    assert sources["demo"] == {"kind": "repository", "url": f"file://{conda.work}/demo.git", "vcs": "git", "commit": conda.commit, "subdirectory": "python/demo"}


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_pip_packages_are_installed_again(user, tool, work, uv, installer):
    env = {**uv, "CONTAINERIZE_CACHE": str(work / "cache")}
    spec = user.write(work / "requirements.txt", "six==1.16.0\njinja2==3.1.4\n")
    installation = Installation(user, tool, work / "env", env)
    installation.new(spec, "--installer", installer)
    expected = packages(user, tool, work / "env")
    kept = (work / "env/share/pylock.toml").read_text()
    lock = tomllib.loads(kept)
    assert {one["name"] for one in lock["packages"]} == {"six", "jinja2", "markupsafe"}
    assert all(one["wheels"][0]["hashes"]["sha256"] for one in lock["packages"])
    without_build = tomllib.loads(user.run(tool, "lock", "--installer", installer, spec, env=env).stdout)
    assert without_build["packages"] == lock["packages"]
    assert user.run(tool, "export", work / "env").stdout == kept
    requirements = work / "exported.txt"
    for file in (work / "env/share/pylock.toml", requirements):
        done = user.run(tool, "export", work / "env", "-o", requirements)
        assert done.stderr == "" and requirements.read_text().count(" --hash=sha256:") == 3
        Installation(user, tool, work / "again", env).new(file, "--force", "--installer", installer)
        assert packages(user, tool, work / "again") == expected
    user.run("/usr/bin/python3", "-m", "venv", work / "venv")
    user.run(work / "venv/bin/pip", "install", "-q", "--require-hashes", "-r", requirements)
    assert "six==1.16.0" in user.run(work / "venv/bin/pip", "freeze").stdout


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_what_pip_installs_into_a_directory_is_listed(user, tool, work, uv, installer):
    """Also where packages cannot be linked."""
    project = work / "mine"
    project.mkdir()
    shutil.chown(project, user.uid)
    user.write(project / "pyproject.toml", '[build-system]\nrequires = ["flit_core"]\nbuild-backend = "flit_core.buildapi"\n[project]\nname = "mine"\nversion = "1.0"\ndescription = "x"\n')
    user.write(project / "mine.py", "")
    post = user.write(work / "post.sh", "pip install -q idna==3.7\n")
    installation = Installation(user, tool, work / "env", uv)
    installation.new(user.write(work / "requirements.txt", f"six==1.16.0\n-e {project}\n"), "--installer", installer, "--post-install", post)
    lock = tomllib.loads((work / "env/share/pylock.toml").read_text())
    by_name = {one["name"]: one for one in lock["packages"]}
    assert set(by_name) == {"six", "mine"}
    assert by_name["six"]["wheels"][0]["hashes"] == {"sha256": "8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254"}
    assert by_name["mine"]["directory"] == {"path": str(project), "editable": True}
    done = user.run(tool, "export", work / "env", "--format", "requirements.txt")
    assert sorted(done.stdout.splitlines()) == [f"-e file://{project}", "six==1.16.0"]
    assert "warning: left out is idna 3.7: nothing tells from where it was installed." in done.stderr
    assert f"warning: mine 1.0 comes from a directory, whose content is not part of the list: {project}." in done.stderr
    assert "no checksums of packages from an index are written" in done.stderr and "and mine has none" in done.stderr
    pylock = user.run(tool, "export", work / "env", "--format", "pylock")
    assert pylock.stdout == (work / "env/share/pylock.toml").read_text() and "left out is idna 3.7" in pylock.stderr


def test_updates_keep_the_list(user, tool, work):
    installation = Installation(user, tool, work / "env")
    installation.new(user.write(work / "requirements.txt", "six==1.16.0\n"))

    def listed():
        lock = tomllib.loads((work / "env/share/pylock.toml").read_text())
        return {one["name"]: one for one in lock["packages"]}, lock["tool"]["containerize"].get("left-out", [])

    first, left_out = listed()
    assert set(first) == {"six"} and left_out == []
    installation.update("-r", user.write(work / "more.txt", "idna==3.7\n"))
    second, left_out = listed()
    assert set(second) == {"six", "idna"} and second["six"] == first["six"] and left_out == []
    assert second["idna"]["wheels"][0]["hashes"]["sha256"]
    installation.update("--", "pip", "install", "-q", "idna==3.6")
    third, left_out = listed()
    assert set(third) == {"six"} and left_out == ["idna 3.6: nothing tells from where it was installed"]
    installation.call("rollback", work / "env")
    assert listed() == (second, [])


def test_conda_locks_without_a_build(user, tool, work, conda):
    spec = conda.spec(["where", "python"], name="plain.yml")
    plan = conda.plan(spec)
    for name in ("own", "explicit", "conda-lock", "pixi"):
        lock = work / NAMES[name]
        user.run(tool, "lock", "--format", name, spec, "-o", lock, env=conda.cache)
        assert {one: (record["version"], record["sha256"]) for one, record in conda.plan(lock).items()} == {
            one: (record["version"], record["sha256"]) for one, record in plan.items()}
        text = lock.read_text()
        lock.unlink()
        user.run(tool, "lock", spec, "-o", lock, env=conda.cache)
        assert lock.read_text() == text, "the name tells the format"
        lock.unlink()
    own = user.run(tool, "lock", spec, env=conda.cache)
    assert "containerize-lock" in json.loads(own.stdout)
    requirements = user.write(work / "requirements.txt", "six\n")
    for words, message in (
            ((spec, "--format", "pylock"), "a conda environment file cannot be written in the format pylock\nPossible formats: own, explicit, conda-lock, pixi."),
            ((spec, "--format", "yaml"), "unknown format 'yaml'\nPossible formats: own, explicit, conda-lock, pixi."),
            ((spec, "-o", work / "pylock.toml"), "the format that the name of pylock.toml means: a pylock file\nPossible formats: own, explicit, conda-lock, pixi."),
            ((requirements, "--format", "conda-lock"), "a pip requirements file cannot be written in the format conda-lock\nPossible formats: pylock."),
            ((requirements, "-o", work / "pixi.lock"), "the name of pixi.lock means: a pixi lock file\nPossible formats: pylock.")):
        done = user.run(tool, "lock", *words, check=False, env=conda.cache)
        assert done.returncode == 2 and message in done.stderr, done.stderr
    assert not (work / "pylock.toml").exists() and not (work / "pixi.lock").exists()


def test_what_cannot_be_exported(user, tool, work, conda, small, where):
    for prefix, words, message in (
            (conda.prefix, ("--format", "requirements.txt"), "cannot be written in the format requirements.txt\nPossible formats: own, explicit, conda-lock, pixi, environment.yml."),
            (small, ("--format", "pixi"), "an installation of pip packages cannot be written in the format pixi\nPossible formats: pylock, requirements.txt."),
            (small, ("-o", work / "no/pylock.toml"), f"{work}/no: this directory does not exist"),
            (small, ("-o", "/dev/null"), "only a regular file can be replaced"),
            (conda.prefix, ("-o", conda.prefix / "share/containerize.lock"), "would replace its input"),
            (work, (), "this is not an installation")):
        done = user.run(tool, "export", prefix, *words, check=False)
        assert done.returncode == 2 and message in done.stderr, done.stderr
    (work / "software/bin").mkdir(parents=True)
    user.write(work / "software/bin/hello", "#!/bin/sh\necho hello\n", 0o755)
    user.run(tool, "wrap-install", "--prefix", work / "wrapped", "-w", "bin", work / "software")
    done = user.run(tool, "export", work / "wrapped", check=False)
    assert done.returncode == 2 and "this installation has no list of exact packages" in done.stderr


def test_only_readers_of_the_inputs_can_read_an_export(user, tool, work, conda):
    spec = conda.spec(["where"], name="private.yml", more="variables: {SETTING: '42'}\n")
    spec.chmod(0o600)
    user.run(tool, "new", "--prefix", work / "env", spec, env=conda.cache)
    user.run(tool, "export", work / "env", "-o", work / "environment.yml")
    assert "SETTING" in (work / "environment.yml").read_text() and (work / "environment.yml").stat().st_mode & 0o777 == 0o600


@pytest.fixture
def feed(work):
    """An index that only those reach who know the token in its address."""
    root = work / "served"
    for name in ("inindex", "direct"):
        file = python_wheels.wheel(root / name, name, {f"{name}.py": ""})
        (root / name / "index.html").write_text(f'<a href="{file.name}#sha256={hashlib.sha256(file.read_bytes()).hexdigest()}">{file.name}</a>')
    server = guarded_server.Guarded(root, {}, token=TOKEN)
    yield server
    server.close()


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_values_of_variables_are_written_nowhere(user, tool, work, uv, feed, installer):
    """The lock has the variables of the index, and the names and checksums of its files."""
    option = f"--index-url {feed.url('feed')}/${{FEED}}"
    spec = user.write(work / "requirements.txt", f"{option}\ninindex\n")
    env = {**uv, "FEED": TOKEN, "PIP_INDEX_URL": None, "PIP_EXTRA_INDEX_URL": None, "PIP_CONFIG_FILE": "/dev/null"}
    installation = Installation(user, tool, work / "env", env)
    installation.new(spec, "--installer", installer)
    digest = hashlib.sha256((feed.root / "inindex/inindex-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    lock = tomllib.loads((work / "env/share/pylock.toml").read_text())
    assert lock["packages"] == [{"name": "inindex", "version": "1.0", "wheels": [{"name": "inindex-1.0-py3-none-any.whl", "hashes": {"sha256": digest}}]}]
    assert lock["tool"]["containerize"]["options"] == [option]
    requirements = user.run(tool, "export", work / "env", "-o", work / "exported.txt", env=env)
    assert requirements.stderr == ""
    assert (work / "exported.txt").read_text() == f"{option}\ninindex==1.0 --hash=sha256:{digest}\n"
    alone = user.run(tool, "lock", "--installer", installer, spec, env=env)
    assert tomllib.loads(alone.stdout)["packages"] == lock["packages"] and TOKEN not in alone.stdout + alone.stderr
    for file in (work / "env").rglob("*"):
        if file.is_file() and not file.is_symlink():
            assert TOKEN.encode() not in file.read_bytes(), file
    Installation(user, tool, work / "again", env).new(work / "exported.txt", "--installer", installer)
    assert ("inindex", "1.0", "") in packages(user, tool, work / "again")


def test_conda_exports_have_no_values_of_variables(user, tool, work, conda, feed):
    option = f"--index-url {feed.url('feed')}/${{FEED}}"
    spec = conda.spec(["python", "pip"], name="feed.yml", more=f'  - pip:\n    - "{option}"\n    - inindex\n    - "direct @ {feed.url("feed")}/${{FEED}}/direct/direct-1.0-py3-none-any.whl"\n')
    env = {**conda.cache, "FEED": TOKEN, "PIP_EXTRA_INDEX_URL": None, "PIP_CONFIG_FILE": "/dev/null"}
    user.run(tool, "new", "--prefix", work / "env", "--installer", "pip", spec, env=env)
    for name, file in NAMES.items():
        done = user.run(tool, "export", work / "env", "--format", name, "-o", work / file)
        text = (work / file).read_text()
        assert TOKEN not in text + done.stderr
        if name in ("conda-lock", "pixi"):
            for package in ("inindex", "direct"):
                assert f"warning: {package} 1.0 is left out: its address is not known, or contains a secret." in done.stderr
        if name == "environment.yml":
            assert option in text and "inindex==1.0" in text and "/${FEED}/direct/direct-1.0-py3-none-any.whl" in text
    user.run(tool, "new", "--prefix", work / "again", "--installer", "pip", work / "environment.yml", env=env)
    assert packages(user, tool, work / "again") == packages(user, tool, work / "env")


@pytest.fixture(scope="session")
def readers():
    """conda-lock and py-rattler from PyPI."""

    def make(target):
        subprocess.run(["/usr/bin/python3", "-m", "venv", target], check=True)
        subprocess.run([f"{target}/bin/python", "-m", "pip", "install", "-q", "conda-lock==4.0.3", "py-rattler==0.28.0"], check=True)

    return made_once(CACHE / "readers-of-locks", make)


def test_other_tools_read_the_locks(user, tool, work, conda, readers):
    lock = json.loads((conda.prefix / "share/containerize.lock").read_text())
    expected = {(one["name"], one["version"], one["build"]) for one in lock["conda"]}
    of_pip = {("six", "1.16.0"), ("idna", "3.7"), ("demo", "1.0")}

    def read(code, *words):
        return json.loads(user.run(readers / "bin/python", "-c", code, *words).stdout)

    file, _ = exported(conda, work, "pixi")
    conda_of, pypi_of = read("""
import json, sys
from rattler import LockFile
environment = LockFile.from_path(sys.argv[1]).default_environment()
conda = [(one.name.normalized, str(one.version), str(one.build)) for one in environment.conda_repodata_records()["linux-64"]]
pypi = [(one.name, one.version) for one in environment.pypi_packages()["linux-64"]]
print(json.dumps([conda, pypi]))
""", file)
    assert {tuple(one) for one in conda_of} == expected and {tuple(one) for one in pypi_of} == of_pip
    file, _ = exported(conda, work, "conda-lock")
    read_packages = read("""
import json, pathlib, sys
from conda_lock.lockfile import parse_conda_lock_file
content = parse_conda_lock_file(pathlib.Path(sys.argv[1]))
print(json.dumps([(one.name, one.version, one.manager) for one in content.package]))
""", file)
    assert {tuple(one) for one in read_packages} == {(name, version, "conda") for name, version, _ in expected} | {(*one, "pip") for one in of_pip}
