"""Faults of the environment: full disks, exhausted quotas, read errors, and limits on files and memory. Each must give one clear
message and lose nothing, and commands that follow must work."""

import os
import random
import re
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from changes import SEED, Node, Runner, case, made  # noqa: F401: the last two are fixtures
from conftest import BUILD, eventually

FAULTS = int(os.environ.get("CONTAINERIZE_TEST_FAULTS", "12"))
WRITING = "write,pwrite64,mkdir,mkdirat,link,linkat,symlink,symlinkat,rename,renameat,renameat2,ftruncate,fsync,copy_file_range"
READING = "read,pread64,getdents64,fsync,rename"
# Each error, with the system calls that are made to fail with it.
KINDS = {"ENOSPC": WRITING, "EDQUOT": WRITING, "EIO": READING, "ENOMEM": "clone3,unshare,mount,socketpair,openat", "EMFILE": "socketpair,pipe2,dup"}



def one_message(stderr, *words):
    """Checks that there is exactly one message of ours, that it contains one of `words`, and that nothing crashed."""
    assert len(re.findall("^containerize: ", stderr, re.MULTILINE)) == 1, stderr
    assert "terminate called" not in stderr and "this is a bug" not in stderr and "Traceback" not in stderr, stderr
    assert not words or any(word in stderr for word in words), stderr


def attempts(count):
    """Yields a random number generator for each attempt, with a seed that is printed and can be given again."""
    for attempt in range(max(1, count)):
        seed = SEED + attempt
        print(f"CONTAINERIZE_TEST_SEED={seed}:", flush=True)
        yield random.Random(seed)


class Breaker(Runner):
    def fail(self, kind, chance):
        """Runs the command and makes one system call of its main thread fail. Returns whether the command has made that call, too."""
        name, count = chance.choice(self.calls[kind])
        print(f"  {name} {count} gives {kind}", flush=True)
        trace = self.node.work / "trace"
        done = self.run("strace", "-qq", "-o", trace, "-e", f"trace={name}", "-e", f"inject={name}:error={kind}:when={count}")
        return done, "(INJECTED)" in trace.read_text()

    def run(self, *before):
        return self.user.run(*before, *self.argv(), env=self.case.env, check=False, timeout=600)

    def judge(self, done, *words):
        """Checks that the command did all or nothing and said why, and that it works when it is repeated."""
        print(done.returncode, done.stderr)
        self.node.is_clean()
        if done.returncode == 0:
            if "The next change removes them." in done.stderr:
                self.case.installation.update("--", "true")
            self.case.done()
            self.case.prepare(None)
        else:
            assert done.returncode in (1, 2)
            one_message(done.stderr, *words)
            self.case.check(False)
        self.node.sessions.kill_all()
        self.whole()


@pytest.fixture()
def breaker(case, user, tool, sessions, work):  # noqa: F811
    return Breaker(case, user, tool, Node(user, sessions, work))


COMMANDS = ["new", "new_in_a_directory", "replacement", "update", "rollback", "squash"]


@pytest.mark.parametrize("case", COMMANDS, indirect=True)
def test_a_call_that_fails(breaker):
    calls = breaker.list_calls(",".join(KINDS.values()))
    breaker.calls = {kind: [call for call in calls if call[0] in names.split(",")] for kind, names in KINDS.items()}
    wanted = max(1, FAULTS // len(COMMANDS))
    failed = 0
    for chance in attempts(wanted + 10):  # a few may miss, because the number of calls varies
        breaker.case.prepare(chance)
        breaker.node.rest()
        done, happened = breaker.fail(chance.choice(list(KINDS)), chance)
        breaker.judge(done)
        failed += happened
        if not happened:
            print("  there was no such call", flush=True)
            assert done.returncode == 0
        if failed == wanted:
            return
    pytest.fail(f"{failed} calls were made to fail, not {wanted}")


@pytest.mark.parametrize("case", ["new", "update", "squash"], indirect=True)
def test_few_files_and_little_memory(breaker):
    for chance in attempts(FAULTS // 6):
        breaker.case.prepare(chance)
        breaker.node.rest()
        # With less memory, the dynamic linker cannot load the libraries and says so.
        limit = chance.choice([f"--nofile={chance.randrange(8, 40)}", f"--as={chance.randrange(66, 400) << 20}"])
        print(f"  {limit}", flush=True)
        breaker.judge(breaker.run("prlimit", f"{limit}:{limit.partition('=')[2]}"))


class SmallDisk:
    """Puts a directory on a small filesystem of its own, which can be filled."""

    def __init__(self, directory):
        self.directory, self.aside = directory, directory.with_name(f"{directory.name}-aside")

    def __enter__(self):
        self.directory.rename(self.aside)
        self.directory.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128m", "none", self.directory], check=True)
        subprocess.run(["cp", "--archive", f"{self.aside}/.", self.directory], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", self.directory], check=True)
        self.directory.rmdir()
        self.aside.rename(self.directory)

    def fill(self, but):
        space = os.statvfs(self.directory)
        with open(self.directory / "filler", "wb") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, max(4096, space.f_bavail * space.f_bsize - but))
            except OSError:  # the command used the space first
                pass

    def empty(self):
        (self.directory / "filler").unlink(missing_ok=True)


@pytest.fixture()
def only_root():
    if os.getuid() != 0:
        pytest.skip("only root can mount a small filesystem")


FULL = ("No space left on device", "not enough space", "is full")


def fill_at_random_moments(breaker, disk):
    breaker.case.prepare(None)
    breaker.whole()
    for chance in attempts(FAULTS // 6):
        breaker.case.prepare(chance)
        breaker.node.rest()
        moment, room = chance.choice([0, chance.uniform(0, breaker.duration)]), chance.randrange(0, 12 << 20)
        print(f"  {room} bytes are left after {moment:.3f} of {breaker.duration:.3f} s", flush=True)
        ended = threading.Event()
        with ThreadPoolExecutor() as pool:
            filling = pool.submit(lambda: ended.wait(moment) or disk.fill(room))
            try:
                done = breaker.run()
            finally:
                ended.set()
        filling.result()  # fails if filling the disk has
        disk.empty()
        breaker.judge(done, *FULL)


@pytest.mark.parametrize("case", COMMANDS, indirect=True)
def test_a_disk_that_fills(breaker, only_root, sessions):
    sessions.kill_all()
    with SmallDisk(breaker.case.place) as disk:
        fill_at_random_moments(breaker, disk)
        sessions.kill_all()


@pytest.mark.parametrize("case", ["new", "update", "squash"], indirect=True)
def test_a_disk_for_temporary_files_that_fills(breaker, only_root, user, work):
    place = user.directory(work)
    with SmallDisk(place) as disk:
        breaker.options = ["--tmpdir", place]
        fill_at_random_moments(breaker, disk)


def launch(user, prefix, *before, env=None):
    return user.run(*before, prefix / "bin/python", "-c", "import six; print(six.__version__)", check=False, env=env)


def test_launches_with_few_files_and_little_memory(user, small, sessions):
    """The session that such a launch starts must also serve other launches."""
    for chance in attempts(FAULTS):
        sessions.kill_all()
        limit = chance.choice([f"--nofile={chance.randrange(4, 24)}", f"--as={chance.randrange(8, 200) << 20}"])
        print(f"  {limit}", flush=True)
        done = launch(user, small, "prlimit", f"{limit}:{limit.partition('=')[2]}")
        print(done.returncode, done.stderr)
        assert done.stdout == "1.16.0\n" if done.returncode == 0 else done.stderr, "without a word"
        assert "terminate called" not in done.stderr
        assert (launch(user, small).stdout, launch(user, small).stderr) == ("1.16.0\n", "")


def test_launches_while_the_sessions_directory_is_full(user, small, sessions, work, only_root):
    place = user.directory(work)
    place.chmod(0o700)
    with SmallDisk(place) as disk:
        for chance in attempts(FAULTS // 3):
            sessions.kill_all()
            room = chance.choice([0, 4096, 8192, 12288, 16384, 65536])
            disk.fill(room)
            done = launch(user, small, env={"XDG_RUNTIME_DIR": str(place)})
            print(room, done.returncode, done.stderr)
            if done.returncode == 0:
                assert done.stdout == "1.16.0\n"
            else:
                one_message(done.stderr, *FULL)
            disk.empty()
            again = launch(user, small, env={"XDG_RUNTIME_DIR": str(place)})
            assert (again.stdout, again.stderr) == ("1.16.0\n", "")
        sessions.kill_all()


# --- images that cannot be read --------------------------------------------------------------------------------------


class BadFilesystem:
    """Shows a directory through a filesystem whose reads of images fail as requested."""

    def __init__(self, directory, mounted, faults):
        self.directory, self.mounted, self.faults = directory, mounted, faults
        mounted.mkdir()
        self.server = subprocess.Popen([BUILD / "tests/slow_filesystem", directory, mounted, "0", faults])
        eventually(lambda: os.path.ismount(mounted))

    def fail(self, kind, each, *first_and_last):
        new = self.faults.with_suffix(".new")
        new.write_text(" ".join(map(str, [kind, each, *first_and_last])))
        new.rename(self.faults)

    def heal(self):
        self.faults.unlink(missing_ok=True)

    def stop(self):
        subprocess.run(["umount", "--lazy", self.mounted], check=True)
        self.server.wait(60)


@pytest.fixture()
def bad(user, work, small, sessions, only_root):
    """An installation on such a filesystem, with no session yet."""
    directory = user.directory(work)
    user.copy(small, directory / "env", work / "bad/env")
    sessions.kill_all()
    filesystem = BadFilesystem(directory, work / "bad", work / "faults")
    filesystem.prefix = work / "bad/env"
    yield filesystem
    filesystem.heal()
    sessions.kill_all()
    filesystem.stop()


NOT_AHEAD = {"CONTAINERIZE_PREFETCH": "off"}  # otherwise it would have been read before it starts to fail
# Reads all files, retries on EIO, and prints their digest and the number of failures.
STUBBORN = """
import errno, hashlib, os, sys
digest, failures = hashlib.sha256(), 0
def insist(act):
    global failures
    for _ in range(1000):
        try:
            return act()
        except OSError as error:
            assert error.errno == errno.EIO, error
            failures += 1
    raise AssertionError("it fails for ever")
def read(path):
    with open(path, "rb") as file:
        return file.read()
pending = [sys.argv[1]]
while pending:
    directory = pending.pop()
    for name in sorted(insist(lambda: os.listdir(directory))):
        path = os.path.join(directory, name)
        if insist(lambda: os.path.islink(path)): continue
        if insist(lambda: os.path.isdir(path)): pending.append(path)
        else: digest.update(insist(lambda: read(path)))
print(digest.hexdigest(), failures)
"""


def read_all(user, prefix, interpreter=None):
    done = user.run(interpreter or prefix / "bin/_debug_exec", *([] if interpreter else ["/usr/bin/python3"]), "-c", STUBBORN, prefix / "lib", timeout=600)
    return done.stdout.split()


@pytest.mark.parametrize(("kind", "each"), [("eio-except", 3), ("short", 1)])
def test_reads_that_fail_now_and_then(user, small, sessions, bad, kind, each):
    """A failing read is an error for the program, and no failure is cached."""
    expected, none = read_all(user, small)
    assert none == "0"
    sessions.kill_all()
    user.run(bad.prefix / "bin/_debug_exec", "true", env=NOT_AHEAD)
    servers = sessions.servers()
    bad.fail(kind, each)
    digest, failures = read_all(user, bad.prefix)
    assert digest == expected and (int(failures) > 0) == (kind == "eio-except")
    assert sessions.servers() == servers, "the server is the same"
    bad.heal()
    assert read_all(user, bad.prefix) == [expected, "0"]


def test_an_image_that_cannot_be_read_for_a_while(user, sessions, bad):
    user.run(bad.prefix / "bin/_debug_exec", "true", env=NOT_AHEAD)
    servers = sessions.servers()
    bad.fail("eio", 1)
    done = launch(user, bad.prefix)
    assert done.returncode != 0 and "Input/output error" in done.stderr and "1.16.0" not in done.stdout
    bad.heal()
    assert (launch(user, bad.prefix).stdout, sessions.servers()) == ("1.16.0\n", servers)


@pytest.mark.parametrize("each", [1, 2, 3])
def test_a_session_that_cannot_read_the_image(user, sessions, bad, each):
    bad.fail("eio", each)
    done = launch(user, bad.prefix)
    print(done.returncode, done.stderr)
    if each == 1 or done.returncode != 0:
        assert done.returncode == 1 and "Input/output error" in done.stderr and "new --force" not in done.stderr, "it need not be built again"
    else:
        assert (done.stdout, done.stderr) == ("1.16.0\n", "")
    bad.heal()
    assert launch(user, bad.prefix).stdout == "1.16.0\n"


def test_what_cannot_be_read_is_not_copied(user, sessions, bad):
    """Nothing of the copy remains, and the session serves the image itself."""
    middle = (bad.prefix / "env.sqfs").stat().st_size // 2
    bad.fail("eio", 1, middle, middle)
    done = launch(user, bad.prefix, env={"CONTAINERIZE_STAGE": "local"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "1.16.0\n", ""), "programs do not need this part of the image"
    (log,) = sessions.state.glob("v*-*/log")
    assert re.search("cannot copy the image to this node: .*Input/output error", log.read_text()), log.read_text()
    (server,) = sessions.servers()
    opened = [os.readlink(file) for file in Path(f"/proc/{server}/fd").iterdir()]
    assert str(bad.prefix / "env.sqfs") in opened and not [name for name in opened if name.startswith("/tmp/") and name.endswith(" (deleted)")]
    assert list(Path("/tmp").glob("containerize-image*")) == []
    bad.heal()
    assert launch(user, bad.prefix, env={"CONTAINERIZE_STAGE": "local"}).stdout == "1.16.0\n"


def hang_at_tables(bad):
    """The header of the image, which a session checks first, can be read."""
    size = (bad.prefix / "env.sqfs").stat().st_size
    bad.fail("hang", 1, size // 2, size)


def test_tables_that_hang_keep_nobody_else_from_starting_a_session(user, small, sessions, bad):
    hang_at_tables(bad)
    first = user.start(bad.prefix / "bin/python", "-c", "print('late')")
    eventually(sessions.servers)
    assert user.run(small / "bin/python", "-c", "print('up')", timeout=100).stdout == "up\n"
    assert first.poll() is None
    bad.heal()
    assert first.communicate(timeout=60) == ("late\n", "")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_session_that_is_killed_while_tables_hang_holds_up_nobody(user, small, sessions, bad, number):
    hang_at_tables(bad)
    first = user.start(bad.prefix / "bin/python", "-c", "print('late')")
    eventually(sessions.servers)
    # As in the hint of the message that a session does not answer.
    for pid in sessions.processes() if number == signal.SIGTERM else sessions.supervisors():
        with suppress(ProcessLookupError):
            os.kill(pid, number)
    assert user.run(small / "bin/python", "-c", "print('up')", timeout=100).stdout == "up\n"
    first.kill()
    first.communicate(timeout=60)
    bad.heal()


def test_tables_that_hang_hold_up_no_session(user, small, sessions, bad, work):
    other = user.copy(small, work / "other", work / "other")
    user.run(small / "bin/python", "-c", "")
    (log,) = sessions.state.glob("v*-*/log")
    hang_at_tables(bad)
    first = user.start(bad.prefix / "bin/python", "-c", "print('late')")
    eventually(lambda: len(sessions.servers()) > 1)
    assert user.run(other / "bin/python", "-c", "print('up')").stdout == "up\n"
    assert f"mounted {bad.prefix}" not in log.read_text(), "it waits in a process of its own"
    assert first.poll() is None
    bad.heal()
    assert first.communicate(timeout=60) == ("late\n", "")
    assert len(sessions.supervisors()) == 1
