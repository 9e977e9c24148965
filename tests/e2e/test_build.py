"""Builds: every option and every kind of requirement. A failed build leaves nothing behind."""

import hashlib
import io
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

from conftest import IN_A_NAMESPACE_WITHOUT_FURTHER_ONES, eventually, linux_is_at_least, next_line, recordings
from installation import mounted_in_memory, staging_directories
from local_server import LocalServer
from python_wheels import wheel
from test_secrets import wheel as made_wheel


def new(user, tool, prefix, spec, *options, check=True, **more):
    return user.run(str(tool), "new", "--prefix", str(prefix), *options, str(spec), check=check, timeout=1200, **more)


def python(user, prefix, code, **more) -> str:
    return user.run(f"{prefix}/bin/python", "-c", code, **more).stdout.strip()


def is_whole(user, prefix) -> bool:
    """Whether an installation of the spec `quick` works."""
    return user.run(f"{prefix}/bin/where").stdout.startswith(f"{prefix}/share/where\n")


@pytest.fixture()
def spec(user, work):
    return user.write(work / "requirements.txt", "six==1.16.0\n")


@pytest.fixture()
def quick(user, work, where):
    return user.write(work / "env.yml", where)


# --- what is built ---------------------------------------------------------------------------------------------------


def test_layout(user, env):
    assert {path.name for path in env.iterdir()} == {"bin", "containerize.json", "env.sqfs", "env.sqfs.profile", "libexec", "pyvenv.cfg", "share", "states"}
    manifest = json.loads((env / "containerize.json").read_text())
    assert manifest["format"] == 1 and manifest["prefix"] == str(env)
    assert manifest["image"]["size"] == (env / "env.sqfs").stat().st_size
    assert manifest["image"]["sha256"] == hashlib.sha256((env / "env.sqfs").read_bytes()).hexdigest()
    inode = (env / "bin/python").stat().st_ino
    for command in ("pip", "pygmentize", "_debug_shell", "_debug_exec"):
        assert (env / "bin" / command).stat().st_ino == inode, command
    assert "numpy==" in (env / "share/packages.txt").read_text()
    assert "Would install" in (env / "share/build.log").read_text()


def test_image_is_standard(env):
    listing = subprocess.run(["unsquashfs", "-ll", str(env / "env.sqfs")], capture_output=True, text=True, check=True).stdout
    assert "squashfs-root/bin/python" in listing and "numpy/__init__.py" in listing
    about = subprocess.run(["unsquashfs", "-s", str(env / "env.sqfs")], capture_output=True, text=True, check=True).stdout
    assert "Compression zstd" in about and "Block size 131072" in about and "Duplicates are removed" in about


@pytest.mark.parametrize(("name", "compression"), [("with space", "zstd:1"), ("ünïcødé", "zstd:19"), ("it's \"quoted\" $HOME", "lz4"), ("-dash", "none")])
def test_prefix_with_odd_name_and_compression(user, tool, work, spec, name, compression):
    prefix = work / name
    new(user, tool, prefix, spec, "--compression", compression, "--block-size", "64K", "--jobs", "1")
    assert python(user, prefix, "import six, email.mime.text, sys; print(sys.executable)") == f"{prefix}/bin/python"
    assert "pip " in user.run(f"{prefix}/bin/pip", "--version").stdout
    about = subprocess.run(["unsquashfs", "-s", str(prefix / "env.sqfs")], capture_output=True, text=True, check=True).stdout
    assert "Block size 65536" in about


def test_a_prefix_below_the_home_directory_that_the_shell_left(user, tool, work, quick):
    user.run(tool, "new", "--prefix=~/env", quick, env={"HOME": str(work)}, cwd=work)
    assert is_whole(user, work / "env")


def test_no_home_is_needed_without_a_base(user, tool, work, quick):
    variables = {"HOME": None, "XDG_CACHE_HOME": str(work)}
    new(user, tool, work / "env", quick, env=variables)
    assert is_whole(user, work / "env")
    done = new(user, tool, work / "other", quick, "--base", "docker://127.0.0.1:1/none:1", check=False, env=variables)
    assert done.returncode == 2, done.stderr
    assert "there is no directory for base images: HOME is not set" in done.stderr


def test_relative_prefix_and_missing_parents(user, tool, work, quick):
    user.run(str(tool), "new", "--prefix", "a/b/env", quick.name, cwd=work)
    assert is_whole(user, work / "a/b/env")


def test_existing_empty_directory_keeps_its_own(user, tool, work, quick):
    prefix = work / "env"
    prefix.mkdir()
    os.chown(prefix, user.uid, user.entry.pw_gid)
    prefix.chmod(0o2750)
    inode = prefix.stat().st_ino
    new(user, tool, prefix, quick)
    assert prefix.stat().st_ino == inode and stat.S_IMODE(prefix.stat().st_mode) == 0o2750
    assert [path.name for path in prefix.iterdir() if path.name.startswith(".")] == []
    assert is_whole(user, prefix)


@pytest.mark.parametrize(("umask", "readable", "kind"), [("022", True, "conda"), ("077", False, "conda"), ("022", True, "pip"), ("077", False, "pip")])
def test_umask_decides_who_may_read(user, tool, work, spec, only_python, umask, readable, kind):
    prefix = work / "env"
    given = spec if kind == "pip" else user.write(work / "python.txt", only_python)
    user.run("/bin/sh", "-c", f"umask {umask}; exec {tool} new --prefix {prefix} {given}")
    for path in [prefix, *prefix.rglob("*")]:
        mode = path.lstat().st_mode
        if path.is_symlink():
            continue
        assert bool(mode & stat.S_IROTH) == readable, path
        assert bool(mode & stat.S_IRGRP) == readable, path
        assert not mode & (stat.S_IWOTH | stat.S_IWGRP)
    listing = subprocess.run(["unsquashfs", "-ll", str(prefix / "env.sqfs")], capture_output=True, text=True).stdout
    modes = {line[:10] for line in listing.splitlines() if line[:1] in "-d"}
    assert modes and all((mode[7] == "r") == readable for mode in modes)


# A default access list, in the form of linux/posix_acl_xattr.h, which replaces the umask: for the owner, the group and others.
OPEN_TO_ALL = struct.pack("<I" + 3 * "HHI", 2, 1, 7, 0xFFFFFFFF, 4, 5, 0xFFFFFFFF, 32, 7, 0xFFFFFFFF)


@pytest.mark.parametrize("cause", ["umask", "setting", "access list"])
def test_others_can_never_write(user, tool, work, only_python, cause):
    """Launches would refuse such an installation, and others could change what is in such a cache."""
    spec = user.write(work / "spec.txt", only_python)
    made = [user.directory(work), user.directory(work)]
    home, prefix = made[0], made[1] / "above/env"
    settings = user.write(work / "settings.yaml", "defaults:\n  umask: '000'\n" if cause == "setting" else "")
    if cause == "access list":
        for path in made:
            os.setxattr(path, "system.posix_acl_default", OPEN_TO_ALL)
    more = {"env": {"HOME": str(home), "CONTAINERIZE_CONFIG": str(settings)}, "umask": 0 if cause == "umask" else 0o022}
    new(user, tool, prefix, spec, "--layout", "profile", **more)
    for command in (["update", prefix, "--", "sh", "-c", f"echo 1 > {prefix}/lib/added"], ["profile", prefix, "--", "python", "-c", "import json"],
                    ["rollback", prefix], ["update", prefix, "--", "sh", "-c", f"echo 2 > {prefix}/lib/added"], ["squash", prefix]):
        user.run(str(tool), *map(str, command), **more)
    assert python(user, prefix, f"print(open('{prefix}/lib/added').read())", **more) == "2"
    assert (home / ".cache/containerize").is_dir()
    every = [path for top in made for path in top.rglob("*") if not path.is_symlink()]
    assert len(every) > 20 and not [path for path in every if path.stat().st_mode & stat.S_IWOTH]
    if cause == "umask":
        assert stat.S_IMODE(prefix.stat().st_mode) == 0o775 and stat.S_IMODE((prefix / "containerize.json").stat().st_mode) == 0o664


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory to another group")
def test_group_of_the_parent_is_inherited(user, tool, work, quick):
    parent = work / "project"
    parent.mkdir()
    os.chown(parent, user.uid, 12345)
    parent.chmod(0o2775)
    new(user, tool, parent / "env", quick)
    for path in [parent / "env", *(parent / "env").rglob("*")]:
        assert path.lstat().st_gid == 12345, path


def test_two_builds_give_the_same_image(user, tool, work, spec):
    images = []
    for _ in range(2):
        prefix = work / "same"
        new(user, tool, prefix, spec, "--installer", "pip", env={"SOURCE_DATE_EPOCH": "1700000000"})
        images.append((prefix / "env.sqfs").read_bytes())
        subprocess.run(["rm", "-rf", str(prefix)], check=True)
    assert images[0] == images[1]


def test_no_run_compares_byte_code_with_sources(user, env):
    """Neither what pip's own installation compiled, nor what the build did: all of it has an unchecked hash (PEP 552)."""
    code = "import pathlib, sys; print({file.read_bytes()[:8][4] for file in pathlib.Path(sys.prefix, 'lib').rglob('*.pyc')})"
    assert python(user, env, code) == "{1}"


# Writes two modules, byte-code that says something else, and then one of the modules again, with size and time of modification kept.
MODULES_WITH_OTHER_BYTE_CODE = """
import importlib.util, marshal, os, pathlib, struct, sysconfig, time
for name in ("same", "changed", "cut"):
    source = pathlib.Path(sysconfig.get_paths()["purelib"], name + ".py")
    source.write_text("number = 1\\n")
    found = os.stat(source)
    time.sleep(0.05)
    header = importlib.util.MAGIC_NUMBER + struct.pack("<LLL", 0, int(found.st_mtime), found.st_size)
    cached = pathlib.Path(importlib.util.cache_from_source(source))
    cached.parent.mkdir(exist_ok=True)
    cached.write_bytes(header + marshal.dumps(compile("number = 2\\n", source, "exec")))
    time.sleep(0.05)
    if name == "changed":
        source.write_text("number = 3\\n")
        os.utime(source, ns=(found.st_atime_ns, found.st_mtime_ns))
    if name == "cut":
        os.truncate(cached, cached.stat().st_size - 5)
"""


def test_byte_code_is_kept_if_it_is_newer_than_its_source(user, tool, work, small):
    prefix = user.copy(small, work / "env", work / "env")
    user.run(str(tool), "update", str(prefix), "--", "python", "-c", MODULES_WITH_OTHER_BYTE_CODE)
    assert python(user, prefix, "import same, changed, cut; print(same.number, changed.number, cut.number)") == "2 3 1"


def test_standard_streams_may_be_closed(user, tool, work, where):
    """What fails then is cleaned up as always."""
    post = user.write(work / "post.sh", "exit 3\n")
    done = user.run("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", str(tool), "new", "--prefix", str(work / "deep/env"), "--post-install", str(post),
                    str(user.write(work / "where.yml", where)), check=False)
    assert done.returncode == 1
    assert not (work / "deep").exists() and staging_directories(user) == []


def test_children_may_be_ignored(user, tool, work, where):
    """The caller may ignore SIGCHLD, and then the kernel tells no parent how a child ended."""
    ignore = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    spec = user.write(work / "where.yml", where)
    user.run("/usr/bin/python3", "-c", ignore, str(tool), "new", "--prefix", str(work / "env"), str(spec))
    user.run("/usr/bin/python3", "-c", ignore, str(tool), "run", str(work / "env"), "--", "true")


def test_wrapper_on_path_is_not_taken_for_an_interpreter(user, tool, work, spec, env):
    # A wrapper would name the same interpreter as the host does, so whether it was run shows only where there is no other.
    done = new(user, tool, work / "env", spec, "--system-site-packages", check=False, env={"PATH": f"{env}/bin"})
    assert done.returncode == 2 and "python3 is not on PATH" in done.stderr
    new(user, tool, work / "env", spec, env={"PATH": f"{env}/bin:/usr/bin:/bin"})
    assert python(user, work / "env", "import six; print(six.__version__)") == "1.16.0"


def test_bundled_python(user, tool, work, spec):
    prefix = work / "env"
    new(user, tool, prefix, spec, "--bundle-python")
    code = "import os, json, ssl, ctypes, six, sys; print(json.dumps([sys.base_prefix, os.__file__, os.path.realpath(sys.executable)]))"
    for path in json.loads(python(user, prefix, code)):
        assert path.startswith(str(prefix)), path
    opened = user.run("strace", "-f", "-e", "trace=openat", f"{prefix}/bin/python", "-c", "pass").stderr
    assert not re.search(r'"/usr/lib/python3', opened), "the host's library was read"


def test_hooks_and_environ(user, tool, work, spec):
    prefix = work / "env"
    before = user.write(work / "before.sh", "echo before-hook; test -x $env_root/bin/python; ! $env_root/bin/python -c 'import six' 2>/dev/null\n")
    after = user.write(work / "after.sh", "set -e\npython -c 'import six'\ncd $env_root\nmkdir -p opt/tool/bin\nprintf '#!/bin/sh\\necho tool $ANSWER\\n' > opt/tool/bin/tool\nchmod +x opt/tool/bin/tool\n")
    settings = user.write(work / "settings.sh", 'export ANSWER="forty two"\nexport PATH=$PATH:/opt/late\nexport DATA=$VIRTUAL_ENV/data\nunset GONE\necho noise\n')
    new(
        user, tool, prefix, spec, "--pre-install", str(before), "--post-install", str(after), "--environ", str(settings),
        "--wrapper-paths", "opt/tool/bin", env={"GONE": "there"},
    )  # fmt: skip
    assert user.run(f"{prefix}/opt/tool/bin/tool").stdout == "tool forty two\n"
    code = "import os; print(os.environ['DATA'], os.environ['PATH'], 'GONE' in os.environ)"
    assert python(user, prefix, code, env={"GONE": "again"}) == f"{prefix}/data {prefix}/bin:/usr/bin:/bin:/opt/late False"
    assert "before-hook" in (prefix / "share/build.log").read_text()


def test_quiet_verbose_and_log_with_python_by_version_and_by_path(user, tool, work, spec):
    done = new(user, tool, work / "quiet", spec, "-q", "--log", str(work / "log"), "--python", "3.11")
    assert done.stdout == "" and done.stderr == ""
    log = (work / "log").read_text()
    assert "Would install six-1.16.0" in log and "Packing" in log
    done = new(user, tool, work / "loud", spec, "-v", "--python", "/usr/bin/python3.11")
    assert "Would install six-1.16.0" in done.stderr
    assert "Ready: " in done.stdout and "export PATH=" in done.stdout
    for name in ("quiet", "loud"):
        assert python(user, work / name, "import sys; print(*sys.version_info[:2])") == "3 11"


# --- requirements ----------------------------------------------------------------------------------------------------


def test_requirement_forms(user, tool, work):
    """Markers, extras, includes, constraints, a local project, an editable one, and options."""
    project = work / "project"
    (project / "mine").mkdir(parents=True)
    user.write(project / "pyproject.toml", '[project]\nname = "mine"\nversion = "1.5"\n[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n')
    user.write(project / "mine/__init__.py", "value = 5\n")
    editable = work / "editable"
    (editable / "theirs").mkdir(parents=True)
    user.write(editable / "setup.py", "from setuptools import setup\nsetup(name='theirs', version='2', packages=['theirs'])\n")
    user.write(editable / "theirs/__init__.py", "value = 6\n")
    for directory in (project, project / "mine", editable, editable / "theirs"):
        os.chown(directory, user.uid, user.entry.pw_gid)
    (work / "more").mkdir()
    user.write(work / "more/extra.txt", "-c limits.txt\nidna\n")
    user.write(work / "more/limits.txt", "idna==3.7\n")
    spec = user.write(
        work / "requirements.txt",
        "# a comment\n--prefer-binary\nsix==1.16.0 ; python_version >= '3'\nnot-a-package-at-all ; python_version < '3'\n"
        "requests[socks] \\\n  >=2.30  # with an extra\n-r more/extra.txt\n./project\n-e ./editable\n",
    )
    prefix = work / "env"
    done = user.run(str(tool), "new", "--prefix", str(prefix), spec.name, cwd=work)
    assert "'./editable' is installed as editable" in done.stderr
    code = "import six, requests, socks, mine, theirs, idna; print(mine.value, theirs.value, idna.__version__)"
    assert python(user, prefix, code) == "5 6 3.7"
    assert {path.name for path in (prefix / "share/inputs").iterdir()} >= {"requirements.txt", "extra.txt", "limits.txt"}


def test_hashes(user, tool, work):
    good = "8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254"
    spec = user.write(work / "good.txt", f"six==1.16.0 --hash=sha256:{good}\n")
    new(user, tool, work / "env", spec)
    spec = user.write(work / "bad.txt", f"six==1.16.0 --hash=sha256:{'0' * 64}\n")
    done = new(user, tool, work / "bad", spec, check=False)
    assert done.returncode == 1 and "hash" in done.stderr.lower() and not (work / "bad").exists()


@pytest.mark.parametrize("installer", ["pip", "uv"])
@pytest.mark.parametrize("kind", ["sha256", "sha512"])
def test_hashes_of_requirements(user, tool, work, uv, installer, kind):
    """In each form in which they can be written; only wheels with SHA-256 are linked."""
    wheel = made_wheel(work / "wheels", "hashed")
    digest = hashlib.new(kind, wheel.read_bytes()).hexdigest()
    environment = uv | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(work / "wheels"), "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(work / "wheels")}
    forms = {"option": f"hashed==1.0 --hash={kind}:%s\n", "url": f"hashed @ {wheel.as_uri()}#{kind}=%s\n"}
    if installer == "pip":
        forms |= {"words": f"hashed==1.0 --hash {kind}:%s\n", "abbreviated": f"hashed==1.0 --ha={kind}:%s\n"}
    for name, form in forms.items():
        new(user, tool, work / name, user.write(work / f"{name}.txt", form % digest), "--installer", installer, env=environment)
        assert python(user, work / name, "import hashed; print(hashed.there)") == "True"
        is_linked = "installed into a directory" not in (work / name / "share/build.log").read_text()
        assert is_linked == (kind == "sha256"), name
        wrong = new(user, tool, work / "wrong", user.write(work / "wrong.txt", form % digest[::-1]), "--installer", installer, env=environment, check=False)
        assert wrong.returncode == 1 and re.search("hash", wrong.stderr, re.IGNORECASE) and not (work / "wrong").exists(), name


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_dry_run_shows_what_would_be_installed(user, tool, work, uv, installer):
    """The same packages as a build installs, dependencies and sources included; and nothing is left."""
    spec = user.write(work / "requirements.txt", "--no-binary markupsafe\nsix==1.16.0 ; python_version >= '3'\njinja2\n-c limits.txt\n")
    user.write(work / "limits.txt", "jinja2==3.1.4\nmarkupsafe==2.1.5\n")
    environment = uv | {"CONTAINERIZE_CACHE": str(work / "cache")}
    before = staging_directories(user)
    plan = user.run(str(tool), "new", "--dry-run", "--json", "--installer", installer, str(spec), env=environment).stdout
    packages = {one["name"].lower(): one for one in json.loads(plan)}
    assert {name: (one["version"], one["requested"]) for name, one in packages.items()} == {"six": ("1.16.0", True), "jinja2": ("3.1.4", True), "markupsafe": ("2.1.5", False)}
    assert packages["six"]["sha256"] == "8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254"
    assert packages["six"]["url"].endswith("/six-1.16.0-py2.py3-none-any.whl")
    assert re.fullmatch(r"(?i)markupsafe @ \S+/markupsafe-2\.1\.5\.tar\.gz#sha256=[0-9a-f]{64}", packages["markupsafe"]["build"])
    shown = user.run(str(tool), "new", "--dry-run", "--installer", installer, str(spec), env=environment).stdout
    assert re.search(r"^six +1\.16\.0 +six-1\.16\.0-py2\.py3-none-any\.whl$", shown, re.MULTILINE) and "\n3 packages" in shown
    assert staging_directories(user) == before and sorted(path.name for path in work.iterdir()) == ["cache", "limits.txt", "requirements.txt"]


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_lock_of_requirements(user, tool, work, uv, installer):
    """A build from it installs the same packages, wherever newer ones are; pip understands it, too."""
    user.run("/usr/bin/python3", "-m", "pip", "download", "-q", "--no-deps", "-d", str(work / "wheels"), "iniconfig==2.0.0")
    spec = user.write(work / "requirements.txt", f"--no-binary markupsafe\n--find-links {work}/wheels\nsix==1.16.0\njinja2\niniconfig\n-c limits.txt\n")
    user.write(work / "limits.txt", "jinja2==3.1.4\nmarkupsafe==2.1.5\niniconfig==2.0.0\n")
    before = staging_directories(user)
    written = user.run(str(tool), "lock", "--installer", installer, str(spec), "-o", str(work / "pylock.toml"), env=uv)
    assert written.stdout == "" and staging_directories(user) == before
    lock = tomllib.loads((work / "pylock.toml").read_text())
    assert lock["lock-version"] == "1.0"
    assert {one["name"]: one["version"] for one in lock["packages"]} == {"iniconfig": "2.0.0", "jinja2": "3.1.4", "markupsafe": "2.1.5", "six": "1.16.0"}
    by_name = {one["name"]: one for one in lock["packages"]}
    assert by_name["six"]["wheels"][0]["hashes"] == {"sha256": "8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254"}
    assert by_name["markupsafe"]["sdist"]["url"].lower().endswith("/markupsafe-2.1.5.tar.gz")
    new(user, tool, work / "env", work / "pylock.toml")
    shown = json.loads(user.run(f"{work}/env/bin/pip", "list", "--format", "json").stdout)
    versions = {one["name"].lower(): one["version"] for one in shown}
    assert {name: versions[name] for name in by_name} == {one["name"]: one["version"] for one in lock["packages"]}
    (work / "pylock.toml").write_text((work / "pylock.toml").read_text().replace("8abb2f1d", "00000000"))
    done = new(user, tool, work / "other", work / "pylock.toml", check=False)
    assert done.returncode == 1 and "six" in done.stderr and not (work / "other").exists(), "what differs from the lock is refused"


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_a_lock_has_what_environments_come_with(user, tool, work, uv, installer):
    spec = user.write(work / "requirements.txt", "setuptools\npip\nsix==1.16.0\n")
    user.run(str(tool), "lock", "--installer", installer, str(spec), "-o", str(work / "pylock.toml"), env=uv)
    assert [one["name"] for one in tomllib.loads((work / "pylock.toml").read_text())["packages"]] == ["pip", "setuptools", "six"]


class OneFile(LocalServer):
    """Gives the same file for every path."""

    def __init__(self, content):
        super().__init__()
        self.content = content

    def answer(self, request):
        self.send(request, 200, {}, self.content)


def test_a_lock_names_files_where_they_are(user, tool, work):
    """A directory called t is no conda token, and an address is not written without its query."""
    server = OneFile(wheel(work, "inpath", {"inpath.py": ""}).read_bytes())
    address = f"http://127.0.0.1:{server.port}/t/inpath/inpath-1.0-py3-none-any.whl"
    spec = user.write(work / "requirements.txt", f"inpath @ {address}\n")
    lock = tomllib.loads(user.run(str(tool), "lock", str(spec)).stdout)
    assert lock["packages"][0]["archive"]["url"] == address
    user.write(spec, f"inpath @ {address}?signature=0123456789\n")
    refused = user.run(str(tool), "lock", str(spec), check=False)
    server.close()
    assert refused.returncode == 2 and "the address of inpath cannot be locked" in refused.stderr and "0123456789" not in refused.stderr


def test_what_cannot_be_locked(user, tool, work):
    (work / "project").mkdir()
    user.write(work / "project/setup.py", "from setuptools import setup\nsetup(name='mine')\n")
    editable = user.run(str(tool), "lock", str(user.write(work / "requirements.txt", "-e ./project\n")), cwd=work, check=False)
    assert editable.returncode == 2 and "'./project' is editable" in editable.stderr
    other = user.run(str(tool), "lock", "--platform", "linux-aarch64", str(user.write(work / "six.txt", "six\n")), check=False)
    assert other.returncode == 2 and "only for this machine's platform" in other.stderr
    nowhere = user.run(str(tool), "lock", str(work / "six.txt"), "-o", str(work / "missing/pylock.toml"), check=False)
    assert nowhere.returncode == 2 and f"{work}/missing: this directory does not exist" in nowhere.stderr


@pytest.fixture()
def slow_import(user, work):
    """A requirements file for a package whose import takes long, and a function that waits until that has begun."""
    wheel(work / "wheels", "slow", {"slow.py": f"import time; open({str(work / 'begun')!r}, 'w'); time.sleep(8)\n"})
    (work / "begun").unlink(missing_ok=True)
    return user.write(work / "slow.txt", f"--no-index\n--find-links {work}/wheels\nslow\n"), lambda: eventually((work / "begun").exists)


def test_recording_holds_nothing_of_the_caller(user, tool, work, slow_import):
    spec, wait = slow_import
    script = 'exec 9>"$1/lock"; flock 9; "$2" new --quiet --prefix "$1/env" "$3"; echo ready'
    process = user.start("sh", "-c", script, "sh", str(work), str(tool), str(spec), cwd=work)
    assert process.communicate(timeout=300)[0] == "ready\n" and process.returncode == 0
    wait()
    assert recordings(user.uid)
    for recording in recordings(user.uid):
        assert os.readlink(f"/proc/{recording}/cwd") == "/"
        opened = {os.readlink(f"/proc/{recording}/fd/{fd}") for fd in os.listdir(f"/proc/{recording}/fd")}
        assert not any(str(work / "lock") in one or one.endswith("build.log (deleted)") for one in opened), opened
    user.run("flock", "--nonblock", str(work / "lock"), "true")
    assert (work / "env/env.sqfs.profile").exists() and not recordings(user.uid)


def test_recording_is_not_taken_for_that_of_another_image(user, tool, work, spec, slow_import):
    slow, wait = slow_import
    assert user.start(str(tool), "new", "--prefix", str(work / "env"), str(slow)).wait(300) == 0
    wait()
    shutil.rmtree(work / "env")
    new(user, tool, work / "env", spec, "--no-profile")
    assert not recordings(user.uid) and not (work / "env/env.sqfs.profile").exists()


def test_a_dry_run_says_why_it_cannot_know(user, tool, work):
    (work / "project").mkdir()
    user.write(work / "project/setup.py", "from setuptools import setup\nsetup(name='mine')\n")
    spec = user.write(work / "requirements.txt", "-e ./project\n")
    done = user.run(str(tool), "new", "--dry-run", str(spec), cwd=work, check=False)
    assert done.returncode == 2 and "known only after the installation: './project' is editable" in done.stderr


def test_uv(user, tool, work, spec, uv):
    new(user, tool, work / "env", spec, "--installer", "uv", env=uv)
    assert python(user, work / "env", "import six; print(six.__version__)") == "1.16.0"
    assert json.loads((work / "env/containerize.json").read_text())["build"]["installer"] == "uv"
    done = new(user, tool, work / "none", spec, "--installer", "uv", check=False)
    assert done.returncode == 2 and "uv is not on PATH" in done.stderr


class IndexWithTimes(LocalServer):
    """A package index in JSON (PEP 691). The package `aged` is of 2024, and has a further wheel and a version of 2026. `made` must be built with it."""

    def __init__(self):
        super().__init__()
        self.files = {}
        for name, version, time in (("aged-1.0-py3-none-any.whl", "1.0", "2024-01-31T12:00:00Z"), ("aged-1.0-9-py3-none-any.whl", "later", "2026-01-31T12:00:00Z"),
                                    ("aged-2.0-py3-none-any.whl", "2.0", "2026-01-31T12:00:00Z")):
            info = "-".join(name.split("-")[:2]) + ".dist-info"
            wheel = io.BytesIO()
            with zipfile.ZipFile(wheel, "w") as archive:
                archive.writestr("aged.py", f"version = '{version}'\n")
                archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: aged\nVersion: {name.split('-')[1]}\n")
                archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
                archive.writestr(f"{info}/RECORD", f"aged.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
            self.files[name] = (wheel.getvalue(), time)
        self.files["made-1.0.tar.gz"] = (self.source_package(), "2024-01-31T12:00:00Z")

    @staticmethod
    def source_package():
        """Its module tells the version of `aged` that it was built with."""
        backend = """import aged, pathlib, zipfile
def build_wheel(directory, *more):
    with zipfile.ZipFile(pathlib.Path(directory) / "made-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("made.py", f"version = '{aged.version}'\\n")
        for name, text in (("METADATA", pathlib.Path("PKG-INFO").read_text()), ("WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"),
                           ("RECORD", "made.py,,\\n" + "".join(f"made-1.0.dist-info/{name},,\\n" for name in ("METADATA", "WHEEL", "RECORD")))):
            archive.writestr(f"made-1.0.dist-info/{name}", text)
    return "made-1.0-py3-none-any.whl"
"""
        project = '[build-system]\nrequires = ["aged"]\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "made"\nversion = "1.0"\n'
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for name, text in (("PKG-INFO", "Metadata-Version: 2.2\nName: made\nVersion: 1.0\n"), ("pyproject.toml", project), ("backend.py", backend)):
                member = tarfile.TarInfo(f"made-1.0/{name}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
        return packed.getvalue()

    def answer(self, request):
        name = request.path.split("/")[-1]
        if name in self.files:
            return self.send(request, 200, {}, self.files[name][0])
        project = request.path.split("/")[-2]
        if request.path not in ("/simple/aged/", "/simple/made/"):
            return self.send(request, 404, {})
        listed = [{"filename": file, "url": f"../../{file}", "hashes": {"sha256": hashlib.sha256(content).hexdigest()}, "size": len(content),
                   "upload-time": time} for file, (content, time) in self.files.items() if file.startswith(project)]
        page = {"meta": {"api-version": "1.1"}, "name": project, "versions": ["1.0", "2.0"], "files": listed}
        self.send(request, 200, {"Content-Type": "application/vnd.pypi.simple.v1+json"}, json.dumps(page).encode())


@pytest.fixture
def index_with_times():
    index = IndexWithTimes()
    yield {"PIP_INDEX_URL": f"http://127.0.0.1:{index.port}/simple", "PIP_CONFIG_FILE": "/dev/null", "PIP_FIND_LINKS": None}
    index.close()


def test_newer_versions_are_left_out(user, tool, work, uv, index_with_times):
    env = uv | index_with_times
    spec = user.write(work / "aged.txt", "aged\n")
    for limit, version in (("2025-01-31", "1.0"), ("2026-01-31T12:00:00Z", "1.0"), ("2026-01-31", "2.0")):
        new(user, tool, work / "env", spec, "--installer", "uv", "--exclude-newer", limit, "--force", env=env)
        assert python(user, work / "env", "import aged; print(aged.version)") == version
    assert json.loads((work / "env/containerize.json").read_text())["build"]["exclude_newer"] == "2026-02-01T00:00:00Z"
    plan = user.run(str(tool), "new", "--dry-run", "--json", "--exclude-newer", "2025-01-31", str(spec), env=env).stdout
    assert json.loads(plan)[0]["url"].endswith("/aged-1.0-py3-none-any.whl")
    done = new(user, tool, work / "none", spec, "--installer", "pip", "--exclude-newer", "7 days", check=False)
    assert done.returncode == 2 and "needs uv, or pip 26.0 or newer" in done.stderr, done.stderr
    done = new(user, tool, work / "none", spec, "--exclude-newer", "", check=False)
    assert done.returncode == 2 and "--exclude-newer: '' is neither a time nor a duration" in done.stderr, done.stderr


def test_newer_versions_are_left_out_of_builds(user, tool, work, uv, index_with_times):
    """pip builds packages for uv. The venv's pip 23 knows no limit, so uv must build itself."""
    spec = user.write(work / "made.txt", "made\n")
    for limit, version in (("2025-01-31", "1.0"), ("2026-01-31", "2.0")):
        done = new(user, tool, work / "env", spec, "--installer", "uv", "--exclude-newer", limit, "--force", "--verbose", env=uv | index_with_times)
        assert python(user, work / "env", "import made; print(made.version)") == version
        assert "made must be built by uv" in done.stderr, done.stderr


def test_newer_versions_are_left_out_by_a_new_pip(user, tool, work, index_with_times):
    """Also of the build's requirements, and where pip's own settings have another limit."""
    newest = user.write(work / "newest.sh", "env -u PIP_INDEX_URL -u PIP_CONFIG_FILE -u PIP_UPLOADED_PRIOR_TO python -m pip install -q 'pip>=26'\n")
    spec = user.write(work / "made.txt", "made\naged\n")
    for limit, version in (("2025-01-31", "1.0"), ("2026-01-31", "2.0")):
        new(user, tool, work / "env", spec, "--installer", "pip", "--pre-install", newest, "--exclude-newer", limit, "--force",
            env=index_with_times | {"PIP_UPLOADED_PRIOR_TO": "2030-01-01"})
        assert python(user, work / "env", "import aged, made; print(aged.version, made.version)") == f"{version} {version}"


def test_uv_is_the_default(user, tool, work, spec, uv):
    done = new(user, tool, work / "env", spec, "--verbose", env=uv)
    assert json.loads((work / "env/containerize.json").read_text())["build"]["installer"] == "uv", done.stderr


@pytest.mark.parametrize("installer", ["pip", "uv"])
def test_settings_do_not_misdirect_the_installer(user, tool, work, spec, uv, installer):
    """By each of these, the installer would put the packages elsewhere, or nowhere."""
    settings = "".join(f"{name} = {work}/{name}\n" for name in ("target", "prefix", "root"))
    file = user.write(work / "pip.conf", f"[global]\nquiet = 1\nonly-deps = true\ndry-run = true\npython = /nonexistent/python\n[install]\nuser = true\n{settings}")
    env = {"PIP_DRY_RUN": "1", "PIP_ONLY_DEPS": "1", "PIP_TARGET": str(work / "target"), "PIP_USER": "1", "PIP_CONFIG_FILE": str(file),
           "UV_SYSTEM_PYTHON": "1", "UV_PYTHON": "/usr/bin/python3", "UV_WORKING_DIR": "/"}
    new(user, tool, work / "env", spec, "--installer", installer, env={**env, **(uv if installer == "uv" else {})})
    assert python(user, work / "env", "import six; print(six.__version__)") == "1.16.0"
    assert not any((work / name).exists() for name in ("target", "prefix", "root"))


def by_uv(user, uv, *arguments):
    user.run(f"{uv['PATH'].partition(':')[0]}/uv", *map(str, arguments), env=uv)


def test_a_project_by_which_uv_looks_elsewhere(user, tool, work, spec, uv):
    """That in the working directory."""
    user.write(work / "pyproject.toml", f'[project]\nname = "x"\nversion = "1"\n[tool.uv.pip]\ntarget = "{work}/elsewhere"\n')
    by_uv(user, uv, "pip", "install", "--python", "/usr/bin/python3", "--target", work / "elsewhere", "six==1.16.0")
    both = user.write(work / "both.txt", "six==1.16.0\npip\n")
    for requirements in (spec, both):
        done = new(user, tool, work / "env", requirements, env=uv, cwd=work, check=False)
        assert done.returncode == 1 and "these packages are missing: six\n" in done.stderr, done.stderr


@pytest.mark.parametrize("setting", ["target", "prefix"])
def test_settings_by_which_uv_looks_elsewhere(user, tool, work, spec, uv, setting):
    """Nothing is installed there, and what uv finds there is not taken for installed."""
    file = user.write(work / "uv.toml", f'[pip]\n{setting} = "{work}/elsewhere"\n')
    environment = {**uv, "UV_CONFIG_FILE": str(file)}
    new(user, tool, work / "env", spec, env=environment)
    assert python(user, work / "env", "import six; print(six.__version__)") == "1.16.0" and list((work / "elsewhere").rglob("six*")) == []
    by_uv(user, uv, "pip", "install", "--python", "/usr/bin/python3", f"--{setting}", work / "elsewhere", "six==1.16.0")
    only_marked = user.write(work / "marked.txt", "six==1.16.0 ; python_version > '3'\npip\n")
    for requirements in (spec, only_marked):
        done = new(user, tool, work / "other", requirements, env=environment, check=False)
        assert done.returncode == 1 and "these packages are missing: six\n" in done.stderr, done.stderr
        assert "uv.toml" in done.stderr and not (work / "other").exists()


def test_uv_takes_the_version_of_the_environments_python(user, tool, work, uv):
    """Not that for which a project in the working directory is locked."""
    spec = user.write(work / "marked.txt", "six==1.16.0 ; python_version < '3.20'\nidna\n")
    user.write(work / "pyproject.toml", '[project]\nname = "x"\nversion = "1"\n[tool.uv.pip]\npython-version = "3.20"\n')
    new(user, tool, work / "env", spec, env=uv, cwd=work)
    assert python(user, work / "env", "import six; print(six.__version__)") == "1.16.0"


def test_a_requirement_that_uv_is_told_to_leave_out(user, tool, work, uv):
    spec = user.write(work / "two.txt", "six==1.16.0\nPygments\n")
    overrides = user.write(work / "overrides.txt", "pygments ; sys_platform == 'never'\n")
    new(user, tool, work / "env", spec, env={**uv, "UV_OVERRIDE": str(overrides)})
    assert python(user, work / "env", "import importlib.util, six; print(importlib.util.find_spec('pygments'))") == "None"


@pytest.mark.parametrize("content, why", [("no section\n", "no section"), ("[global]\ntimeout = abc\n", "timeout")])
def test_settings_that_pip_cannot_read(user, tool, work, spec, content, why):
    file = user.write(work / "pip.conf", content)
    done = new(user, tool, work / "env", spec, "--installer", "pip", env={"PIP_CONFIG_FILE": str(file)}, check=False)
    assert done.returncode == 1 and "pip cannot read its configuration" in done.stderr and why in done.stderr, done.stderr


@pytest.mark.parametrize("setting", ["variable", "file"])
def test_checksums_are_verified_whatever_uv_is_told(user, tool, work, uv, setting):
    found = made_wheel(work, "demo")
    spec = user.write(work / "bad.txt", f"demo @ file://{found}#sha256={'0' * 64}\n")
    file = user.write(work / "uv.toml", "[pip]\nverify-hashes = false\n")
    env = {**uv, **({"UV_NO_VERIFY_HASHES": "1"} if setting == "variable" else {"UV_CONFIG_FILE": str(file)})}
    done = new(user, tool, work / "env", spec, "--installer", "uv", env=env, check=False)
    assert done.returncode == 1 and "the checksum of this package differs from that in the requirements" in done.stderr, done.stderr


# --- replacing -------------------------------------------------------------------------------------------------------


def test_force_replaces_while_the_old_one_runs(user, tool, work, env):
    prefix = user.copy(env, work / "env", work / "env")
    fresh = user.write(work / "fresh.txt", "six==1.17.0\n")
    script = "import sys; print('up', flush=True); sys.stdin.readline(); import requests, pygments; print(requests.__name__, flush=True)"
    process = user.start(f"{prefix}/bin/python", "-c", script, stdin=subprocess.PIPE)
    assert next_line(process.stdout) == "up\n"
    done = new(user, tool, prefix, fresh, check=False)
    assert done.returncode == 2 and "an installation already exists here" in done.stderr and "--force" in done.stderr
    new(user, tool, prefix, fresh, "--force")
    assert python(user, prefix, "import six; print(six.__version__)") == "1.17.0"
    assert not (prefix / "bin/pygmentize").exists()
    out, err = process.communicate("\n", timeout=60)
    assert (out, err) == ("requests\n", ""), "the running process lost its environment"
    assert len(list(prefix.glob("env*.sqfs"))) == 1
    assert [path.name for path in prefix.iterdir() if path.name.startswith(".")] == []


def test_failed_replacement_leaves_the_old_one(user, tool, work, small):
    prefix = user.copy(small, work / "env", work / "env")
    before = {path.name: path.stat().st_mtime_ns for path in prefix.rglob("*")}
    bad = user.write(work / "bad.txt", "no-such-package-anywhere-1234\n")
    assert new(user, tool, prefix, bad, "--force", check=False).returncode == 1
    assert {path.name: path.stat().st_mtime_ns for path in prefix.rglob("*")} == before
    assert python(user, prefix, "import six; print(six.__version__)") == "1.16.0"


# --- failures leave nothing ------------------------------------------------------------------------------------------


def test_unknown_package_shows_pips_reason(user, tool, work):
    spec = user.write(work / "r.txt", "no-such-package-anywhere-1234\n")
    done = new(user, tool, work / "env", spec, check=False)
    assert done.returncode == 1
    assert "pip could not resolve the requirements" in done.stderr
    assert "No matching distribution found for no-such-package-anywhere-1234" in done.stderr
    log = re.search(r"The full log is (.*)", done.stderr).group(1)
    assert "no-such-package-anywhere-1234" in Path(log).read_text()
    assert not (work / "env").exists() and staging_directories(user) == []


def test_no_network_shows_pips_reason(user, tool, work, spec):
    unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_FIND_LINKS": None, "PIP_CACHE_DIR": str(work), "PIP_NO_CACHE_DIR": "1", "PIP_CONFIG_FILE": "/dev/null"}
    done = new(user, tool, work / "env", spec, check=False, env=unreachable)
    assert done.returncode == 1 and "ERROR: " in done.stderr and not (work / "env").exists()


def test_failing_post_install(user, tool, work, quick):
    hook = user.write(work / "hook.sh", "echo the reason why\nexit 3\n")
    done = new(user, tool, work / "a/env", quick, "--post-install", str(hook), check=False)
    assert done.returncode == 1
    assert "exit code 3" in done.stderr and "the reason why" in done.stderr and str(hook) in done.stderr
    assert not (work / "a").exists() and staging_directories(user) == []


@pytest.fixture()
def tiny_disk(user, work):
    if os.getuid() != 0:
        pytest.skip("only root can mount a small filesystem")
    with mounted_in_memory(work / "disk", "size=3m,mode=1777") as disk:
        yield disk


def test_full_disk_at_the_prefix(user, tool, work, only_python, tiny_disk):
    done = new(user, tool, tiny_disk / "env", user.write(work / "python.txt", only_python), check=False)
    assert done.returncode == 1
    assert "not enough space" in done.stderr or "No space left on device" in done.stderr
    assert list(tiny_disk.iterdir()) == []


def test_full_staging_directory(user, tool, work, spec, tiny_disk):
    done = new(user, tool, work / "env", spec, "--tmpdir", str(tiny_disk), check=False)
    # ensurepip is the first to run out of space, and does not report the reason.
    assert done.returncode == 1 and f"{tiny_disk} is full. Free some space, or choose another directory with --tmpdir" in done.stderr
    assert list(tiny_disk.glob("containerize-build*")) == [] and not (work / "env").exists()


def test_second_build_at_one_prefix_is_told(user, tool, work, quick):
    hook = user.write(work / "hook.sh", f"touch $HOOK_RUNS; while ! test -e {work}/end; do sleep 0.05; done\n")
    first = user.start(
        str(tool), "new", "--prefix", f"{work}/env", "--post-install", str(hook), str(quick), env={"HOOK_RUNS": f"{work}/runs"}
    )
    try:
        eventually((work / "runs").exists)
        done = new(user, tool, work / "env", quick, check=False)
    finally:
        (work / "end").touch()  # also when the test fails, because the hook waits for it
        _, errors = first.communicate(timeout=60)
    assert done.returncode == 1 and "another build is using this prefix" in done.stderr
    assert first.returncode == 0, errors
    assert is_whole(user, work / "env")


# --- bad input -------------------------------------------------------------------------------------------------------

YAML = "name: x\nchannels: [conda-forge]\ndependencies:\n  - numpy\n"
BAD = [
    # options before SPEC, content of SPEC, part of the expected message
    ([], None, "requirements.txt: cannot read the environment file: No such file or directory"),
    ([], "", "requirements.txt: the file contains no requirement"),
    ([], "# only a comment\n\n", "the file contains no requirement"),
    (["--python", "3.9"], YAML, "requirements.txt: --python is only for pip requirements: a conda environment has its own Python"),
    ([], "@EXPLICIT\nhttps://x/y.conda\n", "requirements.txt:2: invalid package specification: 'https://x/y.conda'"),
    ([], "[project]\nname = 'x'\n", "requirements.txt: this file requires no package"),
    (["--group", "dev"], "six\n", "--group selects a part of a poetry lock file"),
    ([], "<!DOCTYPE html>\n<html>\n", "this is a web page"),
    ([], "numpy\n--frobnicate\n", "requirements.txt:2: "),
    ([], "numpy\n\n-r missing.txt\n", "missing.txt', which is included here: No such file or directory"),
    ([], "numpy\n./nowhere\n", "requirements.txt:2: there is no file or directory './nowhere'"),
    ([], "numpy=1.26\n", "requirements.txt:1: invalid requirement: 'numpy=1.26'"),
    (["--python", "9.9", "--system-site-packages"], "six\n", "python9.9 is not on PATH"),
    (["--python", "/etc/passwd"], "six\n", "this is not a Python that can be run"),
    (["--python", "/bin/true"], "six\n", "this is not a working Python 3"),
    (["--base", "frob"], "six\n", "invalid base image: 'frob'"),
    (["--compression", "zstd:99"], "six\n", "invalid compression: 'zstd:99'"),
    (["--block-size", "100K"], "six\n", "invalid block size: '100K'"),
    (["--installer", "conda"], "six\n", "unknown installer: 'conda'"),
    (["--jobs", "0"], "six\n", "--jobs"),
    (["--jobs", "many"], "six\n", "--jobs"),
    (["--tmpdir", "/nonexistent"], "six\n", "the staging directory does not exist"),
    (["--environ", "/nonexistent"], "six\n", "/nonexistent: cannot read the script for --environ"),
    (["--post-install", "/nonexistent"], "six\n", "/nonexistent: cannot read the script for --post-install"),
    (["--post-install", "/root/script"], "six\n", "/root/script: cannot resolve the path: Permission denied"),
    (["--wrapper-paths", "../../etc"], "six\n", "a wrapper path must be below the prefix"),
    (["--wrapper-paths", "no/such"], "six\n", "the environment has no such directory or program"),
    (["--frobnicate"], "six\n", "--frobnicate"),
    (["-v", "-q"], "six\n", "excludes"),
]


@pytest.mark.parametrize(("options", "content", "message"), BAD)
def test_bad_input(user, tool, work, options, content, message):
    spec = work / "requirements.txt"
    if content is not None:
        user.write(spec, content)
    done = user.run(str(tool), "new", "--prefix", str(work / "env"), *options, spec.name, cwd=work, check=False)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert done.stderr.startswith("containerize: ") or "\ncontainerize: " in done.stderr
    assert "terminate called" not in done.stderr and "Traceback" not in done.stderr
    assert not (work / "env").exists() and staging_directories(user) == []


MIB = 1 << 20
LOCK_BEGIN = '{"containerize-lock":1,"subdir":"linux-64","conda":['
LOCK_RECORD = {"name": "a", "version": "1", "build": "0", "build_number": 0, "depends": [], "subdir": "linux-64", "fn": "a.conda",
               "sha256": "a" * 64, "url": "https://x/a.conda"}
LIST_URL = "https://x/linux-64/a-1-0.conda\n"


def many(line, size):
    return line * (size // len(line))


# Functions that make texts that are at the limits of a file's size, or beyond, and take as much memory as possible.
HOSTILE_FILES = {
    "short requirements": lambda: many("a\n", 10 * MIB),
    "many requirements": lambda: many("a" * 299 + "\n", 14 * MIB) + "?",
    "many words": lambda: many("a " + many("-r x ", MIB - 100) + "\n", 15 * MIB) + "?",
    "short lines of a list": lambda: many("a=1=0\n", 14 * MIB),
    "many lines of a list": lambda: many("a=1=0\n", 290_000) + "?=1=0\n",
    "short explicit list": lambda: "@EXPLICIT\n" + many(LIST_URL, 15 * MIB),
    "long explicit list": lambda: "@EXPLICIT\n" + many(LIST_URL.replace("x", "x" * 280), 15 * MIB) + "?\n",
    "lists in a lock": lambda: LOCK_BEGIN + many("[],", 15 * MIB) + "0]}",
    "many lists in a lock": lambda: LOCK_BEGIN + many("[],", 1_000_000) + "0]}",
    "many records in a lock": lambda: LOCK_BEGIN + many(json.dumps(LOCK_RECORD) + ",", 15 * MIB) + "0]}",
    "no lines": lambda: "a" * 70 * MIB,
    "empty lines": lambda: "\n" * 15 * MIB,
}


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_a_hostile_file_does_not_fill_the_memory(user, tool, work, name):
    spec = user.write(work / "spec", HOSTILE_FILES[name]())
    process = user.start(str(tool), "new", "--offline", "--prefix", str(work / "env"), str(spec))
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 2, errors
    assert usage.ru_maxrss < 500 * 1024, f"it took {usage.ru_maxrss // 1024} MiB"


BAD_PREFIXES = [
    ("/", "an installation cannot use this directory"),
    ("{work}/a:b", "PATH cannot contain a directory with ':'"),
    ("{work}/full", "the prefix is not empty: it contains 'file'"),
    ("{work}/file", "the prefix is not a directory"),
    ("{env}/inside", "this prefix is inside another installation"),
    ("/usr/env", "/usr/env: cannot create the directory: Permission denied\nChoose a prefix that you can write to."),
    ("/proc/env", "/proc/env: no program can be started in this prefix: its filesystem is mounted noexec"),
    ("/root/env", "/root/env: cannot resolve the path: Permission denied\nChoose a path whose directories you can enter."),
    ("{work}/" + 250 * "a", "the name of this prefix is too long: it has 250 bytes, and the limit is 160"),
    ("", "--prefix is missing"),
]


@pytest.mark.parametrize(("prefix", "message"), BAD_PREFIXES)
def test_bad_prefix(user, tool, work, spec, env, prefix, message):
    (work / "full").mkdir()
    (work / "full/file").touch()
    (work / "file").touch()
    done = new(user, tool, prefix.format(work=work, env=env), spec, check=False)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr


def test_usage(user, tool):
    assert "Usage: containerize" in user.run(str(tool), "--help").stdout
    assert "Examples:" in user.run(str(tool), "new", "--help").stdout
    assert re.match(r"containerize \d+\.\d+\.\d+[ \n]", user.run(str(tool), "--version").stdout)
    for argv in (["frobnicate"], ["new"], ["run"], ["inspect", "/"], ["run", "/usr", "--", "true"]):
        done = user.run(str(tool), *argv, check=False)
        assert done.returncode == 2 and done.stderr.startswith("containerize: "), argv


def test_inspect_and_doctor(user, tool, env):
    about = json.loads(user.run(str(tool), "inspect", str(env), "--json").stdout)
    assert about["path"] == about["built_for"] == str(env) and about["moved"] is False
    assert about["build"]["python"]["version"].startswith("3.11")
    of_ours = {"_debug_exec", "_debug_shell", "containerize-rank"}
    assert about["commands"] == len([name for name in os.listdir(env / "bin") if os.access(env / "bin" / name, os.X_OK) and name not in of_ours])
    findings = json.loads(user.run(str(tool), "doctor", "--json").stdout)
    assert findings["usable"] is True
    found = {one["name"]: one for one in findings["findings"]}
    assert {"kernel", "user namespaces", "FUSE", "staging directory"} <= set(found)
    for version, feature in (((5, 8), "in one step"), ((5, 11), "overlayfs without root"), ((6, 9), "a killed server is replaced")):
        assert feature in found["kernel"]["found" if linux_is_at_least(*version) else "advice"]
    assert "Installations can be built and run" in user.run(str(tool), "doctor").stdout


@pytest.fixture()
def roots():
    """A directory that only root can enter."""
    path = Path(tempfile.mkdtemp(dir="/tmp"))
    yield path
    shutil.rmtree(path)


@pytest.mark.skipif(os.getuid() != 0, reason="only root needs no user namespace")
def test_roots_builds_stay_in_its_user_namespace(tool, roots):
    """chown works in the build, because it runs in the same user namespace as its caller."""
    def run(*words):
        done = subprocess.run(words, text=True, capture_output=True, env={"PATH": "/usr/bin:/bin", "HOME": str(roots), "CONTAINERIZE_SESSION_IDLE": "0"})
        assert done.returncode == 0, done.stderr
        return done.stdout

    (roots / "requirements.txt").write_text("six==1.16.0\n")
    (roots / "post.sh").write_text(f"readlink /proc/self/ns/user > {roots}/seen\nchown 12345 $env_root/bin/pip\n")
    run(tool, "new", "--prefix", roots / "env", "--post-install", roots / "post.sh", roots / "requirements.txt")
    assert (roots / "seen").read_text().strip() == os.readlink("/proc/self/ns/user")
    run(tool, "update", roots / "env", "--", "pip", "install", "-q", "iniconfig==2.0.0")
    assert run(roots / "env/bin/python", "-c", "import six, iniconfig; print('both')") == "both\n"


@pytest.fixture()
def closed_fuse(tmp_path):
    """Makes /dev/fuse accessible only to root, by a mount that only this test file sees, because other tests use the device at the same time."""
    if os.getuid() != 0:
        pytest.skip("only root can take /dev/fuse away")
    subprocess.run(["mount", "-t", "tmpfs", "none", str(tmp_path)], check=True)
    os.mknod(tmp_path / "fuse", stat.S_IFCHR | 0o600, os.stat("/dev/fuse").st_rdev)
    subprocess.run(["mount", "--bind", str(tmp_path / "fuse"), "/dev/fuse"], check=True)
    yield
    subprocess.run(["umount", "/dev/fuse", str(tmp_path)], check=True)


def test_doctor_and_launch_name_what_is_missing(user, tool, env, sessions, closed_fuse):
    sessions.kill_all()
    done = user.run(str(tool), "doctor", check=False)
    assert done.returncode == 1 and "chmod 666 /dev/fuse" in done.stdout
    done = user.run(f"{env}/bin/python", "-c", "pass", check=False)
    assert done.returncode == 1 and "cannot open /dev/fuse: Permission denied" in done.stderr
    assert "chmod 666 /dev/fuse" in done.stderr


def test_launch_names_the_setting_that_forbids_namespaces(user, env):
    done = user.run(*IN_A_NAMESPACE_WITHOUT_FURTHER_ONES, f"{env}/bin/python", "-c", "pass", check=False)
    assert done.returncode == 1 and "user.max_user_namespaces is 0" in done.stderr


# --- around builds ---------------------------------------------------------------------------------------------------


def test_a_command_that_is_mistyped(user, tool):
    for typed, meant in (("udpate", "did you mean update?"), ("roll-back", "did you mean rollback?"), ("frobnicate", "unknown command: frobnicate (")):
        done = user.run(str(tool), typed, "x", check=False)
        assert done.returncode == 2 and f"unknown command: {typed}" in done.stderr and meant in done.stderr
    for words, meant in ((["new", "--prefx", "x", "r.txt"], "unknown argument: --prefx; did you mean --prefix?"),
                         (["new", "--post-instal=x", "r.txt"], "did you mean --post-install or"),
                         (["new", "--frobnicate", "r.txt"], "unknown argument: --frobnicate ("),
                         (["rollback", "x", "many"], "invalid value for N: 'many' (")):
        done = user.run(str(tool), *words, check=False)
        assert done.returncode == 2 and meant in done.stderr, done.stderr


def test_old_logs_of_failed_builds_go(user, tool, work, quick):
    build = work / "build"
    build.mkdir()
    os.chown(build, user.uid, user.uid)
    fails = user.write(work / "fails.sh", "false\n")

    def fail(name):
        done = new(user, tool, work / name, quick, "--post-install", fails, "--tmpdir", build, check=False)
        return Path(done.stderr.split("The full log is ")[1].strip())

    first, second = fail("one"), fail("two")
    assert first.exists() and second.exists() and first != second
    other = user.write(build / f"containerize-{user.uid}-build-notes.txt", "mine\n")
    week_ago = time.time() - 8 * 24 * 3600
    for path in (first, other):
        os.utime(path, (week_ago, week_ago))
    new(user, tool, work / "three", quick, "--tmpdir", build)
    assert not first.exists() and second.exists() and other.exists()


def test_an_installation_is_removed_by_rm(user, tool, work, small, quick):
    """This also works while a program runs from it, and a new installation can be made at the same path."""
    prefix = user.copy(small, work / "env", work / "env")
    user.run(str(tool), "update", prefix, "--", "python", "-m", "pip", "install", "-q", "six==1.15.0")
    process = user.start(prefix / "bin/python", "-uc", "import sys; print('up'); sys.stdin.readline(); print(sys.version_info[0])", stdin=subprocess.PIPE)
    assert next_line(process.stdout) == "up\n"
    user.run("rm", "-rf", prefix)
    assert not prefix.exists()
    new(user, tool, prefix, quick)
    assert is_whole(user, prefix)
    assert process.communicate("go\n", timeout=60)[0] == "3\n"
    user.run("rm", "-rf", prefix)
    assert list(work.iterdir()) == [quick]
