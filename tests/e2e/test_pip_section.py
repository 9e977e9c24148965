"""Packages of pip in a conda environment: their wheels are linked like conda's packages, and what is linked is what pip installs."""

import json
import os
import subprocess
import sys

import pytest
from conftest import SOURCE
from test_conda import image_of, python
from test_locks import build, work  # noqa: F401: fixtures
from test_package_images import ODD, images_in
from trees import LIST, differences

sys.path.insert(0, str(SOURCE / "tests/lib"))
import conda_channel
import python_wheels

SITE_PACKAGES = "lib/python3.11/site-packages"


@pytest.fixture
def channel(work):
    """Makes a channel of these packages."""

    def make(*packages):
        for package in packages:
            package.write(work / "channel")
        conda_channel.index(work / "channel")
        return f"file://{work}/channel"

    return make


def section(*lines):
    return "".join(["  - pip:\n", *(f"    - {line}\n" for line in lines)])


def why_in_a_tree(build, prefix=None):
    """Why pip itself has installed the packages, each time that it did."""
    words = "pip packages are installed into a tree, because "
    log = ((prefix or build.prefix) / "share/build.log").read_text()
    return [line.partition(words)[2] for line in log.splitlines() if words in line]


def content(build, path):
    return build.run("_debug_exec", "cat", f"{build.prefix}/{path}").stdout


def pip_checks(build):
    assert build.run("pip", "check").stdout == "No broken requirements found.\n"


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_the_tree_is_what_pip_installs(build, uv, installer):
    spec = build.spec(["python", "pip", "requests", "linked"], more=section(*(one for one in ODD if not one.startswith("Pygments"))))
    trees, lists, locks = [], [], []
    for how, why in ((installer, []), ("pip-tree", ["--installer pip-tree asks for it"])):
        build(spec, "--installer", how, "--force", env=uv if how == "uv" else None)
        assert why_in_a_tree(build) == why
        for command, said in (("pip check", "No broken requirements found."), ("ruff --version", "ruff 0.8.4"), ("http --version", "3.2.4")):
            assert build.run(*command.split()).stdout == f"{said}\n"
        trees.append(json.loads(python(build, LIST)))
        lists.append(build.run("pip", "freeze", "--all").stdout)
        locks.append(json.loads((build.prefix / "share/containerize.lock").read_text()))
    linked, by_pip = trees
    assert linked.keys() == by_pip.keys()
    assert differences(linked, by_pip) == {}
    assert lists[0] == lists[1]
    if installer == "pip":  # uv's has the checksums of all files of a version
        assert locks[0] == locks[1]


def test_headers_and_scripts_are_where_this_python_has_them(build):
    wheel = python_wheels.wheel(build.work / "wheels", "placed", {
        "placed.py": "", "placed-1.0.data/headers/placed.h": "int x;\n", "placed-1.0.data/data/share/placed": "data\n",
        "placed-1.0.data/scripts/placed": "#!python\nprint(1)\n"})
    build(build.spec(["python", "pip"], more=section(wheel)))
    assert why_in_a_tree(build) == []
    assert content(build, "include/python3.11/placed/placed.h") == "int x;\n" and content(build, "share/placed") == "data\n"
    assert content(build, "bin/placed") == f"#!{build.prefix}/bin/python\nprint(1)\n"


def test_a_second_environment_packs_nothing_again(build):
    build(build.spec(["python", "pip"], more=section("six==1.16.0", "rich")), prefix=build.work / "one")
    images = {path: path.stat().st_ino for path in (build.work / "cache").rglob("*.sqfs")}
    assert images
    build(build.spec(["python", "pip"], more=section("rich", "six==1.16.0", "zope.event==5.0"), name="more.yml"))
    assert {path: path.stat().st_ino for path in images} == images
    assert len(images_in(build.work / "cache")) == len(images) + 2  # zope.event and its byte-code
    assert why_in_a_tree(build) == []
    assert python(build, "import six, rich, zope.event; print(six.__version__)") == "1.16.0"


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_the_lock_gives_the_same_image(build, user, uv, installer):
    env = uv if installer == "uv" else None
    text = section("six==1.16.0", "rich", next((build.channels / "wheels").glob("idna-*.whl")))
    build(build.spec(["python", "pip", "linked"], more=text), "--installer", installer, env=env)
    lock = json.loads((build.prefix / "share/containerize.lock").read_text())
    assert any(line.startswith("six==1.16.0 --hash=sha256:") for line in lock["pip"]), lock["pip"]
    before = image_of(build.prefix)
    build(user.write(build.work / "again.lock", json.dumps(lock)), "--force", "--installer", installer, env=env)
    assert why_in_a_tree(build) == []
    assert image_of(build.prefix) == before
    assert json.loads((build.prefix / "share/containerize.lock").read_text()) == lock


def test_requirements_beside_a_lock(build, user):
    """They are linked, too, after the packages of the lock, which they need."""
    build(build.spec(["python", "pip"], more=section("six==1.16.0", "rich")))
    lock = user.write(build.work / "again.lock", (build.prefix / "share/containerize.lock").read_text())
    python_wheels.wheel(build.work / "wheels", "beside_lock", {"beside_lock.py": "import six\n"})
    more = user.write(build.work / "more.txt", f"--find-links {build.work}/wheels\nbeside-lock\nsix\n")
    build(lock, "-r", str(more), "--force")
    assert why_in_a_tree(build) == []
    assert python(build, "import beside_lock, rich; print(beside_lock.six.__version__)") == "1.16.0"
    assert {f"{name}.dist-info/REQUESTED" for name in ("six-1.16.0", "beside_lock-1.0")} < set(
        build.run("_debug_exec", "sh", "-c", f"cd {build.prefix}/{SITE_PACKAGES}; echo */REQUESTED").stdout.split())
    pip_checks(build)


def test_a_package_of_conda_that_must_be_replaced(build):
    build(build.spec(["python", "pip", "idna"], more=section("idna==3.4", "six==1.16.0")), "--no-constraints")
    assert why_in_a_tree(build) == ["idna must be replaced"]
    assert python(build, "import idna, six; print(idna.__version__, six.__version__)") == "3.4 1.16.0"
    pip_checks(build)


def test_a_file_in_the_way(build, channel):
    package = conda_channel.Package("clash", "1.0").add("share/taken", "of conda\n").add(f"{SITE_PACKAGES}/taken/mine.py", "")
    place = channel(package)
    wheels = build.work / "wheels"
    beside = python_wheels.wheel(wheels, "beside", {"taken/beside.py": "", "beside-1.0.data/data/share/beside": ""})
    build(build.spec(["python", "pip", f"{place}::clash"], more=section(beside)))
    assert why_in_a_tree(build) == []  # in the same directory, but at another place
    over = python_wheels.wheel(wheels, "over", {"over.py": "", "over-1.0.data/data/share/taken": "of pip\n"})
    below = python_wheels.wheel(wheels, "below", {"taken/mine.py": "x = 1\n"})
    for wheel, path in ((over, "share/taken"), (below, f"{SITE_PACKAGES}/taken/mine.py")):
        build(build.spec(["python", "pip", f"{place}::clash"], more=section(beside, wheel)), "--force")
        assert why_in_a_tree(build) == [f"'{path}' is there already"]
        assert content(build, path) == {over: "of pip\n", below: "x = 1\n"}[wheel]
        assert python(build, "import taken.beside; print('good')") == "good"


def test_what_a_link_script_made_stays(build, channel):
    """A directory that it has made would hide what is linked below it."""
    script = (f'mkdir -p "$PREFIX/{SITE_PACKAGES}/made" "$PREFIX/share/elsewhere"\necho "x = 1" > "$PREFIX/{SITE_PACKAGES}/made/of_script.py"\n'
              'echo scripted > "$PREFIX/share/elsewhere/file"\nrm "$PREFIX/share/gone/file"\nrmdir "$PREFIX/share/gone"\n')
    place = channel(conda_channel.Package("scripted", "1.0").add("share/gone/file", "x").add("bin/.scripted-post-link.sh", script, 0o755))
    wheels = build.work / "wheels"
    made = python_wheels.wheel(wheels, "made", {"made/of_wheel.py": "y = 2\n"})
    gone = python_wheels.wheel(wheels, "gone", {"gone-1.0.data/data/share/gone/new": "new\n", "gone.py": ""})
    free = python_wheels.wheel(wheels, "free", {"free.py": "z = 3\n"})
    for wheel, why in ((made, [f"'{SITE_PACKAGES}/made' is there already"]), (gone, ["'share/gone' is there already"]), (free, [])):
        build(build.spec(["python", "pip", f"{place}::scripted"], more=section(wheel)), "--force")
        assert why_in_a_tree(build) == why
        assert content(build, f"{SITE_PACKAGES}/made/of_script.py") == "x = 1\n" and content(build, "share/elsewhere/file") == "scripted\n"
        assert build.run("_debug_exec", "test", "-e", f"{build.prefix}/share/gone/file", check=False).returncode == 1
    assert python(build, "import free, made.of_script; print(free.z)") == "3"


def test_what_only_pip_can_install(build, user):
    project = user.directory(build.work)
    user.write(project / "pyproject.toml", '[build-system]\nrequires = ["flit_core"]\nbuild-backend = "flit_core.buildapi"\n[project]\nname = "demo"\ndynamic = ["version", "description"]\n')
    user.write(project / "demo.py", '"""A module."""\n__version__ = "1.0"\n')
    build(build.spec(["python", "pip"], more=section(f"-e {project}", "six==1.16.0")))
    assert why_in_a_tree(build) == [f"'{project}' is editable"]
    # Built into a wheel, which is linked.
    build(build.spec(["python", "pip"], more=section(project, "six==1.16.0")), "--force")
    assert why_in_a_tree(build) == []
    assert python(build, "import demo, six; print(demo.__version__)") == "1.0"


def test_in_a_base(build, base):
    build(build.spec(["python", "pip", "linked"], more=section("six==1.16.0", "rich")), "--base", str(base))
    assert why_in_a_tree(build) == []
    assert python(build, "import six, rich; print(open('/etc/debian_version').read()[:2], six.__version__)") == "13 1.16.0"
    assert content(build, "share/linked.txt") == "made by linked 1.0\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a ramfs")
@pytest.mark.parametrize("packages, why", [([], []), (["linked"], ["the kernel's overlayfs cannot be used"])])
def test_with_fuse_overlayfs(build, user, packages, why):
    place = build.work / "ramfs"
    place.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "none", place], check=True)
    try:
        os.chown(place, user.uid, -1)
        done = build(build.spec(["python", "pip", *packages], more=section("six==1.16.0", "rich")), "--tmpdir", str(place))
    finally:
        subprocess.run(["umount", "-l", place], check=True)
    assert "using fuse-overlayfs" in done.stderr
    assert why_in_a_tree(build) == why
    assert python(build, "import six, rich; print(six.__version__)") == "1.16.0"


def test_the_list_is_known_before_anything_is_built(build, user):
    spec = build.spec(["python", "pip", "requests"], more=section("six==1.16.0", "rich", next((build.channels / "wheels").glob("idna-*.whl"))))
    cache = {"CONTAINERIZE_CACHE": str(build.work / "cache")}
    files = set(build.work.rglob("*"))
    planned = build.plan(spec)
    assert {"python", "requests", "six", "rich"} <= planned.keys() and planned["six"]["version"] == "1.16.0"
    shown = user.run(build.tool, "new", "--dry-run", spec, env=cache).stdout
    assert any(line.split() == ["six", "1.16.0", "six-1.16.0-py2.py3-none-any.whl"] for line in shown.splitlines()), shown
    assert shown.splitlines()[-1].startswith(f"{len(planned)} packages, "), shown
    locks = {}
    for name in ("own.lock", "pixi.lock"):
        user.run(build.tool, "lock", spec, "-o", build.work / name, env=cache)
        locks[name] = (build.work / name).read_text()
    assert {path.relative_to(build.work).parts[0] for path in set(build.work.rglob("*")) - files} <= {"cache", *locks}, "nothing else is left"

    of_lock = build.plan(build.work / "own.lock")
    assert {name.lower(): one["version"] for name, one in of_lock.items()} == {name.lower(): one["version"] for name, one in planned.items()}

    build(spec)
    written, installed = json.loads(locks["own.lock"]), json.loads((build.prefix / "share/containerize.lock").read_text())
    for key in ("conda", "pip", "pip_packages", "pip_requested", "requested"):
        assert written[key] == installed[key], key
    exported = user.run(build.tool, "export", build.prefix, "--format", "pixi").stdout
    assert exported == locks["pixi.lock"]
    before = image_of(build.prefix)
    build(build.work / "own.lock", "--force")
    assert image_of(build.prefix) == before


def test_a_dry_run_names_what_only_an_installation_can_tell(build, user, work):
    for name in ("src/mine/setup.py", "src/mine/mine.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        user.write(work / name, "")
    spec = build.spec(["python", "pip"], more=section("six", "-e ./src/mine"))
    done = user.run(build.tool, "new", "--dry-run", spec, env={"CONTAINERIZE_CACHE": str(build.work / "cache")})
    warning = done.stderr.splitlines()[-1]
    assert warning.startswith("warning: the packages that pip installs (2 lines) are not listed: '") and warning.endswith("src/mine' is editable."), warning
    assert "python " in done.stdout and "six" not in done.stdout
