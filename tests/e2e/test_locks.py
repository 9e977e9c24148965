"""Locks: what is installed is what they say, for conda's packages and for pip's."""

import hashlib
import json
import re
import shutil
import socketserver
import subprocess
import sys
import threading

import pytest
from conftest import SOURCE
from test_conda import Builder, Server, image_of, python
from test_secrets import wheel as made_wheel

sys.path.insert(0, str(SOURCE / "tests/lib"))
import conda_channel

PROJECT = """[build-system]
requires = ["flit_core"]
build-backend = "flit_core.buildapi"
[project]
name = "{name}"
dynamic = ["version", "description"]
dependencies = {dependencies}
"""


@pytest.fixture
def work(user):
    directory = user.directory()
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def build(user, tool, work, channels):
    return Builder(user, tool, work, channels)


class Repository:
    """A Python project in a git repository; each version is a commit."""

    def __init__(self, user, directory, name, subdirectory="", dependencies=()):
        self.user, self.path, self.name = user, directory / f"{name}.git", name
        self.project = self.path / subdirectory
        user.run("mkdir", "-p", self.project)
        self.git("init", "-q", "-b", "main")
        user.write(self.project / "pyproject.toml", PROJECT.format(name=name, dependencies=json.dumps(list(dependencies))))

    def git(self, *words):
        return self.user.run("git", "-C", self.path, "-c", "user.name=x", "-c", "user.email=x@example.org", *words).stdout.strip()

    def commit(self, version, content=""):
        self.user.write(self.project / f"{self.name}.py", f'"""A module."""\n__version__ = "{version}"\n{content}')
        self.git("add", ".")
        self.git("commit", "-qm", version)
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def git_server(user, work):
    """Serves the repositories below `work` with git's own protocol."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            subprocess.run(["git", "daemon", "--inetd", "--export-all", f"--base-path={work}", str(work)],
                           **user.options(stdin=self.request, stdout=self.request, stderr=subprocess.DEVNULL))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"git://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def pixi_lock(build, records, pypi=(), version=6, environments=None, name="pixi.lock"):
    """A lock as pixi writes it. `pypi` are the packages of pip: each has its location and the keys of its record."""
    environments = environments or {"default": {"linux-64": ([record["url"] for record in records], [one["pypi"] for one in pypi])}}
    lines = [f"version: {version}"]
    if version >= 7:
        lines += ["platforms:", "- name: linux-64", "  virtual-packages:", "  - __glibc=2.17", "- name: linux-64-cuda", "  subdir: linux-64", "  virtual-packages:", "  - __cuda=12.0"]
    lines += ["environments:"]
    for environment, platforms in environments.items():
        lines += [f"  {environment}:", "    channels:", "    - url: https://conda.anaconda.org/conda-forge/", "    packages:"]
        for platform, (conda, of_pip) in platforms.items():
            lines += [f"      {platform}:"] + [f"      - conda: {url}" for url in conda] + [f"      - pypi: {place}" for place in of_pip]
    lines += ["packages:"]
    for record in records:
        lines += [f"- conda: {record['url']}", f"  sha256: {record['sha256']}"]
    for one in pypi:
        lines += [f"- pypi: {one['pypi']}"] + [f"  {key}: '{value}'" for key, value in one.items() if key != "pypi"]
    return build.user.write(build.work / name, "\n".join(lines) + "\n")


def only(build, *names):
    """Records of these packages only: the solver adds pip to Python."""
    plan = build.plan(build.spec(names))
    return [plan[name] for name in names]


def wheel(build, name):
    return next((build.channels / "wheels").glob(f"{name}-*.whl"))


def locked_wheel(build, name, **other):
    """The record that a lock has of an existing wheel."""
    file = wheel(build, name)
    return {"pypi": file, "name": name, "version": file.name.split("-")[1], "sha256": hashlib.sha256(file.read_bytes()).hexdigest(), **other}


def distributions(build):
    code = "import importlib.metadata as m; print(*sorted(f'{d.name}=={d.version}' for d in m.distributions()))"
    return set(python(build, code).split())


def lock_of(build):
    return json.loads((build.prefix / "share/containerize.lock").read_text())


def rebuild(build, lock, *options, **more):
    return build(build.user.write(build.work / "again.lock", json.dumps(lock)), "--force", *options, **more)


def test_a_pixi_lock_gives_the_locked_commits_and_no_pip(build, user, git_server):
    """Installs the locked commits, not what the branch has now, and no pip, because the lock has none."""
    first = Repository(user, build.work, "first", "python/first")
    second = Repository(user, build.work, "second")
    commits = {}
    for repository in (first, second):
        commits[repository.name] = repository.commit("1.0")
        repository.git("tag", "v1")
        repository.commit("2.0")
        repository.git("tag", "-f", "v1")
    records = only(build, "python")
    lock = pixi_lock(build, records, [
        {"pypi": f"git+{git_server}/first.git?subdirectory=python%2Ffirst&branch=main#{commits['first']}", "name": "first", "version": "1.0"},
        {"pypi": f"git+file://{second.path}?rev=v1#{commits['second']}", "name": "second", "version": "1.0"}])
    build(lock)
    assert distributions(build) == {"first==1.0", "second==1.0"}
    code = "import importlib.metadata as m, json; print(*(json.loads(m.distribution(n).read_text('direct_url.json'))['vcs_info']['commit_id'] for n in ('first', 'second')))"
    assert python(build, code).split() == [commits["first"], commits["second"]]
    assert "No module named pip" in build.run("python", "-m", "pip", check=False).stderr
    assert not (build.prefix / "bin/pip").exists()
    own = lock_of(build)
    assert own["pip"] == [f"first @ git+{git_server}/first.git@{commits['first']}#subdirectory=python/first",
                          f"git+file://{second.path}@{commits['second']}#egg=second"]
    before = image_of(build.prefix)
    rebuild(build, own)
    assert image_of(build.prefix) == before and lock_of(build) == own


def test_nothing_that_the_lock_does_not_have_is_installed(build):
    """requests needs four packages, but what the lock does not list is not installed."""
    records = only(build, "python")
    build(pixi_lock(build, records, [locked_wheel(build, "requests")]))
    assert distributions(build) == {"requests==2.31.0"}
    own = lock_of(build)
    assert [one["name"] for one in own["pip_packages"]] == ["requests"]
    rebuild(build, own)
    assert distributions(build) == {"requests==2.31.0"}


def test_a_lock_beside_more_requirements(build, user):
    records = only(build, "python")
    more = user.write(build.work / "more.txt", "idna==3.7\n")
    build(pixi_lock(build, records, [locked_wheel(build, "requests")]), "-r", str(more))
    assert distributions(build) == {"requests==2.31.0", "idna==3.7"}
    assert [one["name"] for one in lock_of(build)["pip_packages"]] == ["idna", "requests"]


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_requirements_beside_a_lock_do_not_change_it(build, user, uv, installer):
    lock = pixi_lock(build, only(build, "python"), [locked_wheel(build, "idna")])
    words = ["--installer", installer, "-r"]
    made_wheel(build.work / "links", "idna")
    more = user.write(build.work / "more.txt", f"--find-links {build.work}/links\nidna==1.0\n")
    assert "idna==1.0" in build.refused(lock, *words, more, code=1, env=uv)
    if installer == "pip":
        return  # it keeps a package of the same version
    other = shutil.copy(wheel(build, "idna"), build.work / "links")
    user.write(more, f"idna @ file://{other}\n")
    error = build.refused(lock, *words, more, code=1, env=uv)
    assert f"{more}: these requirements change packages of the lock:\n- idna: the lock has 3.7 from file://{wheel(build, 'idna')}, and 3.7 from file://{other} is installed\n" in error


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_an_entry_with_only_a_path_is_found(build, user, uv, installer):
    """pip and uv record the URL of the directory, and each encodes it in its own way."""
    repository = Repository(user, build.work / "a+b@c d", "first")
    repository.commit("1.0")
    build(pixi_lock(build, only(build, "python"), [{"pypi": repository.path, "editable": "true"}]), "--installer", installer, env=uv)
    assert distributions(build) == {"first==1.0"}


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_difference_ends_the_build(build, user, uv, installer):
    """The message names each difference, and nothing is left behind."""
    repository = Repository(user, build.work, "demo")
    commit = repository.commit("1.0")
    records = only(build, "python", "where")
    lock = pixi_lock(build, records, [{"pypi": f"git+file://{repository.path}#{commit}", "name": "demo", "version": "1.1"},
                                      locked_wheel(build, "idna", version="3.6")])
    error = build.refused(lock, "--installer", installer, code=1, env=uv)
    assert f"{lock}: the installed packages differ from the lock:\n" in error
    assert f"- demo: the lock has 1.1 (commit {commit}), and 1.0 (commit {commit}) is installed\n- idna: the lock has 3.6, and 3.7 is installed\n" in error


def test_packages_of_conda_are_compared_too(build, user):
    where = build.plan(build.spec(["where"]))["where"]
    lock = user.write(build.work / "conda-lock.yml", "version: 1\nmetadata:\n  platforms: [linux-64]\npackage:\n"
                      f"  - {{name: where, version: '1.1', manager: conda, platform: linux-64, url: '{where['url']}', hash: {{sha256: {where['sha256']}}}, category: main, dependencies: {{}}}}\n")
    assert "- where: the lock has 1.1 (0), and 1.0 (0) is installed\n" in build.refused(lock, code=1)
    # A package whose file name is wrong.
    renamed = build.work / "linux-64/where-2.0-0.conda"
    renamed.parent.mkdir()
    shutil.copy(where["url"].removeprefix("file://"), renamed)
    listed = user.write(build.work / "explicit.txt", f"@EXPLICIT\n{renamed}\n")
    error = build.refused(listed, code=1)
    assert f"{renamed}: this package is not where-2.0-0: its metadata says that it is where-1.0-0\nThis package is listed in {listed}. " in error


def test_environments_and_platforms_of_version_7(build):
    where, torchlike = only(build, "where", "torchlike")
    cuda = build.plan(build.spec(["torchlike=2=cuda"]), "--cuda", "12.4")["torchlike"]
    lock = pixi_lock(build, [where, torchlike, cuda], version=7, environments={
        "default": {"linux-64": ([where["url"]], [])},
        "test": {"linux-64": ([torchlike["url"]], []), "linux-64-cuda": ([cuda["url"]], [])}})
    build(lock)
    assert build.run("where").returncode == 0
    # The first platform that fits is used; here the one without CUDA comes first.
    text = lock.read_text()
    first, second = "- name: linux-64\n  virtual-packages:\n  - __glibc=2.17\n", "- name: linux-64-cuda\n  subdir: linux-64\n  virtual-packages:\n  - __cuda=12.0\n"
    build.user.write(lock, text.replace(first + second, second + first))
    for options, expected in ((("--cuda", "12.4"), "cuda"), ((), "cpu")):
        build(lock, "--environment", "test", "--force", *options, env={"CONDA_OVERRIDE_CUDA": ""} if not options else None)
        assert build.run("_debug_exec", "cat", f"{build.prefix}/share/torchlike").stdout == expected
    error = build(lock, "--environment", "tset", "--force", check=False)
    assert error.returncode == 2 and "this pixi lock file has no environment 'tset': it has default, test\nChoose one of these with --environment." in error.stderr
    error = build(build.spec(["where"]), "--environment", "test", "--force", check=False)
    assert error.returncode == 2 and "--environment selects a part of a pixi manifest or a pixi lock file: this is a conda environment file" in error.stderr


def test_categories_of_conda_lock(build, user):
    plan = build.plan(build.spec(["where", "odd"]))
    packages = "".join(f"- name: {name}\n  version: '1.0'\n  manager: conda\n  platform: {platform}\n  dependencies: {{}}\n  url: {plan[name]['url']}\n"
                       f"  hash:\n    md5: {plan[name]['md5']}\n    sha256: {plan[name]['sha256']}\n  category: {category}\n  optional: {str(category != 'main').lower()}\n"
                       for name, category in (("where", "main"), ("odd", "dev"), ("where", "dev")) for platform in ("linux-64", "osx-64"))
    lock = user.write(build.work / "conda-lock.yml", "version: 1\nmetadata:\n  content_hash:\n    linux-64: x\n  channels:\n  - url: conda-forge\n    used_env_vars: []\n  platforms:\n  - linux-64\n  - osx-64\n  sources:\n  - environment.yml\npackage:\n" + packages)
    assert "--category dev includes them" in build(lock).stderr
    assert build.run("_debug_exec", "test", "-e", f"{build.prefix}/share/odd", check=False).returncode == 1
    build(lock, "--category", "dev", "--force")
    assert build.run("_debug_exec", "test", "-e", f"{build.prefix}/share/odd").returncode == 0


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_our_own_lock_has_versions_and_checksums(build, user, uv, installer):
    """With either installer. A build from the lock verifies the checksums, next to a git requirement, which has none."""
    repository = Repository(user, build.work, "demo", dependencies=["six==1.16.0"])
    commit = repository.commit("1.0")
    env = uv if installer == "uv" else None
    build(build.spec(["python", "pip"], more=f"  - pip:\n    - git+file://{repository.path}@main#egg=demo\n    - rich==13.7.1\n"), "--installer", installer, env=env)
    own = lock_of(build)
    lines = {line.split("==")[0]: line for line in own["pip"] if "==" in line}
    assert set(lines) == {"six", "rich", "markdown-it-py", "mdurl", "Pygments"} or set(lines) == {"six", "rich", "markdown-it-py", "mdurl", "pygments"}
    assert all(re.search(r"==\S+ --hash=sha256:[0-9a-f]{64}", line) for line in lines.values()), own["pip"]
    assert f"git+file://{repository.path}@{commit}#egg=demo" in own["pip"]
    if installer == "pip":  # uv records every package as requested
        assert own["pip_requested"] == ["demo", "rich"]
    before = distributions(build)
    repository.commit("1.0", "later = True\n")
    # With the other installer as well: the lock does not depend on the installer.
    for other in ("uv", "pip"):
        rebuild(build, own, "--installer", other, env=uv)
        assert distributions(build) == before and lock_of(build) == own
        assert python(build, "import demo; print(hasattr(demo, 'later'))") == "False"
    broken = json.loads(re.sub(r"sha256:[0-9a-f]{64}", "sha256:" + "0" * 64, json.dumps(own)))
    for other in ("uv", "pip"):
        error = rebuild(build, broken, "--installer", other, env=uv, check=False)
        assert error.returncode == 1 and re.search("hash|the checksum of this package differs", error.stderr.lower()), error.stderr
    assert distributions(build) == before, "what was there stays"


def test_updates_keep_what_the_lock_knows(build, user):
    """Updates keep commits and checksums in the lock, and an update to an earlier lock restores the state that it describes."""
    repository = Repository(user, build.work, "demo")
    commit = repository.commit("1.0")
    build(build.spec(["python", "pip"], more=f"  - pip:\n    - git+file://{repository.path}#egg=demo\n    - six==1.16.0\n"))
    first = lock_of(build)
    later = repository.commit("1.0", "later = True\n")
    more = user.write(build.work / "more.txt", f"idna==3.7\ngit+file://{repository.path}@{later}#egg=demo\n")

    def update(*words):
        return user.run(build.tool, "update", build.prefix, *words, env={"CONTAINERIZE_CACHE": str(build.work / "cache")})

    update("--", "pip", "uninstall", "-qy", "demo")
    update("-r", str(more))
    second = lock_of(build)
    assert f"git+file://{repository.path}@{later}#egg=demo" in second["pip"] and commit not in json.dumps(second["pip"])
    assert [line for line in second["pip"] if line.startswith("six==")] == [line for line in first["pip"] if line.startswith("six==")]
    assert all("--hash=sha256:" in line for line in second["pip"] if "==" in line), second["pip"]
    update(str(user.write(build.work / "first.lock", json.dumps(first))))
    assert {"demo==1.0", "six==1.16.0"} <= distributions(build) and "idna==3.7" not in distributions(build)
    assert python(build, "import demo; print(hasattr(demo, 'later'))") == "False"
    assert lock_of(build)["pip"] == first["pip"]


def test_an_update_to_a_lock_brings_uv(build, user):
    build(build.spec(["python", "pip"], more="  - pip:\n    - idna==3.7\n"))
    lock = user.write(build.work / "own.lock", json.dumps(lock_of(build)))
    user.run(build.tool, "update", build.prefix, "--uv", lock, env={"CONTAINERIZE_CACHE": str(build.work / "cache")})
    assert {one.split("==")[0] for one in distributions(build)} >= {"uv", "idna"}
    assert build.run("uv", "--version").stdout.startswith("uv ")


def test_an_old_pip_gives_a_lock_without_checksums(build, user):
    """It cannot say what it installed. The warning comes once."""
    build(build.spec(["python", "pip"]))

    def update(*words):
        return user.run(build.tool, "update", build.prefix, *words, env={"CONTAINERIZE_CACHE": str(build.work / "cache")}).stderr

    update("--", "pip", "install", "-q", "pip==22.1.2")
    files = [user.write(build.work / f"{name}.txt", f"{name}\n") for name in ("idna==3.7", "certifi==2024.2.2")]
    said = update("--installer", "pip", "-r", files[0], "-r", files[1])
    assert said.count("pip is older than 22.2") == 1 and "idna==3.7" in lock_of(build)["pip"]


def test_what_is_installed_has_to_have_the_checksums_of_the_lock(build, user):
    """`update` checks them as `new` does, and reinstalls packages whose checksum is unknown."""
    build(build.spec(["python", "pip", "where"], more="  - pip:\n    - six==1.16.0\n"))
    own = lock_of(build)

    def update(*words, **more):
        return user.run(build.tool, "update", build.prefix, *words, env={"CONTAINERIZE_CACHE": str(build.work / "cache")}, **more)

    def updated_to(lock, **more):
        return update(str(user.write(build.work / "other.lock", json.dumps(lock))), **more)

    assert "Nothing changed" in updated_to(own).stdout
    other = json.loads(json.dumps(own))
    next(one for one in other["conda"] if one["name"] == "where")["sha256"] = "0" * 64
    for command in (updated_to, lambda lock, **more: rebuild(build, lock, **more)):
        done = command(other, check=False)
        assert done.returncode == 1 and "/where-1.0-0.conda: cannot use the download: its checksum is wrong: expected sha256 00000000" in done.stderr, done.stderr
        assert re.search(r"\nThis package is listed in \S+/(other|again).lock. If its entry there is wrong, lock the environment again.", done.stderr)
    other = {**own, "pip": [re.sub("[0-9a-f]{64}", "0" * 64, line) for line in own["pip"]]}
    done = updated_to(other, check=False)
    assert done.returncode == 1 and "hash" in done.stderr.lower(), done.stderr
    assert lock_of(build) == own and python(build, "import six; print(six.__version__)") == "1.16.0"
    # The lock has no checksum for a package that the user installed with pip.
    update("--", "pip", "install", "-q", "idna==3.7")
    assert "idna==3.7" in lock_of(build)["pip"]
    known = lock_of(build)
    line = f"idna==3.7 --hash=sha256:{hashlib.sha256(wheel(build, 'idna').read_bytes()).hexdigest()}"
    known["pip"] = [line if one == "idna==3.7" else one for one in known["pip"]]
    bad = {**known, "pip": [one.replace(line, f"idna==3.7 --hash=sha256:{'0' * 64}") for one in known["pip"]]}
    assert updated_to(bad, check=False).returncode == 1
    updated_to(known)
    assert {"idna==3.7", "six==1.16.0"} <= distributions(build)


def test_a_lock_brings_back_what_pip_had_replaced(build, user):
    """pip has removed all files of a conda package; its record in conda-meta stays."""
    build(build.spec(["python=3.11", "pip", "wheel=0.42.0"]))
    of_conda = lock_of(build)

    def update(*words):
        return user.run(build.tool, "update", build.prefix, *words, env={"CONTAINERIZE_CACHE": str(build.work / "cache")}).stdout

    def updated_to(lock):
        return update(str(user.write(build.work / "other.lock", json.dumps(lock))))

    update("--", "pip", "install", "-q", "wheel==0.41.2")
    of_pip = lock_of(build)
    assert "wheel==0.41.2" in distributions(build)
    assert "Nothing changed" in updated_to(of_pip), "what pip has put there is what this lock says"
    updated_to(of_conda)
    assert {one for one in distributions(build) if one.startswith("wheel")} == {"wheel==0.42.0"}
    by_name = lambda lock: {**lock, "conda": sorted(lock["conda"], key=lambda one: one["name"])}  # noqa: E731
    assert by_name(lock_of(build)) == by_name(of_conda)
    files = "import json, os, sys; print([f for f in json.load(open(sys.prefix + '/conda-meta/wheel-0.42.0-pyh_0.json'))['files'] if not os.path.lexists(sys.prefix + '/' + f)])"
    assert python(build, files) == "[]"
    assert "Nothing changed" in updated_to(of_conda)
    updated_to(of_pip)
    assert {one for one in distributions(build) if one.startswith("wheel")} == {"wheel==0.41.2"}


def test_offline_reaches_pip(build, user, channels, tmp_path):
    server = Server(channels, tmp_path / "requests.log")
    try:
        index = {"PIP_INDEX_URL": server.url("simple"), "PIP_FIND_LINKS": None, "PIP_EXTRA_INDEX_URL": None, "PIP_CONFIG_FILE": "/dev/null"}
        for line in ("idna==3.7", f"idna @ {server.url('wheels')}/idna-3.7-py3-none-any.whl"):
            error = build.refused(user.write(build.work / "requirements.txt", f"{line}\n"), "--offline", code=1, env=index)
            assert "With --offline, pip uses only packages in --find-links directories" in error, error
        assert server.requests() == []
        links = wheel(build, "idna").parent
        build(user.write(build.work / "requirements.txt", f"--find-links {links}\nidna==3.7\n"), "--offline", env=index)
        assert python(build, "import idna; print(idna.__version__)") == "3.7"
        assert server.requests() == []
    finally:
        server.stop()


def test_offline_reaches_uv(build, user, uv, work):
    env = {**uv, "UV_CACHE_DIR": str(work / "uv-cache")}
    spec = user.write(build.work / "requirements.txt", "idna==3.7\n")
    error = build.refused(spec, "--offline", "--installer", "uv", code=1, env=env)
    assert "With --offline, uv uses only packages in its cache and in --find-links directories" in error
    build(spec, "--installer", "uv", env=env)
    build(spec, "--installer", "uv", "--offline", "--force", env=env)
    assert python(build, "import idna; print(idna.__version__)") == "3.7"


def test_every_request_is_remembered(build, user):
    """Two requests for one package are two conditions, in later updates as well."""
    channel = build.work / "channel"
    for version in ("1.0", "1.5"):
        conda_channel.Package("multi", version).add("share/multi", version).write(channel)
    conda_channel.index(channel)
    build(build.spec(["multi>=1.0", "multi<3"], f"file://{channel}"))
    assert lock_of(build)["requested"] == {"multi": ["multi >=1.0", "multi <3"]}
    record = json.loads(build.run("_debug_exec", "cat", f"{build.prefix}/conda-meta/multi-1.5-0.json").stdout)
    assert record["requested_specs"] == ["multi >=1.0", "multi <3"]
    for version in ("2.0", "3.0"):
        conda_channel.Package("multi", version).add("share/multi", version).write(channel)
    conda_channel.Package("other", "1.0", depends=["multi >=2"]).add("share/other", "x").write(channel)
    conda_channel.index(channel)
    user.run(build.tool, "update", build.prefix, build.spec(["other"], f"file://{channel}", name="other.yml"), env={"CONTAINERIZE_CACHE": str(build.work / "cache2")})
    assert build.run("_debug_exec", "cat", f"{build.prefix}/share/multi").stdout == "2.0"
    assert lock_of(build)["requested"] == {"multi": ["multi >=1.0", "multi <3"], "other": "other"}
