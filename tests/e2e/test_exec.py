"""Environments for single commands: made from packages, used again, and removed if they take too much space."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import SOURCE, eventually
from installation import staging_directories

sys.path.insert(0, str(SOURCE / "tests/lib"))
from common import next_line  # noqa: E402
from guarded_server import Guarded  # noqa: E402
from python_wheels import wheel  # noqa: E402

PASSWORD = "exec-Zq7vK5x"
PROJECTS = ("alpha", "beta")
SHOW = ("printenv", "CONDA_PREFIX")  # prints where a conda environment is


class Index(Guarded):
    """A package index that requires a login, and can keep its answers back."""

    def __init__(self, root):
        self.open = threading.Event()
        self.open.set()
        self.asked = threading.Event()
        self.pages = []  # the projects that were asked for
        super().__init__(root, {"index": ("me", PASSWORD)})

    def answer(self, request):
        self.pages.append(request.path.rstrip("/").rpartition("/")[2])
        self.asked.set()
        self.open.wait(120)
        super().answer(request)

    def environment(self):
        return {"PIP_INDEX_URL": self.url("login/index/simple", f"me:{PASSWORD}@"), "PIP_FIND_LINKS": None, "PIP_EXTRA_INDEX_URL": None}


@pytest.fixture()
def index(user, work):
    root = work / "served/simple"
    for name in PROJECTS:
        file = wheel(root / name, name, {f"{name}.py": f"name = '{name}'\n"})
        (root / name / "index.html").write_text(f'<a href="{file.name}">{file.name}</a>')
    server = Index(work / "served")
    yield server
    server.open.set()
    server.close()


class Exec:
    """The command, with a cache and a configuration of its own."""

    def __init__(self, user, tool, work, channels):
        self.user, self.tool, self.work, self.channels = user, str(tool), work, channels
        self.env = {"CONTAINERIZE_CACHE": str(work / "cache"), "CONTAINERIZE_CONFIG": str(work / "config.yaml"), "CONDA_OVERRIDE_CUDA": ""}
        self.configure("")

    def configure(self, text):
        self.user.write(self.work / "config.yaml", text)

    def words(self, *words):
        return [self.tool, "exec", *map(str, words)]

    def run(self, *words, env=None, **more):
        return self.user.run(*self.words(*words), env={**self.env, **(env or {})}, timeout=600, **more)

    def start(self, *words, env=None, **more):
        return self.user.start(*self.words(*words), env={**self.env, **(env or {})}, **more)

    def conda(self, *packages):
        """Options for an environment that is built in a moment."""
        return ["--conda", "-c", f"file://{self.channels}/main", *(word for package in packages for word in ("--with", package))]

    def where(self, *packages, options=(), **more):
        """The prefix of the environment in which a command runs."""
        done = self.run(*self.conda("where", *packages), *options, "--", *SHOW, **more)
        return Path(done.stdout.strip())

    def cache(self, *words, **more):
        return self.user.run(self.tool, "cache", *words, env=self.env, **more).stdout

    def kept(self):
        return json.loads(self.cache("list", "--json"))

    def prefixes(self):
        return [Path(one["prefix"]) for one in self.kept()]

    def directory(self):
        return self.work / "cache/exec" / str(self.user.uid)

    def names(self):
        """All that is in the directory of environments."""
        return {path.name for path in self.directory().iterdir()} - {".lock"}


@pytest.fixture()
def exec_(user, tool, work, channels):
    return Exec(user, tool, work, channels)


def test_packages_are_there_and_later_without_the_index(exec_, index):
    ask = "--with", "alpha", "--with", "beta==1.0", "--", "python", "-c", "import alpha, beta; print(alpha.name, beta.name)"
    done = exec_.run(*ask, env=index.environment())
    assert done.stdout == "alpha beta\n"
    assert "packages" in done.stderr.lower()
    index.close()
    again = exec_.run(*ask, env=index.environment())
    assert (again.stdout, again.stderr) == ("alpha beta\n", "")
    assert len(exec_.kept()) == 1
    offline = exec_.run("--offline", *ask, env=index.environment())
    assert offline.stdout == "alpha beta\n" and len(exec_.kept()) == 1


def test_the_command_gets_streams_and_gives_its_status(exec_):
    asked = exec_.conda("where")
    done = exec_.run(*asked, "--", "sh", "-c", "cat; echo to stderr >&2; exit 7", stdin=None, input="typed\n", check=False)
    assert (done.returncode, done.stdout) == (7, "typed\n") and done.stderr.endswith("to stderr\n")
    assert exec_.run(*asked, "--", "sh", "-c", "kill -TERM $$", check=False).returncode == -signal.SIGTERM
    assert exec_.run(*asked, "--", "no-such-command", check=False).returncode == 127
    arguments = exec_.run(*asked, "--", "printf", "<%s>", "[a,b]", "--help", "--", "a  b").stdout
    assert arguments == "<[a,b]><--help><--><a  b>"
    running = exec_.start(*asked, "--", "sh", "-c", "echo ready; exec sleep 600")
    assert next_line(running.stdout) == "ready\n"
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == -signal.SIGINT


def test_the_command_is_not_changed_by_the_build(exec_):
    exec_.configure("defaults:\n  umask: '077'\n")
    show = "umask; nice; ulimit -Sn; ulimit -Sc; pwd; env | sort"
    done = exec_.run(*exec_.conda("where"), "--", "sh", "-c", show, umask=0o027)
    again = exec_.run(*exec_.conda("where"), "--", "sh", "-c", show, umask=0o027)
    assert done.stdout == again.stdout and done.stdout.startswith(f"0027\n{os.nice(0)}\n")


def test_conda_packages(exec_, channels):
    prefix = exec_.where()
    assert prefix.parent.parent == exec_.directory() and exec_.prefixes() == [prefix]
    assert exec_.where() == prefix
    version = exec_.run(*exec_.conda("python=3.11", "where"), "--", "python", "-c", "import sys; print(sys.version_info[:2])").stdout
    assert version == "(3, 11)\n"
    # The channels can be those of the configuration.
    exec_.configure(f"defaults:\n  channels: ['file://{channels}/main']\n")
    assert exec_.run("--conda", "--with", "where", "--", *SHOW).stdout != f"{prefix}\n"
    assert len(exec_.kept()) == 3


def test_a_python_of_another_version(exec_, index, channels):
    exec_.configure(f"defaults:\n  channels: ['file://{channels}/main']\n")
    ask = "--with", "alpha", "--", "python", "-c", "import sys, alpha; print(sys.base_prefix == sys.prefix)"
    assert exec_.run(*ask, env=index.environment()).stdout == "False\n"
    assert exec_.run("--python", "conda:3.11", *ask, env=index.environment()).stdout == "True\n"
    assert len(exec_.kept()) == 2


def test_requirements_files(exec_, index, user, work):
    user.write(work / "more.txt", "beta\n")
    (work / "my #1 dir").mkdir()
    file = user.write(work / "my #1 dir/requirements.txt", "alpha\n")
    show = "--", "python", "-c", "import importlib.util as u; print(*(n for n in ('alpha', 'beta') if u.find_spec(n)))"
    assert exec_.run("--with-requirements", "requirements.txt", *show, env=index.environment(), cwd=file.parent).stdout == "alpha\n"
    user.write(file, "alpha\n-r ../more.txt\n")
    assert exec_.run("--with-requirements", file, *show, env=index.environment()).stdout == "alpha beta\n"
    user.write(file, "alpha\n")
    index.close()
    assert exec_.run("--with-requirements", file, *show, env=index.environment()).stdout == "alpha\n"
    assert len(exec_.kept()) == 2


def test_a_local_archive_that_changes(exec_, index, work):
    show = "--with", "./gamma-1.0-py3-none-any.whl", "--", "python", "-c", "import gamma; print(gamma.number)"
    for number in (1, 22):
        wheel(work, "gamma", {"gamma.py": f"number = {number}\n"})
        assert exec_.run(*show, env=index.environment(), cwd=work).stdout == f"{number}\n"


def test_refresh_builds_anew(exec_):
    first = exec_.where()
    running = exec_.start(*exec_.conda("where"), "--", "sh", "-c", "echo ready; read line; printenv CONDA_PREFIX", stdin=-1)
    assert next_line(running.stdout) == "ready\n"
    second = exec_.where(options=["--refresh"])
    assert second != first and exec_.where() == second
    assert set(exec_.prefixes()) == {first, second}  # the first one is in use
    assert running.communicate("go on\n")[0] == f"{first}\n" and running.returncode == 0
    third = exec_.where(options=["--refresh"])
    assert exec_.prefixes() == [third] and exec_.names() == {third.parent.name}


def test_the_least_recently_used_one_makes_room(exec_):
    first, second = exec_.where(), exec_.where("odd")
    size = max(one["bytes"] for one in exec_.kept())
    exec_.configure(f"defaults:\n  exec_limit: {2 * size + size // 2}\n")  # room for two
    assert exec_.where() == first
    third = exec_.where("twins")
    assert set(exec_.prefixes()) == {first, third}
    assert exec_.names() == {first.parent.name, third.parent.name}
    assert exec_.where() == first
    assert exec_.where("odd") != second


def test_one_in_use_is_not_removed(exec_):
    running = exec_.start(*exec_.conda("where"), "--", "sh", "-c", "echo ready; read line; exec printenv CONDA_PREFIX", stdin=-1)
    assert next_line(running.stdout) == "ready\n"
    exec_.configure("defaults:\n  exec_limit: 1\n")
    (first,) = exec_.prefixes()
    second = exec_.where("odd")
    assert set(exec_.prefixes()) == {first, second}
    assert {one["prefix"]: one["in_use"] for one in exec_.kept()} == {str(first): True, str(second): False}
    assert "Kept 1 environment in use" in exec_.cache("clean", "--all")
    assert exec_.prefixes() == [first]
    assert running.communicate("go on\n")[0] == f"{first}\n" and running.returncode == 0
    third = exec_.where("twins")
    assert exec_.prefixes() == [third]


def test_what_a_command_leaves_in_the_background_uses_it_too(exec_, work):
    # The background process inherits no stream, and ends when the file is there.
    script = f"(until [ -e {work}/end ]; do sleep 0.1; done; printenv CONDA_PREFIX > {work}/written) </dev/null >/dev/null 2>&1 &"
    exec_.run(*exec_.conda("where"), "--", "sh", "-c", script)
    exec_.configure("defaults:\n  exec_limit: 1\n")
    (first,) = exec_.prefixes()
    exec_.where("odd")
    assert first in exec_.prefixes()
    exec_.user.write(work / "end", "")
    eventually(lambda: (work / "written").exists() and (work / "written").read_text() == f"{first}\n")


def test_two_at_once_build_once(exec_, index):
    ask = "--with", "alpha", "--", "python", "-c", "import alpha, sys; print(sys.prefix)"
    index.open.clear()
    one = exec_.start(*ask, env=index.environment())
    assert index.asked.wait(120)
    other = exec_.start(*ask, env=index.environment())
    assert next_line(other.stderr) == "Waiting for another process that builds the same environment\n"
    index.open.set()
    answers = [process.communicate(timeout=300)[0] for process in (one, other)]
    assert answers[0] == answers[1] == f"{exec_.prefixes()[0]}\n"
    assert index.pages.count("alpha") == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_build_leaves_nothing(exec_, index, user, number):
    ask = "--with", "alpha", "--", "python", "-c", "import alpha; print(alpha.name)"
    index.open.clear()
    build = exec_.start(*ask, env=index.environment())
    assert index.asked.wait(120)
    assert exec_.kept() == [] and len(exec_.names()) == 1
    build.send_signal(number)
    status = build.wait(120)
    assert status == (-number if number == signal.SIGKILL else 128 + number)
    eventually(lambda: exec_.names() == set() and staging_directories(user) == [])
    assert build.stdout.read() == ""
    index.open.set()
    assert exec_.run(*ask, env=index.environment()).stdout == "alpha\n"


def test_what_is_left_of_a_killed_clean_up_goes_later(exec_, user):
    prefix = exec_.where()
    (prefix / "containerize.json").unlink()  # as before a build has ended
    user.run("mkdir", exec_.directory() / f".removed-{prefix.parent.name}", exec_.directory() / "other")
    again = exec_.where()
    assert again != prefix and exec_.names() == {again.parent.name, "other"}


def test_usage(exec_, index, user, work):
    def refused(*words, env=None):
        done = exec_.run(*words, check=False, env=env)
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        return done.stderr

    program = "--", "true"
    assert "no package is given" in refused(*program)
    assert "no command is given" in refused("--with", "alpha")
    assert "unknown argument: /some/prefix; give a command to run after --" in refused("/some/prefix", "--with", "alpha", *program)
    assert "containerize run" in refused("--python", "3.12", *program)
    assert "--channel requires --conda" in refused("-c", "x", "--with", "alpha", *program)
    assert "--with-requirements excludes --conda" in refused("--conda", "--with-requirements", "x", *program)
    assert "--python cannot be combined with --conda" in refused("--conda", "--with", "where", "--python", "3.12", *program)
    assert "cannot read the requirements: there is no such file" in refused("--with-requirements", work / "missing.txt", *program)
    assert "--with takes a package, and this is a file" in refused("--with", user.write(work / "list.txt", "alpha\n"), *program)
    assert "the path of the requirements has a line break" in refused("--with-requirements", user.write(work / "a\nb.txt", "alpha\n"), *program)
    assert "--with: this is no package: '-r x'" in refused("--with=-r x", *program)
    assert "--with: this is no package: 'alpha\\'" in refused("--with", "alpha\\", "--with", "beta", *program)
    exec_.configure("defaults:\n  exec_limit: 10 apples\n")
    assert f"{work}/config.yaml:2: `exec_limit`: invalid size: '10 apples'" in refused("--with", "alpha", *program)
    exec_.configure("")
    # The same messages as of `new`.
    spec = user.write(work / "requirements.txt", "alpha=1\n")
    by_new = exec_.user.run(exec_.tool, "new", "--prefix", work / "env", spec, env=exec_.env, check=False).stderr
    assert refused("--with", "alpha=1", *program) == by_new.replace(f"{spec}:1", "--with")
    spec = user.write(work / "environment.yml", "dependencies:\n- 'where >>1'\n")
    by_new = exec_.user.run(exec_.tool, "new", "--prefix", work / "env", spec, env=exec_.env, check=False).stderr
    assert by_new.splitlines()[0].partition("yml:2")[2] in refused("--conda", "--with", "where >>1", *program)
    assert not exec_.directory().exists()


def test_a_failed_build_leaves_nothing(exec_, index, user):
    done = exec_.run("--with", "no-such-project", "--", "true", env=index.environment(), check=False)
    assert (done.returncode, done.stdout) == (1, "") and "no-such-project" in done.stderr
    done = exec_.run(*exec_.conda("no-such-package"), "--", "true", check=False)
    assert (done.returncode, done.stdout) == (2, "") and "no-such-package" in done.stderr
    assert exec_.names() == set() and staging_directories(user) == []


def test_the_cache_shows_and_removes_them(exec_, work):
    assert exec_.cache("list") == ""
    start = time.time()
    first = exec_.where("odd")
    second = exec_.where()
    channel = f"file://{exec_.channels}/main"
    listed = exec_.kept()
    assert [one["packages"] for one in listed] == [["-c", channel, "where"], ["-c", channel, "where", "odd"]]
    assert [one["prefix"] for one in listed] == [str(second), str(first)]
    assert all(one["last_use"] >= time.strftime("%FT%TZ", time.gmtime(start)) and not one["in_use"] for one in listed)
    lines = exec_.cache("list").splitlines()
    assert len(lines) == 2 and lines[1].endswith(f"-c {channel} where odd")
    info = json.loads(exec_.cache("info", "--json"))["environments"]
    assert info == {"number": 2, "bytes": sum(one["bytes"] for one in listed)}
    assert " in 2 environments" in exec_.cache("info")
    os.utime(first.parent / "lock", (start - 40 * 86400,) * 2)
    assert "Removed 1 environment of `containerize exec`" in exec_.cache("clean")
    assert exec_.prefixes() == [second]
    assert "Removed 1 environment of `containerize exec`" in exec_.cache("clean", "--all")
    assert exec_.names() == set()


def test_another_directory(exec_, work, user):
    exec_.configure(f"defaults:\n  exec_environments: {work}/elsewhere/$KIND\n")
    kind = {"KIND": "exec"}
    prefix = exec_.where(env=kind)
    assert prefix.parent.parent == work / "elsewhere/exec"
    assert (work / "elsewhere/exec").stat().st_mode & 0o777 == 0o700
    (work / "elsewhere/exec").chmod(0o755)
    done = exec_.run(*exec_.conda("where"), "--", "where", env=kind, check=False)
    assert done.returncode == 2 and "other users can access it" in done.stderr and "exec_environments" in done.stderr


def test_logins_reach_no_file(exec_, index, work, user):
    address = index.url("login/index/simple/beta/beta-1.0-py3-none-any.whl", f"me:{PASSWORD}@")
    done = exec_.run("--with", "alpha", "--with", f"beta @ {address}", "-v", "--", "python", "-c", "import alpha, beta", env=index.environment())
    assert "login/index" in index.given
    shown = done.stdout + done.stderr + exec_.cache("list") + exec_.cache("list", "--json")
    assert PASSWORD not in shown and "beta @ http://****@127.0.0.1" in shown
    for file in (work / "cache").rglob("*"):
        assert not file.is_file() or PASSWORD.encode() not in file.read_bytes(), file
    # Another login gives the same environment.
    index.close()
    other = index.url("login/index/simple", "me:changed@")
    exec_.run("--with", "alpha", "--with", f"beta @ {address.replace(PASSWORD, 'changed')}", "--", "true", env={**index.environment(), "PIP_INDEX_URL": other})
    assert staging_directories(user) == []
