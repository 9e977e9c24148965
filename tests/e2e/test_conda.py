"""Conda environments, from channels that the tests make of real packages, over files and over HTTP."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from conftest import CACHE, SOURCE, made_once, next_line
from installation import mounted_in_memory

sys.path.insert(0, str(SOURCE / "tests/lib"))
import conda_channel


class Server:
    """Serves the channels over HTTP; the first part of the path selects a fault."""

    def __init__(self, root, log):
        self.log = log
        self.process = subprocess.Popen(["/usr/bin/python3", SOURCE / "tests/lib/http_server.py", root, log],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(next_line(self.process.stdout))

    def url(self, path, login=""):
        return f"http://{login}127.0.0.1:{self.port}/{path}"

    def requests(self):
        return [line.split("\t") for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def stop(self):
        self.process.stdin.close()
        self.process.wait(60)


@pytest.fixture
def server(channels, tmp_path):
    server = Server(channels, tmp_path / "requests.log")
    yield server
    server.stop()


@pytest.fixture
def work(user):
    directory = user.directory()
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


class Builder:
    def __init__(self, user, tool, work, channels):
        self.user, self.tool, self.work, self.channels = user, tool, work, channels
        self.prefix = work / "env"

    def spec(self, dependencies, channel=None, more="", name="env.yml"):
        channel = channel or f"file://{self.channels}/main"
        lines = "".join(f"  - {one}\n" for one in dependencies)
        return self.user.write(self.work / name, f"channels:\n  - {channel}\n  - nodefaults\ndependencies:\n{lines}{more}")

    def __call__(self, spec, *options, check=True, prefix=None, env=None, timeout=300):
        return self.user.run(self.tool, "new", "--prefix", prefix or self.prefix, *options, spec, check=check, timeout=timeout,
                             env={"CONTAINERIZE_CACHE": str(self.work / "cache"), **(env or {})})

    def plan(self, spec, *options, env=None):
        done = self.user.run(self.tool, "new", "--dry-run", "--json", *options, spec,
                             env={"CONTAINERIZE_CACHE": str(self.work / "cache"), **(env or {})})
        return {record["name"]: record for record in json.loads(done.stdout)}

    def refused(self, spec, *options, code=2, **more):
        done = self(spec, *options, check=False, **more)
        assert done.returncode == code, done.stderr
        assert not self.prefix.exists() or not list(self.prefix.iterdir())
        return done.stderr

    def run(self, *argv, env=None, check=True):
        return self.user.run(self.prefix / "bin" / argv[0], *argv[1:], env=env, check=check)


@pytest.fixture
def build(user, tool, work, channels):
    return Builder(user, tool, work, channels)


@pytest.fixture(scope="module")
def demo(user, tool, channels):
    """One environment with a bit of everything; tests only read it."""
    work = user.directory()
    build = Builder(user, tool, work, channels)
    spec = build.spec(["python=3.11", "numpy", "requests", "where", "active", "linked", "odd", "clash-b", "pygments"],
                      more="  - pip:\n    - six==1.16.0\n    - rich\nvariables:\n  MY_SETTING: '42'\nprefix: /home/me/x\ncolour: red\n")
    # As many users have it: a conda environment is no virtual environment for pip.
    build.log = build(spec, env={"PIP_REQUIRE_VIRTUALENV": "1"}).stderr
    yield build
    shutil.rmtree(work, ignore_errors=True)


def python(build, code, **more):
    return build.run("python", "-c", code, **more).stdout.strip()


def test_packages_of_conda_and_of_pip_run(demo):
    assert python(demo, "import numpy, requests, six, rich; print(numpy.__version__, requests.__version__, six.__version__)") == "1.26.4 2.31.0 1.16.0"
    assert python(demo, "import numpy; print(numpy.linalg.inv(numpy.eye(3)).sum())") == "3.0"
    assert python(demo, "import ssl, ctypes, sqlite3; print(sqlite3.connect(':memory:').execute('select 1+1').fetchone()[0])") == "2"
    assert python(demo, "import sys; print(sys.prefix)") == str(demo.prefix)
    assert demo.run("pygmentize", "-V").stdout.startswith("Pygments version 2.")  # an entry point of a noarch package
    listed = demo.run("pip", "list", "--format", "freeze").stdout.split()
    assert {"numpy==1.26.4", "six==1.16.0", "requests==2.31.0"} <= set(listed)
    assert demo.run("pip", "check").stdout.strip() == "No broken requirements found."


def test_prefixes_are_put_in(demo):
    prefix = str(demo.prefix)
    assert demo.run("where").stdout.split() == [f"{prefix}/share/where", f"{prefix}/a:{prefix}/b"]
    assert demo.run("where-script").stdout.strip() == prefix
    assert demo.run("_debug_exec", "cat", f"{prefix}/share/where").stdout == f"prefix={prefix}\nlib={prefix}/lib\n"


def test_files_of_all_kinds(demo):
    odd = f"{demo.prefix}/share/odd"
    listing = demo.run("_debug_exec", "find", odd, "-printf", "%P %y %l\n").stdout.splitlines()
    assert sorted(line.rstrip() for line in listing if line.strip() != "d") == sorted([
        "a name with blanks f", "ü f", "link l ü", "dangling l nowhere", "empty d", "up l ../../share/odd", "nothing f"])
    assert demo.run("_debug_exec", "cat", f"{demo.prefix}/share/clash").stdout == "b"
    assert "clash-a-1.0-0 and clash-b-1.0-0 both contain 'share/clash'. The file of the second package is kept." in demo.log


def test_hard_links_outlive_what_they_are_to(build):
    names = ["twin", "twin-b", "twin-c"]

    def twins():
        return [build.run("_debug_exec", "cat", f"{build.prefix}/share/{name}").stdout for name in names]

    def inodes():
        return build.run("_debug_exec", "stat", "-c", "%i", *(f"{build.prefix}/share/{name}" for name in names)).stdout.split()

    build(build.spec(["twins"]))
    assert twins() == [f"twins of {build.prefix}\n"] * 3 and len(set(inodes())) == 1
    log = build(build.spec(["instead"]), "--force").stderr
    assert "twins-1.0-0 and instead-1.0-0 both contain 'share/twin'. The file of the second package is kept." in log
    assert twins() == ["instead\n"] + [f"twins of {build.prefix}\n"] * 2
    assert inodes()[1] == inodes()[2]


def test_link_scripts_ran_and_said_their_word(demo):
    assert demo.run("_debug_exec", "cat", f"{demo.prefix}/share/linked.txt").stdout == "made by linked 1.0\n"
    assert "linked printed:\nThank you for linked" in demo.log


def test_notes(demo):
    assert "`prefix:` in " in demo.log and "env.yml:19 is ignored: --prefix sets the directory." in demo.log
    assert "`colour:` in " in demo.log and "is ignored, because it has no effect here" in demo.log


def test_activation_needs_no_shell(demo):
    show = "import os; print(*(f'{n}={os.environ.get(n)}' for n in ('CONDA_PREFIX', 'CONDA_DEFAULT_ENV', 'DATA_HOME', 'ACTIVE_PATH', 'FROM_JSON', 'MY_SETTING', 'JOB_MODE')), sep='\\n')"
    prefix = demo.prefix
    assert python(demo, show).splitlines() == [f"CONDA_PREFIX={prefix}", f"CONDA_DEFAULT_ENV={prefix}", f"DATA_HOME={prefix}/share/data",
                                               f"ACTIVE_PATH={prefix}/x", "FROM_JSON=yes", "MY_SETTING=42", "JOB_MODE=none"]
    other = python(demo, show, env={"JOB_KIND": "big", "ACTIVE_PATH": "/mine", "DATA_HOME": "/old"}).splitlines()
    assert other[2:4] == [f"DATA_HOME={prefix}/share/data", f"ACTIVE_PATH={prefix}/x:/mine"]
    assert other[6] == "JOB_MODE=for big", "a script that depends on the caller is sourced at launch"
    manifest = json.loads((demo.prefix / "containerize.json").read_text())
    assert manifest["activation_scripts"] == ["etc/conda/activate.d/b-dynamic.sh"]


def test_arguments_survive_scripts_of_the_launch(demo):
    arguments = ["", "a b", "new\nline", "$HOME", "'quoted'", '"', "-x", "*"]
    assert json.loads(python(demo, "import json, sys; print(json.dumps(sys.argv[1:]))")) == []
    done = demo.run("python", "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *arguments)
    assert json.loads(done.stdout) == arguments
    assert demo.run("python", "-c", "import sys; sys.exit(7)", check=False).returncode == 7


def test_conda_meta_is_a_prefix_that_conda_knows(demo):
    names = demo.run("_debug_exec", "ls", f"{demo.prefix}/conda-meta").stdout.split()
    records = {}
    for name in names:
        if name.endswith(".json"):
            records[name] = json.loads(demo.run("_debug_exec", "cat", f"{demo.prefix}/conda-meta/{name}").stdout)
    assert "numpy-1.26.4-py311_0.json" in records and "history" in names
    numpy = records["numpy-1.26.4-py311_0.json"]
    assert numpy["requested_spec"] == "numpy" and len(numpy["sha256"]) == 64 and numpy["url"].endswith("numpy-1.26.4-py311_0.conda")
    for name, record in records.items():
        paths = [path["_path"] for path in record["paths_data"]["paths"] if path["path_type"] != "directory"]
        assert sorted(paths) == sorted(record["files"])
        # One launch per package: a launch for each of thousands of files would take long.
        missing = demo.user.run(demo.prefix / "bin/python", "-c",
                                "import os, sys\nfor path in sys.stdin.read().split('\\0'):\n    if path and not os.path.lexists(sys.prefix + '/' + path): print(path)",
                                stdin=None, input="\0".join(record["files"])).stdout
        if name == "setuptools-68.2.2-pyh_0.json":
            continue  # some of its files are for other Python versions and have no byte-code
        assert [line for line in missing.splitlines() if not line.endswith(".pyc")] == [], name
    history = demo.run("_debug_exec", "cat", f"{demo.prefix}/conda-meta/history").stdout
    assert history.startswith("==> ") and "::numpy-1.26.4-py311_0\n" in history and '# update specs: [' in history
    assert str(CACHE) not in json.dumps([record["link"] for record in records.values()])


def test_byte_code_is_there_and_fits(demo):
    code = ("import importlib.util, sys, requests, os\n"
            "cached = importlib.util.cache_from_source(requests.__file__)\n"
            "flags = int.from_bytes(open(cached, 'rb').read(8)[4:], 'little')\n"
            "print(flags)")
    assert python(demo, code) == "1", "an unchecked hash"
    lost = python(demo, "import os, sys\nfor d, _, fs in os.walk(sys.prefix + '/lib/python3.11/site-packages/requests'):\n    for f in fs:\n        if f.endswith('.py') and not os.path.exists(os.path.join(d, '__pycache__', f[:-3] + '.cpython-311.pyc')): print(f)")
    assert lost == ""


def test_byte_code_is_compiled_whatever_way_python_starts_workers(build, user):
    """Python 3.14 starts them by a fork server, which cannot import a program given as text."""
    package = conda_channel.Package("modules", "1.0", depends=["python"], noarch="python")
    package.add("site-packages/sitecustomize.py", "import multiprocessing\nmultiprocessing.set_start_method('forkserver')\n")
    for number in range(120):
        package.add(f"site-packages/modules/m{number}.py", f"number = {number}\n")
    package.write(build.work / "channel")
    conda_channel.index(build.work / "channel")
    text = f"channels: ['file://{build.work}/channel', 'file://{build.channels}/main', nodefaults]\ndependencies: [python, modules]\n"
    build(user.write(build.work / "env.yml", text), "--jobs", "2", timeout=60)
    assert python(build, "import modules.m119, os; print(os.path.exists(modules.m119.__cached__))") == "True"


def test_a_venv_on_top_sees_the_packages(demo, user, work):
    demo.run("python", "-m", "venv", str(work / "venv"))
    assert user.run(work / "venv/bin/python", "-c", "import numpy, sys; print(sys.prefix, numpy.__version__)").stdout.split() == [str(work / "venv"), "1.26.4"]


def test_packages_are_listed(demo, user):
    inspected = json.loads(user.run(demo.tool, "inspect", demo.prefix, "--packages", "--json").stdout)
    versions = {one["name"]: (one["version"], one["channel"]) for one in inspected}
    assert versions["numpy"] == ("1.26.4", "main") and versions["six"] == ("1.16.0", "pypi")
    assert user.run(demo.tool, "inspect", demo.prefix, "--packages").stdout == demo.run("list-packages").stdout
    assert "numpy" in demo.run("list-packages").stdout


def image_of(prefix):
    manifest = json.loads((prefix / "containerize.json").read_text())
    return manifest["image"]["sha256"]


def test_a_lock_gives_the_same_image(demo, user, work):
    lock = user.write(work / "containerize.lock", (demo.prefix / "share/containerize.lock").read_text())
    before = image_of(demo.prefix)
    demo(lock, "--force")
    assert image_of(demo.prefix) == before
    assert (demo.prefix / "share/containerize.lock").read_text() == lock.read_text()


def images_of(build):
    return sorted((build.work / "cache/images").glob("*/*.sqfs"))


def test_packages_are_packed_once(build, server, user):
    spec = build.spec(["python=3.11", "requests", "where", "odd", "linked"], server.url("main"))
    first = build(spec).stderr
    assert "Packing packages" in first and "Compiling packages" in first
    image, images = image_of(build.prefix), images_of(build)
    # Neither the archives nor the server are needed again.
    shutil.rmtree(build.work / "cache/packages")
    for options in (["--offline"], ["--offline", "--jobs", "4"], ["--offline", "--jobs", "1"]):
        again = build(spec, "--force", *options).stderr
        assert "Packing packages" not in again and "Compiling packages" not in again
        assert image_of(build.prefix) == image
    assert images_of(build) == images
    info = json.loads(user.run(build.tool, "cache", "info", "--json", env={"CONTAINERIZE_CACHE": str(build.work / "cache")}).stdout)
    assert info["images"]["files"] == len(images)


def test_damaged_images_of_packages_are_made_again(build, server):
    spec = build.spec(["python=3.11", "requests", "where"], server.url("main"))
    build(spec)
    image, images = image_of(build.prefix), images_of(build)
    content = {path: path.read_bytes() for path in images}
    for number, (path, good) in enumerate(content.items()):
        middle = len(good) // 2
        path.write_bytes([good[:middle], good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1:], b""][number % 3])
    (images[0].parent / ".new-1-1").write_bytes(b"half of an image")  # of a build that was killed
    build(spec, "--force")
    assert image_of(build.prefix) == image
    assert {path: path.read_bytes() for path in images_of(build)} == content


def test_a_build_that_is_killed_leaves_no_image_that_is_used(build, server, user):
    spec = build.spec(["python=3.11", "numpy", "requests"], server.url("main"))
    other = build.work / "other"
    build(spec, prefix=other, env={"CONTAINERIZE_CACHE": str(build.work / "cache2")})
    for delay in ("0.3", "0.8", "1.5", "3"):
        user.run("timeout", "--signal=KILL", delay, build.tool, "new", "--force", "--prefix", build.prefix, spec, check=False,
                 env={"CONTAINERIZE_CACHE": str(build.work / "cache")})
    build(spec, "--force")
    # Records name the prefix, but packages do not.
    names = {path.name: path.read_bytes() for path in (build.work / "cache2/images").glob("*/*.sqfs")}
    assert {path.name: path.read_bytes() for path in images_of(build)} == names


def test_other_lists_are_taken(build, channels, user):
    plan = build.plan(build.spec(["where", "torchlike=1.13"]))
    urls = "".join(f"{record['url']}#{record['sha256']}\n" for record in plan.values())
    explicit = user.write(build.work / "explicit.txt", "# platform: linux-64\n@EXPLICIT\n" + urls)
    build(explicit)
    assert build.run("where").stdout.split()[0] == f"{build.prefix}/share/where"
    assert build.run("_debug_exec", "cat", f"{build.prefix}/share/torchlike").stdout == "old"
    where = plan["where"]
    conda_lock = user.write(build.work / "conda-lock.yml", "version: 1\nmetadata:\n  platforms: [linux-64]\npackage:\n"
                            f"  - {{name: where, version: '1.0', manager: conda, platform: linux-64, url: '{where['url']}', hash: {{sha256: {where['sha256']}}}, category: main, dependencies: {{}}}}\n"
                            f"  - {{name: dev, version: '1.0', manager: conda, platform: linux-64, url: 'https://x/linux-64/dev-1.0-0.conda', hash: {{}}, category: dev, dependencies: {{}}}}\n")
    log = build(conda_lock, "--force").stderr
    assert "1 packages of the category 'dev' are left out. --category dev includes them." in log
    assert build.run("where").returncode == 0
    pixi = user.write(build.work / "pixi.lock", "version: 6\nenvironments:\n  default:\n    channels:\n    - url: https://x/\n    packages:\n      linux-64:\n"
                      f"      - conda: {where['url']}\npackages:\n- conda: {where['url']}\n  sha256: {where['sha256']}\n")
    build(pixi, "--force")
    assert build.run("where").returncode == 0
    exported = user.write(build.work / "list.txt", "# platform: linux-64\nwhere=1.0=0\n")
    build(exported, "--force", env={"CONDA_CHANNELS": f"file://{channels}/main"})
    assert build.run("where").returncode == 0


def test_a_sites_policy_counts_for_lists_too(build, channels, user):
    url = build.plan(build.spec(["where"]))["where"]["url"]
    explicit = user.write(build.work / "explicit.txt", f"@EXPLICIT\n{url}\n")
    error = build.refused(explicit, env={"CONDA_DENYLIST_CHANNELS": f"file://{channels}/main"})
    assert "explicit.txt: the channel " in error and "it is in denylist_channels of conda's configuration" in error
    assert "allowlist_channels" in build.refused(explicit, env={"CONDA_ALLOWLIST_CHANNELS": "conda-forge"})


def test_a_lock_of_others_gives_what_the_packages_say_themselves(build, user):
    plan = build.plan(build.spec(["picky"]))
    picky, other = plan["picky"], build.plan(build.spec(["where"]))["where"]
    packages = "".join(f"  - {{name: {one['name']}, version: '1.0', manager: conda, platform: linux-64, url: '{one['url']}', hash: {{sha256: {one['sha256']}}}, category: main, dependencies: {needs}}}\n"
                       for one, needs in ((picky, "{where: '>=1'}"), (other, "{}")))
    build(user.write(build.work / "conda-lock.yml", "version: 1\nmetadata:\n  platforms: [linux-64]\npackage:\n" + packages))
    record = json.loads(build.run("_debug_exec", "cat", f"{build.prefix}/conda-meta/picky-1.0-0.json").stdout)
    assert record["constrains"] == ["torchlike <2"] and record["timestamp"] == conda_channel.TIME * 1000 and record["license"] == "test"
    assert record["depends"] == ["where >=1"], "a lock has corrected ones"
    assert build.run("_debug_exec", "stat", "-c", "%Y", f"{build.prefix}/conda-meta/history").stdout.strip() == str(conda_channel.TIME)
    before = image_of(build.prefix)
    build(user.write(build.work / "containerize.lock", (build.prefix / "share/containerize.lock").read_text()), "--force")
    assert image_of(build.prefix) == before


def test_http_is_asked_once_and_then_whether_anything_changed(build, server):
    spec = build.spec(["where"], server.url("main"))
    build(spec)
    first = server.requests()
    assert any(path.endswith("/repodata_shards.msgpack.zst") for _, path, *_ in first)
    assert sum(path.endswith("where-1.0-0.conda") for _, path, *_ in first) == 1
    build(spec, "--force")
    later = server.requests()[len(first):]
    assert later and all("repodata" in path for _, path, *_ in later), "packages come from the cache"
    assert any(request[4] for request in later), "asked with the ETag"


def test_shards_give_what_the_whole_list_gives(build, server):
    spec = build.spec(["python=3.11", "numpy", "requests", "vision", "__glibc"], server.url("main"))
    by_shards = build.plan(spec)
    paths = [path for _, path, *_ in server.requests()]
    names = {name for name, record in json.loads((build.channels / "main/linux-64/repodata.json").read_text())["packages.conda"].items()}
    assert not any("repodata.json" in path and "linux-64" in path for path in paths)
    assert len(by_shards) <= sum(len(Path(path).name) > 64 for path in paths) < len(names), paths
    count = len(paths)
    by_list = build.plan(spec, env={"CONDA_REPODATA_USE_SHARDS": "false"})
    assert by_list == by_shards and list(by_list) == list(by_shards) and len(by_list) > 8
    later = [path for _, path, *_ in server.requests()[count:]]
    assert any("repodata.json" in path for path in later) and not any("msgpack" in path for path in later)


def test_newer_packages_are_left_out(build, user):
    """By when the channel published a package, otherwise by when it was built."""
    records = {"1.0": {"timestamp": 1_700_000_000_000}, "2.0": {"timestamp": 1_750_000_000_000}, "2.5": {"timestamp": 1, "indexed_timestamp": 1_750_000_000_000},
               "3.0": {}}
    packages = {f"app-{version}-0.conda": {"name": "app", "version": version, "build": "0", "build_number": 0, "subdir": "linux-64", "sha256": "0" * 64,
                                           "depends": [], **more} for version, more in records.items()}
    channel = build.work / "channel"
    (channel / "linux-64").mkdir(parents=True)
    user.write(channel / "linux-64/repodata.json", json.dumps({"packages.conda": packages}))
    spec = build.spec(["app"], f"file://{channel}")

    def version(*options):
        return build.plan(spec, *options)["app"]["version"]

    assert version() == "3.0"
    assert version("--exclude-newer", "2025-06-15") == "2.5"  # 1_750_000_000 is 15:06 on that day
    assert version("--exclude-newer", "2025-06-15T12:00:00Z") == "1.0"
    assert version("--exclude-newer", "7 days") == "2.5"
    refused = build.refused(spec, "--exclude-newer", "2001-01-01")
    assert "--exclude-newer leaves out 4 packages" in refused and "2001-01-02T00:00:00Z" in refused, refused
    assert "'soon' is neither a time nor a duration" in build.refused(spec, "--exclude-newer", "soon")


def test_the_limit_of_age_is_on_record(build, user):
    spec = build.spec(["where"])
    limit = "2030-01-31T12:00:00Z"
    lock = build.work / "env.lock"
    user.run(build.tool, "lock", "--exclude-newer", limit, spec, "-o", lock)
    assert json.loads(lock.read_text())["exclude_newer"] == limit
    assert "--exclude-newer cannot be combined with a list of exact packages" in build.refused(lock, "--exclude-newer", limit)
    build(spec, "--exclude-newer", limit)
    assert json.loads((build.prefix / "share/containerize.lock").read_text())["exclude_newer"] == limit
    about = json.loads(user.run(build.tool, "inspect", "--json", build.prefix).stdout)
    assert about["build"]["exclude_newer"] == limit
    done = user.run(build.tool, "update", build.prefix, "--exclude-newer", limit, "--", "true", check=False)
    assert done.returncode == 2 and "does not apply to a command" in done.stderr
    # Its pip 24.0 cannot leave anything out, and would do so silently.
    with_pip = build.spec(["python=3.11"], more="  - pip:\n    - six\n", name="pip.yml")
    done = build(with_pip, "--exclude-newer", limit, "--force", check=False)
    assert done.returncode == 2 and "needs uv, or pip 26.0 or newer" in done.stderr, done.stderr


def test_offline_needs_no_server(build, server):
    spec = build.spec(["where"], server.url("main"))
    error = build.refused(spec, "--offline", code=1)
    assert "offline" in error
    build(spec)
    count = len(server.requests())
    build(spec, "--offline", "--force")
    assert len(server.requests()) == count
    assert build.run("where").returncode == 0


@pytest.mark.parametrize("fault, happened", [
    ("flaky/503/1", lambda times, ranges: set(times.values()) == {2}),
    ("slow/0.3", lambda times, ranges: set(times.values()) == {1}),  # waited for, not asked again
    ("cut/1", lambda times, ranges: len(ranges) == sum(times.values()) - len(times) > 0),  # each repetition asks for the rest
])
def test_bad_networks_are_endured(build, server, fault, happened):
    build(build.spec(["python", "where"], server.url(f"{fault}/main")))
    assert build.run("where-script").stdout.strip() == str(build.prefix)
    requests = server.requests()
    assert happened(Counter(path for _, path, *_ in requests), [request[3] for request in requests if request[3]]), requests


def test_what_a_server_refuses_is_named(build, server):
    error = build.refused(build.spec(["where"], server.url("status/403")), code=1)
    assert "127.0.0.1" in error and "the server refuses access (403" in error
    error = build.refused(build.spec(["where"], server.url("status/404")))
    assert "127.0.0.1" in error and "this is not a channel" in error


def no_secret_in(build):
    """Fails if the installation, its image or the cache contains one of the secrets used in this file."""
    meta = build.run("_debug_exec", "sh", "-c", f"cat {build.prefix}/conda-meta/*").stdout
    files = [path for top in (build.prefix, build.work / "cache") for path in top.rglob("*") if path.is_file()]
    assert any("inputs" in path.parts for path in files), "copies of the user's input are searched, too"
    for secret in ("s3cret", "to-ken"):
        assert secret not in meta
        for path in files:
            assert secret.encode() not in path.read_bytes() and secret not in path.name, path


def test_secrets_stay_secret(build, server):
    build(build.spec(["where"], server.url("auth/main", login="user:s3cret@")))
    no_secret_in(build)
    build(build.spec(["where"], server.url("t/to-ken/main"), name="token.yml"), "--force")
    no_secret_in(build)


def test_packages_for_another_platform_are_only_shown(build, user):
    packages = {f"{name}-1.0-0.conda": {"name": name, "version": "1.0", "build": "0", "build_number": 0, "subdir": "linux-aarch64", "sha256": "0" * 64, "depends": depends}
                for name, depends in (("app", ["__archspec 1 aarch64", "__linux >=4.18", "__glibc >=2.28"]),
                                      ("new", ["__glibc >=2.35"]), ("gpu", ["__cuda >=12"]), ("python", []), ("pip", []))}
    channel = build.work / "channel"
    for subdir in ("linux-aarch64", "noarch"):
        (channel / subdir).mkdir(parents=True)
    user.write(channel / "linux-aarch64/repodata.json", json.dumps({"packages.conda": packages}))
    user.write(channel / "noarch/repodata.json", "{}")
    spec = build.spec(["app"], f"file://{channel}")
    assert build.plan(spec, "--platform", "linux-aarch64")["app"]["subdir"] == "linux-aarch64"
    lock = json.loads(user.run(build.tool, "lock", "--platform", "linux-aarch64", spec).stdout)
    assert (lock["subdir"], [one["name"] for one in lock["conda"]]) == ("linux-aarch64", ["app"])
    with_pip = build.spec(["app"], f"file://{channel}", more="  - pip:\n    - six\n    - rich\n", name="pip.yml")
    warning = user.run(build.tool, "new", "--dry-run", "--platform", "linux-aarch64", with_pip).stderr
    assert warning.endswith("warning: the packages that pip installs (2 lines) are not listed: they are for another platform.\n"), warning
    needs_more = build.spec(["app", "new", "gpu"], f"file://{channel}", name="more.yml")
    more = {"CONDA_OVERRIDE_GLIBC": "2.39"}
    assert set(build.plan(needs_more, "--platform", "linux-aarch64", "--cuda", "12.4", env=more)) == {"app", "new", "gpu"}
    refused = build.refused(needs_more, "--platform", "linux-aarch64", "--dry-run")
    assert "gpu 1.0 needs __cuda >=12, which the machine does not have" in refused and "set CONDA_OVERRIDE_GLIBC." in refused, refused
    assert "cannot create an installation for linux-aarch64 on this machine" in build.refused(spec, "--platform", "linux-aarch64")
    unknown = build.refused(spec, "--platform", "linux-amd64", "--dry-run")
    assert "linux-64" in unknown and "linux-aarch64" in unknown and "linux-ppc64le" in unknown
    requirements = user.write(build.work / "requirements.txt", "six\n")
    assert "uv pip compile --python-platform" in build.refused(requirements, "--platform", "linux-aarch64", "--dry-run")
    assert set(build.plan(build.spec(["where"]), "--platform", "linux-64")) == {"where"}


def test_a_lock_installs_what_was_solved(build, server, user):
    spec = build.spec(["where"], server.url("auth/main", login="user:s3cret@"))
    spec.chmod(0o600)
    lock = build.work / "env.lock"
    user.run(build.tool, "lock", spec, "-o", lock)
    assert "s3cret" not in lock.read_text() and lock.stat().st_mode & 0o777 == 0o600
    on_terminal = user.run(build.tool, "lock", build.spec(["where"], name="other.yml"))
    lock = user.write(build.work / "other.lock", on_terminal.stdout)
    assert "is for linux-64, not for linux-aarch64" in build.refused(lock, "--platform", "linux-aarch64", "--dry-run")
    build(lock)
    installed = json.loads((build.prefix / "share/containerize.lock").read_text())
    written = json.loads(lock.read_text())
    for key in ("conda", "channels", "subdir", "requested"):
        assert installed[key] == written[key], key

    def refused(*words):
        done = user.run(build.tool, "lock", *words, "-o", build.work / "none", check=False)
        assert done.returncode == 2 and not (build.work / "none").exists()
        return done.stderr

    assert "already lists exact packages" in refused(lock)
    assert "would replace its input" in user.run(build.tool, "lock", spec, "-o", spec, check=False).stderr
    assert "only a regular file" in user.run(build.tool, "lock", spec, "-o", "/dev/null", check=False).stderr
    done = user.run(build.tool, "lock", spec, "-o", "/etc/env.lock", check=False)
    assert done.returncode == 2 and "/etc: cannot write to this directory: Permission denied" in done.stderr and "Solving" not in done.stderr
    with open("/dev/full", "w") as full:
        lost = user.run(build.tool, "lock", spec, stdout=full, check=False)
        assert lost.returncode == 1 and "cannot write to standard output" in lost.stderr
    with_pip = build.spec(["where"], more="  - pip:\n    - six\n", name="pip.yml")
    assert "only for this machine's platform\nLock it on a linux-aarch64 machine." in refused(with_pip, "--platform", "linux-aarch64")


@pytest.mark.parametrize("login, path", [("user:s3cret@", "auth/main"), ("", "t/to-ken/main")])
def test_secrets_of_lists_and_specs_stay_secret(build, server, user, login, path):
    where = f"{server.url(path, login)}/linux-64/where-1.0-0.conda"
    explicit = user.write(build.work / "explicit.txt", f"@EXPLICIT\n{where}\n", mode=0o600)
    build(explicit)
    no_secret_in(build)
    assert (build.prefix / "share/containerize.lock").stat().st_mode & 0o777 == 0o600, "as the input"
    shown = user.run(build.tool, "new", "--dry-run", "--json", explicit).stdout
    assert "s3cret" not in shown and "to-ken" not in shown
    build(build.spec([f"{server.url(path, login)}::where"], server.url("main")), "--force")
    no_secret_in(build)
    assert (build.prefix / "share/containerize.lock").stat().st_mode & 0o777 == 0o644


def test_secrets_of_pip_stay_secret(build, server):
    extra = server.url("simple", "user:s3cret@")
    build(build.spec(["python", "pip"], more=f"  - pip:\n    - --extra-index-url {extra}\n    - iniconfig\n"))
    no_secret_in(build)
    assert f'"--extra-index-url {server.url("simple")}"' in (build.prefix / "share/containerize.lock").read_text()


@pytest.mark.parametrize("name, words", [
    ("absolute", "'/etc/evil' points outside the prefix"),
    ("climbing", "'share/../../evil' points outside the prefix"),
    ("linkout", "'share/out' is a link that points outside the prefix, to '../../../etc/passwd'"),
    ("linkchained", "'share/out' is a link that points outside the prefix, to 'd/e/up/../../../etc/passwd'"),
    ("linkabsolute", "'share/out' is a link that points outside the prefix, to '/etc/passwd'"),
    ("hardout", "'share/out' is a hard link that points outside the prefix"),
    ("device", "'share/null' is a device, pipe or socket"),
    ("lying", "'share/lying' has the sha256"),
    ("differing", "'share/b' is a hard link to 'share/a', but the file list says that they differ"),
    ("cut", "cut-1.0-0"),
    ("corrupt", "sha256"),
])
def test_hostile_packages_are_refused(build, channels, name, words):
    error = build.refused(build.spec([name], f"file://{channels}/hostile"), code=1)
    assert words in error and name in error


def test_what_is_condas_own_is_left_out(build, channels):
    done = build(build.spec(["meta"], f"file://{channels}/hostile"))
    assert "meta-1.0-0 contains 'conda-meta/history', which is reserved for conda: the file is left out." in done.stderr
    assert build.run("_debug_exec", "cat", f"{build.prefix}/conda-meta/frozen").stdout == "{}\n"
    assert "mine" not in build.run("_debug_exec", "cat", f"{build.prefix}/conda-meta/history").stdout


def test_policies_of_condarc(build, user, channels):
    def condarc(text):
        return {"CONDARC": str(user.write(build.work / "condarc", text))}

    spec = build.spec(["torchlike"])
    plan = build.plan(spec, env=condarc("create_default_packages: [where, torchlike=1]\n"))
    assert plan["where"]["version"] == "1.0" and plan["torchlike"]["version"].startswith("2"), "the file's request counts"
    assert build.plan(spec, env=condarc("pinned_packages: [torchlike 1.*]\n"))["torchlike"]["version"] == "1.13"
    env = condarc("channels: []\ndisallowed_packages:\n- torchlike >=2\n") | {"CONTAINERIZE_CACHE": str(build.work / "cache")}
    refused = user.run(build.tool, "new", "--dry-run", spec, env=env, check=False)
    assert refused.returncode == 2 and "this package is not allowed: torchlike-2" in refused.stderr
    assert f"{env['CONDARC']}:3: " in refused.stderr and "'torchlike >=2'" in refused.stderr
    assert "pip" in build.plan(build.spec(["python"]))
    assert "pip" not in build.plan(build.spec(["python"]), env=condarc("add_pip_as_python_dependency: false\n"))


def test_a_pinned_package_stays_in_updates(build, user):
    hook = user.write(build.work / "pin.sh", f"printf '# mine\\n\\ntorchlike 1.*\\n' > {build.prefix}/conda-meta/pinned\n")
    build(build.spec(["torchlike=1"]), "--post-install", str(hook))
    later = build.spec(["torchlike=2"], name="later.yml")
    refused = user.run(build.tool, "update", str(build.prefix), str(later), env={"CONTAINERIZE_CACHE": str(build.work / "cache")}, check=False)
    assert refused.returncode == 2 and "torchlike=2" in refused.stderr and "the pin on torchlike (conda-meta/pinned:3) permits only torchlike 1.*" in refused.stderr, refused.stderr


def test_updates_keep_to_the_channel_that_was_asked_for(build, user, channels):
    other = build.work / "other"
    conda_channel.Package("where", "2.0").add("share/where-2", "x").write(other)
    conda_channel.Package("elsewhere", "1.0", depends=["where >=2"]).add("share/elsewhere", "x").write(other)
    conda_channel.index(other)
    build(build.spec([f"file://{channels}/main::where"]))
    later = user.write(build.work / "later.yml", f"channels:\n  - file://{other}\n  - file://{channels}/main\ndependencies:\n  - elsewhere\n")
    env = {"CONTAINERIZE_CACHE": str(build.work / "cache")}
    refused = user.run(build.tool, "update", str(build.prefix), str(later), env=env, check=False)
    assert refused.returncode == 2 and f"{channels}/main::where was requested" in refused.stderr, refused.stderr
    both = user.write(build.work / "both.yml", later.read_text() + f"  - file://{other}::where\n")
    user.run(build.tool, "update", str(build.prefix), str(both), env=env)


@pytest.mark.parametrize("package", ["where-1.0-0.conda", "odd-1.0-0.tar.bz2"])
def test_what_was_asked_for_by_its_url_stays(build, user, channels, package):
    build(build.spec([f"file://{channels}/main/linux-64/{package}"]))
    later = build.spec(["torchlike"], name="later.yml")
    user.run(build.tool, "update", str(build.prefix), str(later), env={"CONTAINERIZE_CACHE": str(build.work / "cache")})
    assert package in build.run("_debug_exec", "sh", "-c", f"cat {build.prefix}/conda-meta/*.json").stdout


def test_a_misspelt_name_is_guessed(build):
    error = build.refused(build.spec(["nunpy"]))
    assert "env.yml:5: no channel has nunpy: there is no package of that name\nDid you mean numpy?" in error


def test_a_conflict_is_explained(build):
    error = build.refused(build.spec(["vision", "torchlike=2"]))
    assert "these requirements conflict:" in error
    assert "torchlike=2  (" in error and "env.yml:6)" in error
    assert "- vision 0.15 needs torchlike 1.*, but torchlike=2 was requested" in error


def test_the_machine_decides_and_can_be_overruled(build):
    spec = build.spec(["torchlike"])
    assert build.plan(spec)["torchlike"]["build"] == "cpu"
    assert build.plan(spec, "--cuda", "12.4")["torchlike"]["build"] == "cuda"
    assert build.plan(spec, env={"CONDA_OVERRIDE_CUDA": "12.0"})["torchlike"]["build"] == "cuda"
    assert build.plan(build.spec(["torchlike", "picky"]))["torchlike"]["version"] == "1.13"
    of_gpus = build.spec(["where", "__cuda_arch >=9"])
    assert "set CONDA_OVERRIDE_CUDA_ARCH." in build.refused(of_gpus)
    assert "where" in build.plan(of_gpus, env={"CONDA_OVERRIDE_CUDA_ARCH": "9.0"})
    assert "set CONDA_OVERRIDE_CUDA_ARCH." in build.refused(of_gpus, env={"CONDA_OVERRIDE_CUDA_ARCH": "8.6"})
    error = build.refused(build.spec(["torchlike=2=cuda"]))
    assert "__cuda >=12" in error and "--cuda 12.4" in error


def test_channels_of_anaconda_need_a_word(build, channels):
    both = build.user.write(build.work / "both.yml", f"channels:\n  - file://{channels}/main\n  - defaults\ndependencies:\n  - where\n")
    assert "defaults" in build(both).stderr and "terms" in build.user.run("cat", build.prefix / "share/build.log").stdout
    alone = build.user.write(build.work / "alone.yml", "channels:\n  - defaults\ndependencies:\n  - where\n")
    shutil.rmtree(build.prefix)
    assert "--allow-defaults" in build.refused(alone)


def test_a_name_for_several_channels_means_all_of_them(build, user):
    conda_channel.Package("elsewhere", "1.0").add("share/elsewhere", "x").write(build.work / "first")
    conda_channel.index(build.work / "first")
    condarc = user.write(build.work / "condarc", f"custom_multichannels:\n  both: ['file://{build.work}/first', 'file://{build.channels}/main']\n")
    plan = build.plan(build.spec(["both::where", "both::elsewhere"], "both"), env={"CONDARC": str(condarc)})
    assert set(plan) == {"where", "elsewhere"}


def test_pip_may_not_replace_what_conda_installed(build):
    spec = build.spec(["python", "pip", "numpy"], more="  - pip:\n    - numpy==1.26.3\n")
    error = build.refused(spec, code=1)
    assert "The user requested numpy==1.26.3" in error and "(constraint) numpy==" in error and "--no-constraints" in error
    build(spec, "--no-constraints")
    assert python(build, "import numpy; print(numpy.__version__)") == "1.26.3"


@pytest.mark.parametrize("megabytes, options", [(20, []), (40, []), (60, ["--installer", "pip-tree"])])
@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small filesystem")
def test_a_full_staging_directory_is_named(build, work, megabytes, options):
    """Regardless of the stage of the build in which it fills up."""
    with mounted_in_memory(work / "disk", f"size={megabytes}m,mode=1777") as disk:
        error = build(build.spec(["python", "pip", "numpy"], more="  - pip:\n    - rich\n"), "--tmpdir", str(disk), *options, check=False)
        assert error.returncode == 1 and f"{disk} is full. Free some space, or choose another directory with --tmpdir" in error.stderr, error.stderr
        assert not build.prefix.exists() and list(disk.glob("containerize-build*")) == []


def test_lines_for_pip_are_checked_before_anything_is_installed(build):
    for line, message in (("nosuch=1", "A single `=` is conda syntax"), ("-r missing.txt", "missing.txt', which is included here"), ("--nosuch-option", "pip has no option")):
        spec = build.spec(["python", "pip"], more=f"  - pip:\n    - six\n    - {line}\n")
        error = build.refused(spec)
        number = spec.read_text().splitlines().index(f"    - {line}") + 1
        assert message in error and f"{spec}:{number}" in error and "Solving" not in error, error


def test_requirements_beside_the_environment(build, user):
    user.write(build.work / "more.txt", "six==1.16.0\n")
    spec = build.spec(["python", "pip"], more="  - pip:\n    - -r more.txt\n")
    extra = user.write(build.work / "extra.txt", "iniconfig\n")
    build(spec, "-r", str(extra), "--mamba", "--uv")
    assert python(build, "import six, iniconfig; print(six.__version__)") == "1.16.0"


def test_the_lock_says_where_packages_of_pip_came_from(build, user):
    project = user.directory(build.work)
    user.write(project / "pyproject.toml", '[build-system]\nrequires = ["flit_core"]\nbuild-backend = "flit_core.buildapi"\n[project]\nname = "demo"\ndynamic = ["version", "description"]\n')
    user.write(project / "demo.py", '"""A module."""\n__version__ = "1.0"\n')
    git = ["git", "-C", str(project), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"], ["tag", "v1"]):
        user.run(*git, *command)
    commit = user.run(*git, "rev-parse", "v1").stdout.strip()
    wheels = build.channels / "wheels"
    idna = next(wheels.glob("idna-*.whl"))
    user.write(build.work / "more.txt", f"-f {wheels}\nidna @ file://{idna}\n")
    text = f"  - pip:\n    - -r more.txt\n    - git+file://{project}@v1#egg=demo\n"
    build(build.spec(["python", "pip"], more=text))
    lock = json.loads((build.prefix / "share/containerize.lock").read_text())
    digest = hashlib.sha256(idna.read_bytes()).hexdigest()
    assert lock["pip"] == [f"-f {wheels}", f"git+file://{project}@{commit}#egg=demo", f"idna @ file://{idna}#sha256={digest}"]
    user.write(project / "demo.py", '"""A module."""\n__version__ = "2.0"\n')
    for command in (["commit", "-qam", "y"], ["tag", "-f", "v1"]):
        user.run(*git, *command)
    build(user.write(build.work / "containerize.lock", json.dumps(lock)), "--force")
    assert python(build, "import demo, idna; print(demo.__version__)") == "1.0"


def test_scripts_that_fail(build):
    error = build.refused(build.spec(["linked-broken"]), code=1)
    assert "the post-link script of linked-broken-1.0-0 failed: exit code 7\n  no luck today" in error
    log = build(build.spec(["active-broken"])).stderr
    assert "broken.sh ends the shell that sources it" in log


def test_an_environment_without_python(build):
    build(build.spec(["where"]))
    assert build.run("where").returncode == 0
    assert sorted(path.name for path in (build.prefix / "bin").iterdir()) == ["_debug_exec", "_debug_shell", "containerize-rank", "list-packages", "where", "where-script"]


def test_hooks_work_in_the_environment(build, user):
    post = user.write(build.work / "post.sh", "set -e\npip install -q iniconfig\npip uninstall -qy requests\nrm $CONDA_PREFIX/share/where\n")
    build(build.spec(["python", "pip", "requests", "where"]), "--post-install", str(post))
    assert python(build, "import iniconfig, importlib.util as u; print(u.find_spec('requests'))") == "None"
    assert build.run("_debug_exec", "test", "-e", f"{build.prefix}/share/where", check=False).returncode == 1


BEFORE = "set -e\n[ ! -e $env_root/bin ]\nmkdir -p $env_root/etc\necho early > $env_root/etc/early\n"


def test_a_pre_install_script_runs_before_packages_are_there(build, user):
    script = user.write(build.work / "pre.sh", BEFORE)
    build(build.spec(["python"]), "--pre-install", str(script))
    assert python(build, f"print(open('{build.prefix}/etc/early').read())") == "early"


def test_prefixes_that_are_hard(build):
    build.prefix = build.work / "with blanks and ü"
    build(build.spec(["python", "where", "pygments"]))
    assert build.run("where-script").stdout.strip() == str(build.prefix)
    assert build.run("pygmentize", "-V").stdout.startswith("Pygments")
    build.prefix = build.work / ("x" * 120) / ("y" * 120)
    build.prefix.parent.mkdir()
    os.chown(build.prefix.parent, build.user.uid, -1)
    error = build.refused(build.spec(["where"]))
    assert "the prefix is too long for this package" in error and "has room for 255 bytes" in error


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a ramfs")
def test_a_filesystem_without_attributes_costs_time_only(build, user, without_fuse_overlayfs):
    place = build.work / "ramfs"
    place.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "none", place], check=True)
    try:
        os.chown(place, user.uid, -1)
        script = user.write(build.work / "pre.sh", BEFORE)
        log = build(build.spec(["python", "pygments", "linked"]), "--tmpdir", str(place), "--pre-install", str(script), env=without_fuse_overlayfs).stderr
    finally:
        subprocess.run(["umount", "-l", place], check=True)
    assert "Note: copying the environment to disk to change it there" in log
    assert build.run("pygmentize", "-V").stdout.startswith("Pygments")
    assert build.run("_debug_exec", "cat", f"{build.prefix}/share/linked.txt", f"{build.prefix}/etc/early").stdout == "made by linked 1.0\nearly\n"


@pytest.mark.parametrize("text, message", [
    ("dependencies:\n- numpy\n  - scipy\n", "env.yml:2: two packages are on one line: 'numpy - scipy'"),
    ("dependencies:\n\t- numpy\n", "YAML is indented with spaces, not tabs."),
    ("dependencies: numpy\n", "env.yml:1: `dependencies:` must be a list"),
    ("dependencies:\n- numpy: 1.2\n", "env.yml:2: `numpy:` is not a section of `dependencies:`:\n  2 | - numpy: 1.2\nFor a version, write `- numpy=1.2`."),
    ("dependencies:\n- numpy >=1 <2\n", "env.yml:2: invalid package specification: 'numpy >=1 <2': '>=1 <2' has a space between two conditions"),
    ("dependencies:\n- numpy\ndependencies:\n- scipy\n", "env.yml:3: 'dependencies' is defined twice"),
    ("channels:\n- conda-forge\n", "this environment file has no `dependencies:`"),
    ("channels: conda-forge\ndependencies:\n- x\n", "env.yml:1: `channels:` must be a list"),
    ("dependencies:\n- pip:\n  - [a]\n", "env.yml:3: an item below `pip:` must be a requirement"),
    ("dependencies:\n- x\nchannel_priority: loose\n", "env.yml:3: `channel_priority:` must be strict, flexible or disabled"),
    ("dependencies:\n- x\n---\ndependencies:\n- y\n", "this file contains several YAML documents"),
])
def test_mistakes_in_the_file_are_shown(build, user, text, message):
    error = build.refused(user.write(build.work / "env.yml", text))
    assert message in error, error


def test_options_that_do_not_fit(build, user):
    requirements = user.write(build.work / "requirements.txt", "six\n")
    assert "--cuda is only for conda environments" in build.refused(requirements, "--cuda", "12")
    assert "--python is only for pip requirements" in build.refused(build.spec(["where"]), "--python", "3.11")
    assert "invalid version: 'new'" in build.refused(build.spec(["where"]), "--cuda", "new")
    assert "--prefix is missing" in user.run(build.tool, "new", build.spec(["where"]), check=False).stderr


def test_a_failure_leaves_what_was_there(build):
    build(build.spec(["where"]))
    before = image_of(build.prefix)
    done = build(build.spec(["nunpy"], name="bad.yml"), "--force", check=False)
    assert done.returncode == 2 and image_of(build.prefix) == before
    assert build.run("where").returncode == 0


# Packages that cannot be installed, each with its channel and the reason that the message must give.
REFUSED = {
    # The data contains the record of libgcc-ng, but not its file.
    "conda_format_repo libgcc-ng": "libgcc-ng-8.2.0-hdf63c60_1.tar.bz2: cannot download: the file does not exist or cannot be read",
    "conda_format_repo zlib": "libgcc-ng-8.2.0-hdf63c60_1.tar.bz2: cannot download: the file does not exist or cannot be read",
    "test-recipes failing_post_link": "the post-link script of failing_post_link-1.0-0 failed",
    "test-recipes unsatisfiable": "unsatisfiable 1.0 needs versioned <1.0, which no channel has",
    "dummy_channel_1 dummy-d": "dummy-d 0.1.0 needs dummy-x, which no channel has",
    "virtual_packages cuda-arch": "cuda-arch 0.1.0 needs __cuda_arch >=12, which the machine does not have",
}


def test_real_channels_of_others(build, work):
    """Builds each of their packages into an environment of its own; those in REFUSED must be refused for that reason, and no others."""
    channels = shutil.copytree(SOURCE / "tests/data/channels", work / "channels")  # where the user can read them
    done, refused = 0, {}
    for repodata in sorted(channels.glob("*/noarch/repodata.json")) + sorted(channels.glob("pixi-tests/*/noarch/repodata.json")):
        channel = repodata.parent.parent
        names = set()
        for file in channel.glob("*/repodata.json"):
            if file.parent.name in ("noarch", "linux-64"):
                data = json.loads(file.read_text())
                names |= {record["name"] for key in ("packages", "packages.conda") for record in data.get(key, {}).values()}
        for name in sorted(names):
            built = build(build.spec([name], f"file://{channel}"), "--force", "-q", check=False, env={"CONDA_OVERRIDE_CUDA": "12.4"})
            done += 1
            if built.returncode != 0:
                refused[f"{channel.name} {name}"] = built.stderr
    assert done > 40
    assert refused.keys() == REFUSED.keys(), refused
    wrong = {name: message for name, message in refused.items() if REFUSED[name] not in message}
    assert wrong == {}


def test_mirrors_are_asked_in_turn_and_left_no_trace(build, server):
    netrc = build.user.write(build.work / "netrc", "machine 127.0.0.1 login user password s3cret\n")
    build.user.run("chmod", "600", netrc)
    config = build.user.write(build.work / "config.yaml", "defaults:\n  mirrors:\n"
                              f"    - http://channel.invalid={server.url('status/404')}\n    - http://channel.invalid/={server.url('auth')}/\n")
    build.user.run("chmod", "600", config)
    spec = build.spec(["where"], channel="http://channel.invalid/main")
    env = {"CONTAINERIZE_CONFIG": str(config), "NETRC": str(netrc)}
    log = build(spec, env=env).stderr
    assert build.run("where").returncode == 0
    asked = [path for method, path, *_ in server.requests()]
    # What the first mirror does not have comes from the second one.
    package = next(path for path in asked if path.endswith(".conda") and path.startswith("/auth/main/"))
    assert asked.index(package.replace("/auth/", "/status/404/")) < asked.index(package)
    lock = json.loads((build.prefix / "share/containerize.lock").read_text())
    assert lock["channels"] == ["http://channel.invalid/main"]
    assert {record["url"].rsplit("/", 2)[0] for record in lock["conda"]} == {"http://channel.invalid/main"}
    for file in [*(build.prefix / "share/").rglob("*"), build.prefix / "containerize.json"]:
        if file.is_file():
            text = file.read_text(errors="replace")
            assert "s3cret" not in text and (file.name == "build.log" or f":{server.port}" not in text), file
    assert "s3cret" not in log
    # A lock is installed from the mirrors, too.
    again = build.user.write(build.work / "env.lock", (build.prefix / "share/containerize.lock").read_text())
    build(again, prefix=build.work / "again", env={**env, "CONTAINERIZE_CACHE": str(build.work / "other-cache")})
    alone = build(spec, check=False, prefix=build.work / "none", env={"CONTAINERIZE_CACHE": str(build.work / "third-cache")})
    assert alone.returncode == 1 and "channel.invalid" in alone.stderr, "without the mirrors"


S3_SERVER = ("moto[s3,iam]==5.1.4", "flask==3.1.3", "flask-cors==6.0.5")


@pytest.fixture
def bucket(work):
    """A channel in a bucket of S3, and the variables with which it can be reached."""

    def make(target):
        subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "-q", "--target", target, *S3_SERVER], check=True)

    channel = work / "bucket" / "main"
    conda_channel.Package("stored", "1.0").add("bin/stored", "#!/bin/sh\necho from a bucket\n", 0o755).write(channel)
    conda_channel.index(channel)
    modules = made_once(CACHE / "s3-server-1", make)
    server = subprocess.Popen(["/usr/bin/python3", SOURCE / "tests/lib/s3_server.py", modules, channel.parent],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    port, key, secret = next_line(server.stdout).split()
    yield {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
    server.stdin.close()
    server.wait(60)


def test_a_channel_in_a_bucket_of_s3(build, bucket):
    spec = build.spec(["stored"], channel="s3://channels/main")
    wrong = build.refused(spec, code=1, env={**bucket, "AWS_SECRET_ACCESS_KEY": "not-the-secret"})
    assert "403" in wrong and "or for S3 AWS_ACCESS_KEY_ID" in wrong and "not-the-secret" not in wrong
    log = build(spec, env=bucket).stderr
    assert build.run("stored").stdout == "from a bucket\n"
    lock = json.loads((build.prefix / "share/containerize.lock").read_text())
    assert lock["channels"] == ["s3://channels/main"]
    assert [record["url"] for record in lock["conda"]] == ["s3://channels/main/linux-64/stored-1.0-0.conda"]
    assert bucket["AWS_SECRET_ACCESS_KEY"] not in log + (build.prefix / "share/build.log").read_text()
    # The lock is enough to install it again.
    again = build.user.write(build.work / "env.lock", (build.prefix / "share/containerize.lock").read_text())
    build(again, prefix=build.work / "again", env={**bucket, "CONTAINERIZE_CACHE": str(build.work / "other-cache")})
    # A user who has no key is nobody for the server.
    other = build(spec, check=False, prefix=build.work / "none", env={"AWS_ENDPOINT_URL": bucket["AWS_ENDPOINT_URL"], "CONTAINERIZE_CACHE": str(build.work / "third-cache")})
    assert other.returncode == 1 and "403" in other.stderr
