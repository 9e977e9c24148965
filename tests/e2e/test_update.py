"""Updates: layers over an installation, the states that they make, and switching between states."""

import hashlib
import json
import os
import re
import shutil
import subprocess

import pytest
from changes import made  # noqa: F401 (a fixture)
from conftest import eventually, linux_is_at_least, next_line
from installation import Installation, staging_directories


@pytest.fixture()
def installed(user, tool, work, made):
    """A fresh copy of one installation, at the path for which it was built."""
    prefix, backup = made
    installation = Installation(user, tool, prefix)
    installation.restore(backup)
    return installation


def test_updates_add_up(installed, user, work):
    before = installed.commands()
    script = user.write(work / "post.sh", "set -e\necho from-script > $env_root/note.txt\npip install -q iniconfig==2.0.0\n")
    installed.update("--", "pip", "install", "-q", "pygments==2.17.2")
    assert installed.commands() - before == {"pygmentize"}
    assert user.run(installed.prefix / "bin/pygmentize", "-V").stdout.startswith("Pygments version 2.17.2")
    installed.update("--post-install", script)
    installed.update("-r", user.write(work / "more.txt", "packaging==24.0\n"))
    installed.update(user.write(work / "changed.txt", "six==1.15.0\n"))
    installed.update("--", "pip", "uninstall", "-qy", "pygments")
    assert installed.commands() == before
    states = installed.log()
    assert [(state["state"], state["parent"], state["layers"]) for state in states] == [(1, 0, 0), (2, 1, 1), (3, 2, 2), (4, 3, 3), (5, 4, 4), (6, 5, 5)]
    assert installed.python("import six, packaging, iniconfig; print(six.__version__)") == "1.15.0"
    assert not installed.has("pygments")
    assert installed.python("import sys; print(open(sys.prefix + '/note.txt').read())") == "from-script"
    sizes = [state["bytes"] for state in states]
    assert max(sizes[2:]) < sizes[0] / 5, "a layer is as large as what changed"
    packages = (installed.prefix / "share/packages.txt").read_text().split()
    assert "six==1.15.0" in packages and "packaging==24.0" in packages and not any(one.lower().startswith("pygments") for one in packages)
    assert installed.call("inspect", installed.prefix, "--packages").stdout.split() == packages
    assert user.run(installed.prefix / "bin/list-packages").stdout.split() == packages
    assert "from-script" not in (installed.prefix / "share/build.log").read_text() and (installed.prefix / "share/inputs/changed.txt").exists() is False
    assert (installed.prefix / "states/5/inputs/changed.txt").read_text() == "six==1.15.0\n"
    assert staging_directories(user) == []


def test_byte_code_fits(installed):
    installed.update("--", "pip", "install", "-q", "--no-compile", "six==1.15.0")
    flags = ("import importlib.util, six; data = open(importlib.util.cache_from_source(six.__file__), 'rb').read(); "
             "print(int.from_bytes(data[4:8], 'little'), b'1.15.0' in data)")
    assert installed.python(flags) == "1 True", "unchecked, so it had to be compiled anew"


def test_nothing_changed(installed):
    before = installed.files(), (installed.prefix / "containerize.json").stat().st_mtime_ns
    assert "Nothing changed" in installed.update("--", "python", "-c", "import six, json").stdout
    assert (installed.files(), (installed.prefix / "containerize.json").stat().st_mtime_ns) == before


def test_running_programs_keep_their_state(installed, user):
    process = user.start(installed.prefix / "bin/python", "-uc", "import sys; print('up'); sys.stdin.readline(); import six; print(six.__version__)",
                         stdin=subprocess.PIPE)
    assert next_line(process.stdout) == "up\n"
    installed.update("--", "pip", "install", "-q", "six==1.15.0")
    assert installed.python("import six; print(six.__version__)") == "1.15.0"
    output, errors = process.communicate("go\n", timeout=60)
    assert output == "1.16.0\n", errors


@pytest.mark.parametrize("options", [["--", "sh", "-c", "pip install -q six==1.15.0; exit 3"], ["--post-install", "{work}/bad.sh"],
                                     ["-r", "{work}/impossible.txt"], ["--environ", "{work}/bad.sh"], ["-w", "no/such"]])
def test_a_failure_changes_nothing(installed, user, work, options):
    user.write(work / "bad.sh", "pip install -q six==1.15.0\necho it broke here >&2\nexit 7\n")
    user.write(work / "impossible.txt", "six==99\n")
    before = installed.files(), (installed.prefix / "containerize.json").read_bytes()
    done = installed.update(*(option.format(work=work) for option in options), check=False)
    assert done.returncode in (1, 2) and "Updated" not in done.stdout and done.stderr.count("containerize: ") == 1
    if options[0] == "--":
        assert "The full log" not in done.stderr, "it has nothing of what a command says"
    assert (installed.files(), (installed.prefix / "containerize.json").read_bytes()) == before
    assert installed.python("import six; print(six.__version__)") == "1.16.0"
    assert staging_directories(user) == []


def test_back_and_forth(installed):
    installed.update("--", "pip", "install", "-q", "pygments==2.17.2")
    installed.update("--", "pip", "uninstall", "-qy", "six")
    assert not installed.has("six")
    assert installed.call("rollback", installed.prefix).stdout == "Changed from state 3 to state 2.\n"
    assert installed.call("rollback", installed.prefix, "2").stdout == "State 2 is already the current state.\n"
    assert installed.has("six") and installed.has("pygments") and "pygmentize" in installed.commands()
    installed.call("rollback", installed.prefix, "1")
    assert installed.has("six") and not installed.has("pygments") and "pygmentize" not in installed.commands()
    assert "Pygments" not in (installed.prefix / "share/packages.txt").read_text()
    installed.update("--", "pip", "install", "-q", "iniconfig==2.0.0")  # starts another branch at the current state
    assert [(state["state"], state["parent"], state["current"]) for state in installed.log()] == [(1, 0, False), (2, 1, False), (3, 2, False), (4, 1, True)]
    lines = installed.call("log", installed.prefix).stdout.splitlines()
    assert ["(from" in line for line in lines] == [False, False, False, True] and "(from 1) containerize update" in lines[3]
    assert installed.has("iniconfig") and not installed.has("pygments")
    installed.call("rollback", installed.prefix, "3")
    assert installed.has("pygments") and not installed.has("six") and not installed.has("iniconfig")
    done = installed.call("rollback", installed.prefix, "9", check=False)
    assert done.returncode == 2 and "there is no state 9" in done.stderr


def test_squash(installed, user):
    installed.update("--", "pip", "install", "-q", "pygments==2.17.2")
    installed.update("--", "sh", "-c", "pip uninstall -qy six; mkdir -p $CONTAINERIZE_PREFIX/data; echo x > $CONTAINERIZE_PREFIX/data/file")
    listing = "import os, sys; print(sorted((d, tuple(sorted(fs)), tuple(sorted(ds))) for d, ds, fs in os.walk(sys.prefix)))"
    before = installed.python(listing)
    total = sum(image["size"] for image in [installed.manifest()["image"], *installed.manifest()["layers"]])
    installed.call("squash", installed.prefix)
    assert installed.python(listing) == before
    manifest = installed.manifest()
    assert manifest["layers"] == [] and manifest["image"]["size"] < total
    image = installed.prefix / manifest["image"]["file"]
    assert hashlib.sha256(image.read_bytes()).hexdigest() == manifest["image"]["sha256"]
    assert [path.name for path in installed.prefix.rglob("*.sqfs")] == [image.name]
    assert [state["state"] for state in installed.log()] == [4]
    made_by = installed.log()[0]["squashed"]
    assert ["new" in made_by[0], "pygments" in made_by[1], "uninstall" in made_by[2]] == [True] * 3 and len(made_by) == 3
    assert f"of {made_by[1]}\n" in installed.call("log", installed.prefix).stdout
    assert (installed.prefix / "share/inputs/requirements.txt").read_text() == "six==1.16.0\n"
    assert "Nothing to squash" in installed.call("squash", installed.prefix).stdout
    done = installed.call("rollback", installed.prefix, check=False)
    assert done.returncode == 2 and "there is no earlier state" in done.stderr
    installed.update("--", "pip", "install", "-q", "six==1.15.0")
    assert installed.has("pygments") and installed.current() == 5
    assert [len(state["squashed"]) for state in installed.log()] == [3, 0]
    installed.call("squash", installed.prefix)
    again = installed.log()[0]["squashed"]
    assert again[:3] == made_by and "squash" in again[3] and "six==1.15.0" in again[4]


def timings(said):
    """The titles in a chart of --timings, without those of threads. Checks that its rows account for all of the time."""
    header, *lines = said.rpartition("Timings:\n")[2].splitlines()
    minutes, seconds = re.fullmatch(r"stage +start +seconds  0 s +(?:([0-9]+) min )?([0-9.]+) s", header).groups()
    total, rounding = 60 * int(minutes or 0) + float(seconds), 0.5 if minutes else 0.05
    rows = [re.fullmatch(r"( *)(\S.*?)  +(?:[0-9.]+  +)?([0-9]+\.[0-9]{2})(?:  [ .#]+)?", line).groups() for line in lines]
    assert abs(sum(float(seconds) for indent, _, seconds in rows if not indent) - total) < 0.01 + rounding + 0.005 * len(rows), "each second is in one row"
    assert max(map(len, [header, *lines])) <= 80 and rows[-1][1] == "not in a stage"
    return [title for _, title, _ in rows if ", thread " not in title]


def test_timings(installed, user, work):
    done = installed.new(user.write(work / "more.txt", "six==1.16.0\niniconfig==2.0.0\n"), "--force", "--timings")
    always = ["Adding support for venvs", "Removing secrets", "Compiling byte-code", "Recording the environment", "Listing packages"]
    built = ["Checking the inputs", "Preparing", "Creating the environment", "Resolving requirements", "Packing packages", "Linking packages",
             *always, "Packing the image", "Publishing", "Cleaning up", "not in a stage"]
    assert [title for title in timings(done.stderr) if title in built] == built
    assert re.search("^  (verifying|packing), thread 1 ", done.stderr, re.MULTILINE)
    assert timings((installed.prefix / "share/build.log").read_text()) == timings(done.stderr)

    done = installed.update("--timings", "--", "pip", "install", "-q", "pygments==2.17.2")
    assert timings(done.stderr) == ["Checking the inputs", "Preparing", "Mounting the environment", "Running the command", *always,
                                    "Packing the changes", "Publishing", "Cleaning up", "not in a stage"]
    assert timings((installed.prefix / "share/build.log").read_text()) == timings(done.stderr)

    done = installed.call("squash", "-q", "--timings", "--log", work / "log", installed.prefix)
    assert done.stderr == ""
    squashed = ["Preparing", "Verifying the images", "Packing the image", "Publishing", "Cleaning up", "not in a stage"]
    for log in (work / "log", installed.prefix / "share/build.log"):
        assert [title for title in timings(log.read_text()) if title in squashed] == squashed

    failed = installed.update("--timings", "--", "false", check=False)
    assert failed.returncode == 1 and "Running the command" in timings(failed.stderr.partition("containerize: ")[0])
    assert "Timings" not in installed.update("--", "pip", "uninstall", "-qy", "pygments").stderr
    assert "Timings" not in (installed.prefix / "share/build.log").read_text()


def test_a_damaged_image_is_not_squashed(installed, user):
    installed.update("--", "pip", "install", "-q", "pygments==2.17.2")
    before = installed.files(), installed.manifest()
    for file in [installed.manifest()["image"]["file"], installed.manifest()["layers"][0]["file"]]:
        content = (installed.prefix / file).read_bytes()
        middle = len(content) // 2
        (installed.prefix / file).write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1:])
        done = installed.call("squash", installed.prefix, check=False)
        assert done.returncode == 1 and f"{installed.prefix / file}: the image is damaged: its sha256 is" in done.stderr, done.stderr
        assert (installed.files(), installed.manifest()) == before and staging_directories(user) == []
        (installed.prefix / file).write_bytes(content)
    installed.call("squash", installed.prefix)
    assert installed.has("pygments") and installed.has("six")


def test_squash_with_another_compression(installed):
    size = installed.manifest()["image"]["size"]
    assert "Squashed" in installed.call("squash", "--compression", "zstd:15", installed.prefix).stdout
    assert installed.manifest()["image"]["size"] < size * 0.97 and installed.has("six")
    small = installed.manifest()["image"]["size"]
    # What was compressed well stays so.
    installed.update("--", "sh", "-c", "echo x > $CONTAINERIZE_PREFIX/lib/file")
    installed.call("squash", installed.prefix)
    assert installed.manifest()["image"]["size"] < small * 1.02 and installed.has("six")


def test_replacing_forgets_the_states(installed, user, work, where):
    installed.update("--", "pip", "install", "-q", "pygments==2.17.2")
    installed.new(user.write(work / "env.yml", where), "--force")
    assert len(installed.log()) == 1 and not (installed.prefix / "layers").exists()
    assert user.run(installed.prefix / "bin/where").stdout.startswith(f"{installed.prefix}/") and not {"python", "pygmentize"} & installed.commands()


def test_settings_change_without_a_layer(installed, user, work):
    environ = user.write(work / "environ.sh", "export MY_SETTING=1\n")
    installed.update("--environ", environ)
    assert installed.python("import os; print(os.environ['MY_SETTING'])") == "1"
    assert installed.manifest()["layers"] == [] and installed.current() == 2
    installed.update("-w", "opt/bin", "--", "sh", "-c", "mkdir -p $CONTAINERIZE_PREFIX/opt/bin; printf '#!/bin/sh\\necho $MY_SETTING\\n' > "
                     "$CONTAINERIZE_PREFIX/opt/bin/mine; chmod +x $CONTAINERIZE_PREFIX/opt/bin/mine")
    assert user.run(installed.prefix / "opt/bin/mine").stdout == "1\n"
    installed.call("rollback", installed.prefix)
    assert not (installed.prefix / "opt").exists()


def test_two_at_once(installed, user, work):
    first = user.start(str(installed.tool), "update", installed.prefix, "--", "sh", "-c",
                       f"touch {work}/begun; while ! test -e {work}/end; do sleep 0.05; done")
    try:
        eventually((work / "begun").exists)
        second = installed.update("--", "true", check=False)
    finally:
        (work / "end").touch()  # also when the test fails, because the first command waits for it
        _, errors = first.communicate(timeout=60)
    assert second.returncode == 1 and "another command is changing this installation" in second.stderr
    assert first.returncode == 0, errors


@pytest.fixture(params=["ramfs", "overlay"])
def refusing(request, work):
    """A staging directory on which the kernel mounts no overlay, as with an old kernel: one kind without extended attributes, one with."""
    if os.getuid() != 0:
        pytest.skip("only root can mount these")
    places = {name: work / name for name in ("staging", "below", "above", "more")}
    for path in places.values():
        path.mkdir()
    options = {"ramfs": [], "overlay": ["-o", "lowerdir={below},upperdir={above},workdir={more}".format(**places)]}
    subprocess.run(["mount", "-t", request.param, *options[request.param], "none", places["staging"]], check=True)
    places["staging"].chmod(0o1777)
    yield places["staging"]
    subprocess.run(["umount", "-l", places["staging"]], check=True)


CHANGES = """
set -e
cd $CONTAINERIZE_PREFIX
pip uninstall -qy six
echo more >> data/changed; chmod 700 data/script; rm data/gone
rm -r data/tree; mkdir data/tree; echo new > data/tree/new
rm -r data/was-directory; echo file > data/was-directory
rm data/was-file; mkdir data/was-file; echo inside > data/was-file/inside
rm -r data/was-link; ln -s tree/new data/was-link
rm data/second; echo kept >> data/first; ln data/first data/third
mv data/changed data/renamed; mkdir data/fresh; echo x > data/fresh/x; mv data/fresh data/elsewhere
mkdir .wh-is-no-mark; touch data/tree/.whether
"""
BEFORE = """
set -e
mkdir -p $CONTAINERIZE_PREFIX/data; cd $CONTAINERIZE_PREFIX/data
mkdir -p tree/deep was-directory was-link
for name in tree/old tree/deep/old changed script gone was-file was-directory/x first attributes; do echo $name > $name; done
ln first second
"""
LISTING = """import os, stat, sys
def attributes(path):
    try:
        return os.listxattr(path, follow_symlinks=False)
    except OSError:  # nothing of the images has any
        return []
for directory, names, files in sorted(os.walk(sys.prefix + '/data')):
    for name in sorted(names + files):
        path = os.path.join(directory, name)
        info = os.lstat(path)
        text = os.readlink(path) if stat.S_ISLNK(info.st_mode) else open(path).read() if stat.S_ISREG(info.st_mode) else ''
        print(path, oct(info.st_mode), info.st_nlink if stat.S_ISREG(info.st_mode) else '', repr(text), attributes(path))
"""


def with_attributes(changes, staging):
    try:
        os.setxattr(staging, "user.trial", b"")
    except OSError:
        return changes
    return changes + """python -c "import os; os.setxattr('data/attributes', 'user.colour', b'blue')"\n"""


@pytest.mark.parametrize("fuse", [True, False])
def test_without_the_kernels_overlay(installed, user, work, refusing, without_fuse_overlayfs, fuse):
    """Uses fuse-overlayfs or a copy, with the same result."""
    changes = with_attributes(CHANGES, refusing)
    installed.update("--", "sh", "-c", BEFORE)
    installed.update("--", "sh", "-c", changes)
    expected, layer = installed.python(LISTING), installed.log()[-1]["bytes"]
    installed.call("rollback", installed.prefix, "2")
    installed.env = {} if fuse else without_fuse_overlayfs
    done = installed.update("--tmpdir", refusing, "--", "sh", "-c", changes)
    assert ("using fuse-overlayfs" in done.stderr) == fuse and ("copying the environment to disk" in done.stderr) == (not fuse), done.stderr
    assert installed.python(LISTING) == expected and not installed.has("six")
    assert installed.log()[-1]["bytes"] < layer + 4096, "nothing but what changed"
    assert "Nothing changed" in installed.update("--tmpdir", refusing, "--", "true").stdout
    installed.update("--tmpdir", refusing, "--", "pip", "install", "-q", "pygments==2.17.2")
    assert user.run(installed.prefix / "bin/pygmentize", "-V").stdout.startswith("Pygments version 2.17.2")
    installed.call("rollback", installed.prefix, "2", "--tmpdir", refusing)
    assert installed.has("six") and not installed.has("pygments")


@pytest.mark.parametrize("fuse", [True, False])
def test_doctor_says_how_updates_are_done(tool, user, refusing, without_fuse_overlayfs, fuse):
    def found(**env):
        findings = json.loads(user.run(str(tool), "doctor", "--json", env=env).stdout)["findings"]
        return next(one for one in findings if one["name"] == "updates")

    assert found()["found"] == ("with the kernel's overlayfs" if linux_is_at_least(5, 11) else "with fuse-overlayfs")
    there = found(TMPDIR=str(refusing), **({} if fuse else without_fuse_overlayfs))
    assert there["found"] == ("with fuse-overlayfs" if fuse else "with a copy of the installation")
    assert there["verdict"] == ("ok" if fuse else "note") and ("With fuse-overlayfs" in there["advice"]) == (not fuse)


def test_building_without_the_kernels_overlay(conda, user, tool, work, refusing):
    """Builds that change a tree over an image: conda packages, and wrapped software."""
    spec = conda.spec(["python=3.11", "numpy=1.24", "linked"], "  - pip:\n    - six==1.16.0\n")
    conda.new(spec)
    expected = conda.manifest()["image"]
    done = conda.new(spec, "--force", "--tmpdir", refusing)
    assert "using fuse-overlayfs" in done.stderr
    assert conda.has("six") and conda.has("numpy") and abs(conda.manifest()["image"]["size"] - expected["size"]) < 8192
    software = work / "software"
    (software / "bin").mkdir(parents=True)
    user.write(software / "bin/tool", "#!/bin/sh\necho tool\n", 0o755)
    done = user.run(str(tool), "wrap-install", software, "-w", "bin", "--prefix", work / "wrapped", "--tmpdir", refusing)
    assert "using fuse-overlayfs" in done.stderr and user.run(work / "wrapped/bin/tool").stdout == "tool\n"


def test_refusals(installed, user, work, tool):
    other = work / "moved"
    shutil.copytree(installed.prefix, other, symlinks=True)
    for argv, message in [([other, "--", "true"], "an installation that was moved cannot be updated"),
                          ([work, "--", "true"], "this is not an installation"),
                          ([installed.prefix], "no change is given"),
                          ([installed.prefix, user.write(work / "env.yml", "dependencies:\n  - python\n")], "this installation has no conda packages"),
                          ([installed.prefix, "-r", work / "missing.txt"], "missing.txt"),
                          ([installed.prefix, "--frobnicate"], "--frobnicate")]:
        done = user.run(str(tool), "update", *argv, check=False)
        assert done.returncode == 2 and message in done.stderr, done.stderr


def test_a_broken_python_is_named(installed):
    """Without it, neither byte-code is compiled nor are logins removed from what pip wrote."""
    broken = "#!/bin/sh\necho out of order >&2\nexit 3\n"
    installed.update("--", "sh", "-c", 'rm "$1/bin/python" && printf "%s" "$2" > "$1/bin/python" && chmod +x "$1/bin/python"',
                     "sh", installed.prefix, broken)
    done = installed.update("--", "true", check=False)
    assert done.returncode == 1 and "the environment's Python does not run here" in done.stderr and "out of order" in done.stderr


def test_moved_and_back(small, user, work, tool):
    """A launch of a moved installation leaves an empty directory at the old path, into which `mv` would move it."""
    first, moved = work / "k", work / "k-moved"
    user.copy(small, first, first)
    first.rename(moved)
    user.run(moved / "bin/python", "-c", "pass")
    assert list(first.iterdir()) == []

    def way_back(prefix):
        done = user.run(str(tool), "update", prefix, "--", "true", check=False)
        assert done.returncode == 2, done.stderr
        return done.stderr.split("Move it back: `")[1].split("`")[0]

    assert way_back(moved) == f"rmdir {first} && mv {moved} {first}"
    user.run("mv", moved, first)
    refused = user.run(first / "k-moved/bin/python", "-c", "pass", check=False).stderr
    command = way_back(first / "k-moved")
    assert f"Move it back: `{command}`" in refused
    user.run("sh", "-c", command)
    user.run(first / "bin/python", "-c", "pass")


def test_inside_nothing_is_an_installation(installed, user, tool):
    done = user.run(installed.prefix / "bin/_debug_exec", str(tool), "log", installed.prefix, check=False)
    assert done.returncode == 2 and "Leave it first" in done.stderr


def test_pip_says_what_to_do_instead(installed, user, work):
    for argv in (["pip", "install", "rich"], ["pip3", "uninstall", "-y", "six"], ["python", "-m", "pip", "install", "-r", "x.txt"]):
        done = user.run(installed.prefix / "bin" / argv[0], *argv[1:], check=False)
        assert done.returncode == 1 and "this installation is read-only" in done.stderr
        assert f"containerize update {installed.prefix} -- {' '.join(argv)}" in done.stderr and "Traceback" not in done.stderr
    assert "six" in user.run(installed.prefix / "bin/pip", "list").stdout
    user.run(installed.prefix / "bin/pip", "install", "-q", "--target", work / "mine", "iniconfig==2.0.0")
    assert (work / "mine/iniconfig").is_dir()
    user.run(installed.prefix / "bin/python", "-m", "venv", work / "venv")
    user.run(work / "venv/bin/pip", "install", "-q", "iniconfig==2.0.0")
    assert user.run(work / "venv/bin/python", "-c", "import six, iniconfig").returncode == 0


def test_dev_keeps_changes_for_oneself(installed, user, work):
    project = work / "project"
    project.mkdir()
    user.write(project / "pyproject.toml", "[project]\nname = 'mine'\nversion = '1'\n[project.scripts]\nmine-tool = 'mine:show'\n[tool.setuptools]\npy-modules = ['mine']\n")
    user.write(project / "mine.py", "value = 1\ndef show():\n    print(value)\n")
    os.chown(project, user.uid, user.uid)
    overlay = work / "overlay"

    def dev(*command, **more):
        return installed.call("dev", installed.prefix, "--overlay", overlay, "--", *command, **more)

    before = installed.files()
    dev("pip", "install", "-q", "iniconfig==2.0.0")
    dev("pip", "install", "-q", "-e", project)
    assert dev("python", "-c", "import mine, iniconfig, six; print(mine.value)").stdout == "1\n"
    assert dev("pwd", cwd=project).stdout == f"{project}\n"
    assert dev("mine-tool").stdout == "1\n", "a command that only the overlay has"
    user.write(project / "mine.py", "value = 222\n")
    assert dev("python", "-c", "import mine; print(mine.value)").stdout == "222\n"
    assert dev("sh", "-c", "exit 7", check=False).returncode == 7
    assert not installed.has("mine") and not installed.has("iniconfig") and installed.files() == before
    first = user.start(str(installed.tool), "dev", installed.prefix, "--overlay", overlay, "--", "sh", "-c", "echo begun; read line",
                       stdin=subprocess.PIPE)
    assert next_line(first.stdout) == "begun\n"
    done = dev("true", check=False)
    assert done.returncode == 1 and "this overlay is in use" in done.stderr
    first.communicate("done\n", timeout=60)
    installed.update("--", "pip", "install", "-q", "pygments==2.17.2")
    assert "has been updated since" in dev("true").stderr
    other = installed.call("dev", work, "--overlay", overlay, "--", "true", check=False)
    assert other.returncode == 2 and "this is not an installation" in other.stderr


def test_dev_without_the_kernels_overlay(installed, refusing, without_fuse_overlayfs):
    """On a filesystem that the kernel's overlay refuses, fuse-overlayfs creates the overlay and is needed from then on."""
    overlay = refusing / "overlay"

    def dev(*command, **more):
        return installed.call("dev", installed.prefix, "--overlay", overlay, "--", *command, **more)

    installed.env = without_fuse_overlayfs
    none = dev("true", check=False)
    assert none.returncode == 1 and "on a local disk of this node" in none.stderr, none.stderr
    installed.env = {}
    dev("sh", "-c", "pip uninstall -q -y six && pip install -q iniconfig==2.0.0")
    assert dev("python", "-c", "import iniconfig; print(iniconfig.__name__)").stdout == "iniconfig\n"
    assert "No module named 'six'" in dev("python", "-c", "import six", check=False).stderr
    assert installed.has("six") and not installed.has("iniconfig")
    installed.env = without_fuse_overlayfs
    lost = dev("true", check=False)
    assert lost.returncode == 1 and "this overlay was created by fuse-overlayfs" in lost.stderr


# --- packages of conda -----------------------------------------------------------------------------------------------


@pytest.fixture()
def conda(user, tool, work, channels):
    installation = Installation(user, tool, work / "env", {"CONTAINERIZE_CACHE": str(work / "cache")})

    def spec(dependencies, more=""):
        lines = "".join(f"  - {one}\n" for one in dependencies)
        return user.write(work / "env.yml", f"channels:\n  - file://{channels}/main\n  - nodefaults\ndependencies:\n{lines}{more}")

    installation.spec = spec
    return installation


def records(installation):
    names = installation.user.run(installation.prefix / "bin/_debug_exec", "ls", installation.prefix / "conda-meta").stdout.split()
    return {name.removesuffix(".json") for name in names if name.endswith(".json")}


def test_packages_of_conda_come_and_go(conda, user, work):
    done = conda.new(conda.spec(["python=3.11", "numpy=1.24", "linked"]), "--timings")
    assert {"Reading package lists", "Solving", "Looking for packed packages", "Packing packages", "Installing packages", "Linking byte-code",
            "Compiling packages", "Running link scripts"} <= set(timings(done.stderr))
    before = records(conda)
    layers = conda.update(conda.spec(["where", "active"])).stdout
    assert "state 2" in layers
    assert records(conda) - before == {"where-1.0-0", "active-1.0-0"} and before <= records(conda)
    assert user.run(conda.prefix / "bin/where").stdout.split()[0] == f"{conda.prefix}/share/where"
    assert conda.python("import os; print(os.environ['DATA_HOME'])") == f"{conda.prefix}/share/data"
    history = user.run(conda.prefix / "bin/_debug_exec", "cat", conda.prefix / "conda-meta/history").stdout
    assert history.count("==> ") == 2 and "::where-1.0-0\n" in history.split("==> ")[2]
    assert conda.log()[1]["bytes"] < conda.log()[0]["bytes"] / 20

    conda.update(conda.spec(["numpy=1.25"], "  - pip:\n    - six==1.16.0\n"))
    assert conda.python("import numpy, six; print(numpy.__version__, six.__version__)") == "1.25.0 1.16.0"
    assert "numpy-1.24.0-py311_0" not in records(conda) and "where-1.0-0" in records(conda)
    lock = json.loads((conda.prefix / "share/containerize.lock").read_text())
    assert {one["name"]: one["version"] for one in lock["conda"]}["numpy"] == "1.25.0"
    assert any(line.startswith("six==1.16.0") for line in lock["pip"])
    listed = user.run(conda.prefix / "bin/list-packages").stdout
    assert "1.25.0" in listed and "1.24.0" not in listed and "pypi_0" in listed

    conda.update("--prune", conda.spec(["python=3.11", "numpy=1.25", "requests"]))
    assert "where-1.0-0" not in records(conda) and not (conda.prefix / "bin/where").exists()
    assert conda.python("import os, requests; print(os.environ.get('DATA_HOME'))") == "None"
    assert user.run(conda.prefix / "bin/_debug_exec", "test", "-e", conda.prefix / "share/where", check=False).returncode == 1
    # The current state can be built again from its lock.
    again = Installation(user, conda.tool, work / "again", conda.env)
    again.new(user.write(work / "containerize.lock", (conda.prefix / "share/containerize.lock").read_text()))
    assert records(again) == records(conda)


def planned(installation, *options):
    """What `update --dry-run` shows, by package: how, from where, the version before and after. Checks that it changes nothing."""
    before = installation.files(), (installation.prefix / "containerize.json").stat().st_mtime_ns
    shown = json.loads(installation.update("--dry-run", "--json", *options).stdout)
    table = installation.update("--dry-run", *options).stdout
    assert (installation.files(), (installation.prefix / "containerize.json").stat().st_mtime_ns) == before
    assert staging_directories(installation.user) == []
    for one in shown["packages"]:
        versions = [one[key]["version"] if key in one else "-" for key in ("before", "after")]
        assert [one["name"], one["change"], *versions] in [line.split()[:4] for line in table.splitlines()]
    assert shown["bytes"] == sum(one.get("size", 0) for one in shown["packages"])
    return shown, {one["name"]: (one["change"], one["from"], *(one[key]["version"] for key in ("before", "after") if key in one))
                   for one in shown["packages"]}


def test_a_dry_run_shows_what_changes(conda, channels):
    conda.new(conda.spec(["python=3.11", "numpy=1.24", "where"], "  - pip:\n    - six==1.16.0\n"))
    spec = conda.spec(["python=3.11", "numpy=1.25", "active"])
    shown, changes = planned(conda, "--prune", spec)
    assert changes["numpy"] == ("changed", "conda", "1.24.0", "1.25.0") and changes["active"] == ("added", "conda", "1.0")
    assert changes["where"] == ("removed", "conda", "1.0") and shown["unsolved"] == 0
    numpy = next(one for one in shown["packages"] if one["name"] == "numpy")
    assert numpy["before"]["build"] == numpy["after"]["build"] == "py311_0" and numpy["after"]["channel"].endswith("/main")
    (file,) = (channels / "main/linux-64").glob("numpy-1.25.0-py311_0.*")
    assert numpy["size"] == file.stat().st_size
    conda.update(conda.spec(["numpy=1.25", "active"]))
    assert {"numpy-1.25.0-py311_0", "active-1.0-0"} <= records(conda)
    assert planned(conda, conda.spec(["numpy=1.25", "active"]))[1] == {}

    pip = "  - pip:\n    - six==1.15.0\n"
    assert planned(conda, conda.spec(["python=3.11"], pip))[1] == {"six": ("changed", "pip", "1.16.0", "1.15.0")}
    shown, changes = planned(conda, conda.spec(["linked"], pip))
    assert changes["linked"][:2] == ("added", "conda") and "six" not in changes and shown["unsolved"] == 1
    assert "(1 line) are not solved here" in conda.update("--dry-run", conda.spec(["linked"], pip)).stdout


def test_a_dry_run_of_requirements(installed, user, work):
    spec = user.write(work / "more.txt", "six==1.15.0\niniconfig==2.0.0\n")
    expected = {"six": ("changed", "pip", "1.16.0", "1.15.0"), "iniconfig": ("added", "pip", "2.0.0")}
    assert planned(installed, spec)[1] == planned(installed, "-r", spec)[1] == expected
    assert "0 packages would change." in installed.update("--dry-run", user.write(work / "same.txt", "six\n")).stdout
    script = user.write(work / "post.sh", f"touch {work}/ran\n")
    for options in (["--", "touch", work / "ran"], ["--post-install", script], ["-r", spec, "--pre-install", script], ["-r", spec, "--uv"]):
        refused = installed.update("--dry-run", *options, check=False)
        assert refused.returncode == 2 and "--dry-run cannot" in refused.stderr and refused.stdout == "" and not (work / "ran").exists()
    editable = installed.update("--dry-run", "-r", user.write(work / "editable.txt", f"-e {work}\n"), check=False)
    assert editable.returncode == 2 and "known only after the installation" in editable.stderr


def test_conflicts_change_nothing(conda):
    conda.new(conda.spec(["picky", "torchlike=1.13"]))
    before = conda.files()
    done = conda.update(conda.spec(["torchlike=2.0"]), check=False)
    assert done.returncode == 2 and "torchlike" in done.stderr
    assert conda.files() == before and records(conda) == {"picky-1.0-0", "torchlike-1.13-cpu"}


def test_an_unchanged_file_changes_nothing(conda):
    spec = conda.spec(["where"])
    conda.new(spec)
    assert "Nothing changed" in conda.update(spec).stdout


def test_variables_are_added_to_any_state_file(conda):
    """conda's state file may hold anything, such as a list where an object belongs."""
    conda.new(conda.spec(["where"]))
    state = conda.prefix / "conda-meta/state"
    conda.update("--", "sh", "-c", f"""echo '{{"env_vars": [], "other": 1}}' > {state}""")
    conda.update(conda.spec(["where"], "variables:\n  MY_SETTING: '42'\n"))
    kept = conda.user.run(conda.prefix / "bin/_debug_exec", "cat", state).stdout
    assert json.loads(kept) == {"env_vars": {"MY_SETTING": "42"}, "other": 1}
    assert conda.user.run(conda.prefix / "bin/_debug_exec", "printenv", "MY_SETTING").stdout == "42\n"
