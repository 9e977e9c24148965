"""Commands that change an installation, and what must hold after each of them, however it ended."""

import os
import secrets
import shutil
import time
from pathlib import Path

import pytest
from conftest import eventually
from installation import Installation

# Each attempt of a test prints its seed. With CONTAINERIZE_TEST_SEED set to it, that attempt comes first.
SEED = int(os.environ.get("CONTAINERIZE_TEST_SEED") or secrets.randbelow(1 << 40))


class Node:
    """What the test user has on this machine: processes, and files outside the test's own directory."""

    def __init__(self, user, sessions, work):
        self.user, self.sessions, self.work = user, sessions, work

    def processes(self):
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and entry.stat().st_uid == self.user.uid and (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" "))
            except OSError:  # it has just exited
                continue
        return found

    def temporary(self):
        hidden = {f"{where}/{name}" for where, directories, _ in os.walk(self.work) for name in directories if name.startswith(".containerize-")}
        logs = {path.name for path in Path("/tmp").glob("containerize-*-logs")}  # logs of failed builds, which the error messages name
        return set(os.listdir("/tmp")) - logs | hidden

    def rest(self):
        """Kills all sessions and records the temporary files that are there."""
        self.sessions.kill_all()
        self.before = self.temporary()

    def left(self, of_files=True):
        return self.processes() + (sorted(self.temporary() - self.before) if of_files else [])

    def is_clean(self, of_files=True):
        """Waits until nothing is left: after a command was killed, a separate process of it cleans up. Fails with what remains."""
        try:
            eventually(lambda: not self.left(of_files))
        except AssertionError:
            left = self.left(of_files)
            assert left == [], f"{left} is left"


class Case:
    """A command that can be killed, and what must hold afterwards."""

    env = {}
    tool = None  # the program, if it is not the one under test
    place = None  # the directory that contains everything the command changes

    def prepare(self, chance):
        """Runs before each command."""

    def check(self, all_at_once):
        """Runs after the command was killed or failed."""

    def done(self):
        """Runs after the command has succeeded."""


class New(Case):
    """A new installation at a path that does not exist or is an empty directory."""

    def __init__(self, user, tool, work, spec, program, env, in_a_directory=False):
        self.user, self.env, self.program, self.in_a_directory = user, env, program, in_a_directory
        self.installation = Installation(user, tool, work / "deep/er/env", env)
        self.argv = ["new", "--prefix", self.installation.prefix, spec]
        self.work = self.place = work

    def prepare(self, chance):
        shutil.rmtree(self.work / "deep", ignore_errors=True)
        if self.in_a_directory:
            self.user.run("mkdir", "-p", self.installation.prefix)

    def check(self, all_at_once):
        prefix = self.installation.prefix
        if (prefix / "containerize.json").exists():
            self.done()
            shutil.rmtree(self.work / "deep")
        elif self.in_a_directory:
            assert all_at_once or os.listdir(prefix) == []
        elif not all_at_once:
            assert not (self.work / "deep").exists()
        else:
            assert not prefix.exists() or os.listdir(prefix) == [], "no half of an installation"

    def done(self):
        self.user.run(self.installation.prefix / "bin" / self.program, "--version")
        self.installation.images()
        assert len(self.installation.log()) == 1


class NewByHttp(New):
    """Starts with an empty cache. What was downloaded before a kill must not be downloaded again."""

    def __init__(self, user, tool, work, spec, program, env, server):
        super().__init__(user, tool, work, spec, program, env)
        self.server, self.cache = server, Path(env["CONTAINERIZE_CACHE"])
        self.fetched, self.requests = set(), 0

    def prepare(self, chance):
        super().prepare(chance)
        shutil.rmtree(self.cache, ignore_errors=True)
        self.fetched, self.requests = set(), len(self.server.requests())

    def check(self, all_at_once):
        super().check(all_at_once)
        self.fetched = {path.name for path in self.cache.rglob("*.conda")}
        self.requests = len(self.server.requests())

    def done(self):
        super().done()
        again = [path for _, path, *_ in self.server.requests()[self.requests:] if Path(path).name in self.fetched]
        assert again == []


class Replacement(Case):
    def __init__(self, user, tool, work, specs, env):
        self.user, self.specs, self.env = user, specs, env
        self.place = work
        self.installation = Installation(user, tool, work / "env", env)
        self.installation.new(specs[0])
        self.now = 0

    def prepare(self, chance):
        self.argv = ["new", "--force", "--prefix", self.installation.prefix, self.specs[1 - self.now]]

    def content(self):
        done = self.user.run(self.installation.prefix / "bin/_debug_exec", "test", "-e", self.installation.prefix / "share/linked.txt", check=False)
        assert done.returncode in (0, 1) and done.stderr == ""
        return 1 - done.returncode

    def check(self, all_at_once):
        self.installation.images()
        self.user.run(self.installation.prefix / "bin/where")
        assert len(self.installation.log()) == 1
        self.now = self.content()
        self.prepare(None)

    def done(self):
        wanted = self.specs.index(self.argv[-1])
        self.check(False)
        assert self.now == wanted
        assert {path.name for path in self.installation.prefix.rglob("*.sqfs")} == self.installation.images(), "no image is left that no state has"


class Change(Case):
    """Commands on an installation in which a file counts the updates so far."""

    def __init__(self, user, tool, made):
        self.user = user
        prefix, backup = made
        self.backup, self.place = backup, prefix.parent
        self.installation = Installation(user, tool, prefix)
        self.restore()

    def restore(self):
        self.installation.restore(self.backup)
        self.count = 0

    def seen(self):
        assert self.installation.python("import six; print(six.__version__)") == "1.16.0"
        return self.installation.python("import os, sys; path = sys.prefix + '/count'; print(open(path).read() if os.path.exists(path) else 0)")

    def increase(self):
        return ["update", self.installation.prefix, "--", "sh", "-c", f"echo {self.count + 1} > $CONTAINERIZE_PREFIX/count"]


class Update(Change):
    def prepare(self, chance):
        if self.count >= 6:
            self.restore()
        self.argv = self.increase()

    def check(self, all_at_once):
        seen = int(self.seen())
        assert seen in (self.count, self.count + 1)
        images = self.installation.images()
        assert len(self.installation.log()) == seen + 1 == len(images)
        self.count = seen
        self.argv = self.increase()

    def done(self):
        wanted = self.count + 1
        self.check(False)
        assert self.count == wanted
        prefix = self.installation.prefix
        assert {str(path.relative_to(prefix)) for path in prefix.rglob("*.sqfs")} == self.installation.images(), "no image is left that no state has"


class Rollback(Change):
    def __init__(self, user, tool, made):
        super().__init__(user, tool, made)
        self.installation.update("--", "sh", "-c", "cd $CONTAINERIZE_PREFIX; echo 1 > count; printf '#!/bin/sh\\n' > bin/counted; chmod +x bin/counted")

    def prepare(self, chance):
        self.argv = ["rollback", self.installation.prefix, str(3 - self.installation.current())]

    def check(self, all_at_once):
        state = self.installation.current()
        assert [one["state"] for one in self.installation.log()] == [1, 2] and len(self.installation.images()) == 2
        assert int(self.seen()) == state - 1
        assert state == 1 or "counted" in self.installation.commands(), "a command too many is harmless, one too few is not"
        self.argv[-1] = str(3 - state)

    def done(self):
        wanted = int(self.argv[-1])
        self.check(False)
        assert self.installation.current() == wanted and ("counted" in self.installation.commands()) == (wanted == 2)


class Upgrade(Change):
    """By a newer version, whose launchers and sessions cannot talk to the old ones."""

    def __init__(self, user, tool, made, newer):
        super().__init__(user, tool, made)
        self.tool = newer
        self.argv = ["upgrade", self.installation.prefix]

    def prepare(self, chance):
        self.restore()

    def check(self, all_at_once):
        assert self.seen() == "0" and len(self.installation.images()) == 1
        for name in self.installation.commands():  # each command is whole, whether it is old or new
            if name.startswith("pip") or name == "_debug_exec":
                argument = "true" if name == "_debug_exec" else "--version"
                self.user.run(self.installation.prefix / "bin" / name, argument)

    def done(self):
        self.check(False)
        assert self.installation.manifest()["programs_version"] == "99.1.0"
        bin = self.installation.prefix / "bin"
        assert len({(bin / name).stat().st_ino for name in self.installation.commands() if name.startswith(("pip", "python", "_debug"))}) == 1


class Squash(Change):
    def prepare(self, chance):
        self.installation.call(*self.increase())
        self.count += 1
        self.argv = ["squash", self.installation.prefix]

    def check(self, all_at_once):
        assert int(self.seen()) == self.count
        self.installation.images()

    def done(self):
        self.check(False)
        prefix = self.installation.prefix
        assert self.installation.manifest()["layers"] == [] and len(self.installation.log()) == 1
        assert {str(path.relative_to(prefix)) for path in prefix.rglob("*.sqfs")} == self.installation.images(), "no image is left that no state has"


class Import(New):
    def __init__(self, user, tool, work, tykky):
        super().__init__(user, tool, work, "", "python", {})
        self.argv = ["import-tykky", tykky.directory, self.installation.prefix]
        self.tykky, self.digests = tykky, tykky.digests()

    def check(self, all_at_once):
        super().check(all_at_once)
        assert self.tykky.digests() == self.digests, "what is imported stays as it is"


class Dev(Change):
    def __init__(self, user, tool, made, work):
        super().__init__(user, tool, made)
        self.overlay = work / "overlay"
        self.before = self.installation.files(), self.installation.manifest()
        self.written = 0

    def dev(self, *command):
        return ["dev", self.installation.prefix, "--overlay", self.overlay, "--", *command]

    def prepare(self, chance):
        self.argv = self.dev("sh", "-c", f"echo {self.written} >> $CONTAINERIZE_PREFIX/notes; python -c 'import six, json'")

    def notes(self):
        return self.installation.call(*self.dev("sh", "-c", "cat $CONTAINERIZE_PREFIX/notes 2>/dev/null || true")).stdout.split()

    def check(self, all_at_once):
        assert (self.installation.files(), self.installation.manifest()) == self.before and self.seen() == "0"
        notes = self.notes()
        assert notes in ([str(i) for i in range(self.written)], [str(i) for i in range(self.written + 1)]), "nothing that was written is lost"
        self.written = len(notes)
        self.prepare(None)

    def done(self):
        wanted = self.written + 1
        self.check(False)
        assert self.written == wanted


class Runner:
    """Runs the commands of a case. Nothing else of the test user's may run on the machine."""

    options = ()  # additional options of the command

    def __init__(self, case, user, tool, node):
        self.case, self.user, self.tool, self.node = case, user, tool, node

    def argv(self):
        return [str(part) for part in [self.case.tool or self.tool, self.case.argv[0], *self.options, *self.case.argv[1:]]]

    def whole(self, *before):
        """Runs the command undisturbed and measures its duration."""
        started = time.monotonic()
        self.user.run(*before, *self.argv(), env=self.case.env, timeout=1200)
        self.duration = time.monotonic() - started
        self.case.done()

    def list_calls(self, names):
        """The calls of these names by the main thread, in order: each as its name and its number among the calls of that name. Calls of the
        dynamic linker are left out; its last one is set_tid_address."""
        beginning = "set_tid_address"
        trace = self.node.work / "trace"
        self.case.prepare(None)
        self.whole("strace", "-qq", "-e", f"trace={names},{beginning}", "-e", "signal=none", "-o", trace)
        called = [line.split("(")[0] for line in trace.read_text().splitlines() if "(" in line]
        numbered = [(name, called[: index + 1].count(name)) for index, name in enumerate(called)]
        return numbered[called.index(beginning) + 1:]


@pytest.fixture(scope="module")
def made(user, tool, place):
    """An installation and a backup copy of it."""
    work = user.directory(place)
    installation = Installation(user, tool, work / "env")
    installation.new(user.write(work / "requirements.txt", "six==1.16.0\n"))
    shutil.copytree(work / "env", work / "backup", symlinks=True)
    return work / "env", work / "backup"


@pytest.fixture()
def case(request, user, tool, work):
    def conda(*packages, channels=None):
        channels = channels or f"file://{request.getfixturevalue('channels')}/main"
        lines = "".join(f"  - {one}\n" for one in packages)
        return user.write(work / f"{'-'.join(packages)}.yml", f"channels:\n  - {channels}\n  - nodefaults\ndependencies:\n{lines}")

    cache = {"CONTAINERIZE_CACHE": str(work / "cache")}
    if request.param in ("new", "new_in_a_directory"):
        return New(user, tool, work, conda("where"), "where", cache, request.param == "new_in_a_directory")
    if request.param == "new_by_http":
        server = request.getfixturevalue("server")  # noqa: F811
        return NewByHttp(user, tool, work, conda("where", "linked", "active", "odd", channels=server.url("slow/0.05/main")), "where", cache, server)
    if request.param == "new_by_pip":
        return New(user, tool, work, user.write(work / "requirements.txt", "six==1.16.0\n"), "python", {})
    if request.param == "replacement":
        return Replacement(user, tool, work, [conda("where"), conda("where", "linked")], cache)
    if request.param == "import":
        return Import(user, tool, work, request.getfixturevalue("of_pip"))
    made = request.getfixturevalue("made")
    if request.param == "dev":
        return Dev(user, tool, made, work)
    if request.param == "upgrade":
        return Upgrade(user, tool, made, request.getfixturevalue("newer"))
    return {"update": Update, "rollback": Rollback, "squash": Squash}[request.param](user, tool, made)
