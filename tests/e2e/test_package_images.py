"""Packages of pip environments: each is packed once, and what is linked from these images is what pip installs."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

from conftest import eventually
from installation import staging_directories
from test_build import new, python
from trees import differences, tree_of
from python_wheels import wheel as made_wheel

# Data files, headers, a package of one file, namespace packages, binary scripts, C libraries, names that need normalising.
ODD = ["numpy==2.1.3", "jupyterlab-widgets==3.0.13", "pybind11==2.13.6", "six==1.16.0", "zope.interface==7.2", "zope.event==5.0", "ruff==0.8.4",
       "PyYAML==6.0.2", "typing_extensions==4.12.2", "Pygments==2.18.0", "httpie==3.2.4"]


def image_of(prefix):
    return json.loads((prefix / "containerize.json").read_text())["image"]["sha256"]


def images_in(cache):
    return sorted(path.name for path in cache.rglob("*.sqfs"))


@pytest.fixture()
def cache(user, work):
    return {"CONTAINERIZE_CACHE": str(work / "cache")}


def test_the_tree_is_what_pip_installs(user, tool, work, cache):
    spec = user.write(work / "requirements.txt", "\n".join(ODD) + "\n")
    # The prompt in bin/activate is the directory's name.
    places = work / "linked/env", work / "by-pip/env"
    new(user, tool, places[0], spec, env=cache)
    new(user, tool, places[1], spec, "--installer", "pip-tree", env=cache)
    told = "installed into a directory, because --installer pip-tree asks for it"
    assert [told in (place / "share/build.log").read_text() for place in places] == [False, True]
    linked, by_pip = (tree_of(user, place) for place in places)
    assert linked.keys() == by_pip.keys()
    assert differences(linked, by_pip) == {}
    for prefix in places:
        assert user.run(f"{prefix}/bin/pip", "check").stdout == "No broken requirements found.\n"
        assert user.run(f"{prefix}/bin/ruff", "--version").stdout == "ruff 0.8.4\n"
        assert user.run(f"{prefix}/bin/http", "--version").stdout == "3.2.4\n"
        assert "pybind11" in user.run(f"{prefix}/bin/pybind11-config", "--includes").stdout
    lists = [user.run(f"{prefix}/bin/pip", "freeze", "--all").stdout for prefix in places]
    assert lists[0] == lists[1]
    # pip can remove and replace what it did not install.
    user.run(str(tool), "update", str(places[0]), "--", "pip", "uninstall", "-y", "PyYAML", "ruff", env=cache)
    gone = user.run(f"{places[0]}/bin/python", "-c", "import yaml", check=False)
    assert "ModuleNotFoundError" in gone.stderr
    left = tree_of(user, places[0])
    assert not [path for path in left if re.search("/(_?yaml|ruff)(/|$)|/(pyyaml|ruff)-", path, re.IGNORECASE)]


def test_the_same_bytes_whether_packages_were_packed_before(user, tool, work, cache):
    spec = user.write(work / "requirements.txt", "numpy==2.1.3\nsix==1.16.0\nhttpie==3.2.4\n")
    fixed = {**cache, "SOURCE_DATE_EPOCH": "1700000000"}
    digests = []
    for jobs in ("1", "2", "4"):
        new(user, tool, work / "env", spec, "--force", "--jobs", jobs, env=fixed)
        digests.append(image_of(work / "env"))
        if jobs == "2":  # once more without any image
            user.run(str(tool), "cache", "clean", "--all", env=fixed)
    assert len(set(digests)) == 1, digests


def test_a_second_environment_packs_nothing_again(user, tool, work, cache):
    spec = user.write(work / "requirements.txt", "six==1.16.0\npygments==2.18.0\n")
    new(user, tool, work / "one", spec, env=cache)
    images = images_in(work / "cache")
    times = {path: path.stat().st_ino for path in (work / "cache").rglob("*.sqfs")}
    assert len(images) == 8, images  # pip, setuptools and two packages, each with byte-code
    new(user, tool, work / "two", user.write(work / "more.txt", "pygments==2.18.0\nsix==1.16.0\nidna==3.10\n"), env=cache)
    assert {path: path.stat().st_ino for path in times} == times
    assert len(images_in(work / "cache")) == 10
    assert python(user, work / "two", "import six, pygments, idna; print(idna.__version__)") == "3.10"


def test_damaged_and_unfinished_images_are_made_again(user, tool, work, cache):
    spec = user.write(work / "requirements.txt", "six==1.16.0\n")
    new(user, tool, work / "env", spec, env=cache)
    for number, path in enumerate(sorted((work / "cache").rglob("*.sqfs"))):
        whole = path.read_bytes()
        middle = len(whole) // 2
        path.write_bytes([whole[:middle], whole[:middle] + b"\0" * 64 + whole[middle + 64 :], b"", whole[:-1] + b"?"][number % 4])
    told = user.run(str(tool), "cache", "verify", env=cache, check=False)
    assert told.returncode == 1 and told.stdout.count("Removed, because it is damaged") == 6, told.stdout
    new(user, tool, work / "env", spec, "--force", env=cache)
    assert python(user, work / "env", "import six, pip; print(six.__version__)") == "1.16.0"
    told = user.run(str(tool), "cache", "verify", env=cache).stdout
    assert "in 6 images as they were made" in told
    info = json.loads(user.run(str(tool), "cache", "info", "--json", env=cache).stdout)
    assert info["images"]["files"] == 6 and info["images"]["bytes"] > 100_000


def test_killed_builds_leave_nothing_that_is_used(user, tool, work, cache):
    spec = user.write(work / "requirements.txt", "numpy==2.1.3\n")
    for delay in (0.5, 1.5, 2.5, 3.5):
        build = user.start(str(tool), "new", "--prefix", str(work / "env"), str(spec), env=cache, start_new_session=True)
        time.sleep(delay)
        os.killpg(build.pid, signal.SIGKILL)
        build.communicate()
        if (work / "env/containerize.json").exists():
            break
    eventually(lambda: staging_directories(user) == [])
    new(user, tool, work / "env", spec, "--force", env=cache)
    assert python(user, work / "env", "import numpy; print(numpy.__version__)") == "2.1.3"
    assert "images as they were made" in user.run(str(tool), "cache", "verify", env=cache).stdout


def test_a_cache_that_cannot_be_written(user, tool, work, cache):
    spec = user.write(work / "requirements.txt", "six==1.16.0\n")
    new(user, tool, work / "env", spec, env=cache)
    place = work / "cache/images" / str(user.uid)
    for path in place.iterdir():
        path.unlink()
    place.chmod(0o500)
    try:
        new(user, tool, work / "env", spec, "--force", env=cache)
        assert images_in(work / "cache") == []
    finally:
        place.chmod(0o700)
    assert python(user, work / "env", "import six; print(six.__version__)") == "1.16.0"


def test_tracebacks_name_the_true_path(user, tool, work, cache):
    content = {"failing/__init__.py": b"def fail():\n    raise ValueError('x')\n"}
    made_wheel(work, "failing", content)
    spec = user.write(work / "requirements.txt", f"{next(work.glob('failing-*.whl'))}\n")
    new(user, tool, work / "env", spec, env=cache)
    library = python(user, work / "env", "import sysconfig; print(sysconfig.get_path('purelib'))")
    failed = user.run(f"{work}/env/bin/python", "-c", "import failing; failing.fail()", check=False).stderr
    assert f'File "{library}/failing/__init__.py", line 2, in fail' in failed
    assert python(user, work / "env", "import failing, inspect; print(inspect.getsourcefile(failing.fail))") == f"{library}/failing/__init__.py"


def test_two_wheels_with_one_path(user, tool, work, cache):
    made_wheel(work, "alpha", {"shared/both.py": b"who = 'alpha'\n"})
    made_wheel(work, "beta", {"shared/both.py": b"who = 'beta'\n"})
    spec = user.write(work / "requirements.txt", "".join(f"{path}\n" for path in sorted(work.glob("*.whl"))))
    new(user, tool, work / "env", spec, env=cache)
    assert python(user, work / "env", "from shared.both import who; print(who)") == "alpha"
    assert "'lib/python3.11/site-packages/shared/both.py' is in beta and in alpha, which is used" in (work / "env/share/build.log").read_text()


@pytest.fixture()
def ramfs(user, work):
    """A staging directory on which the kernel mounts no overlay."""
    place = work / "ramfs"
    place.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "none", place], check=True)
    os.chown(place, user.uid, -1)
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a ramfs")
def test_a_newer_pip_replaces_the_one_of_the_venv(user, tool, work, cache, ramfs, without_fuse_overlayfs):
    """With the kernel's overlay, fuse-overlayfs and a copy alike."""
    spec = user.write(work / "requirements.txt", "pip==24.0\nsix==1.16.0\n")
    trees, prefix = [], work / "env"
    for options, env, note in (([], {}, ""), (["--tmpdir", str(ramfs)], {}, "using fuse-overlayfs"),
                               (["--tmpdir", str(ramfs)], without_fuse_overlayfs, "copying the environment to disk")):
        log = new(user, tool, prefix, spec, "--force", *options, env={**cache, **env}).stderr
        assert note in log and not list(ramfs.iterdir())
        assert user.run(f"{prefix}/bin/pip", "--version").stdout.startswith("pip 24.0 ")
        trees.append(tree_of(user, prefix))
    assert [path for path in trees[0] if re.fullmatch(r"lib/python3\.\d+/site-packages/pip-.*\.dist-info", path)] == \
        ["lib/python3.11/site-packages/pip-24.0.dist-info"]
    assert trees[0] == trees[1] == trees[2]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a ramfs")
def test_what_pip_installs_itself_without_an_overlay(user, tool, work, cache, ramfs, without_fuse_overlayfs):
    project = user.directory(work)
    user.write(project / "setup.py", "import setuptools; setuptools.setup(name='mine', py_modules=['mine'])\n")
    user.write(project / "mine.py", "")
    spec = user.write(work / "requirements.txt", f"six==1.16.0\n-e {project}\n")
    log = new(user, tool, work / "env", spec, "--tmpdir", str(ramfs), env={**cache, **without_fuse_overlayfs}).stderr
    assert "copying the environment to disk" in log and not list(ramfs.iterdir())
    assert python(user, work / "env", "import six, mine, pip; print(six.__version__, mine.__file__)") == f"1.16.0 {project}/mine.py"
