"""There is one session per user and node: the first launch starts it, it is replaced when it was killed, and it ends when it is idle."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import HangingImage, eventually, linux_is_at_least, namespace, next_line, resend_is_possible
from installation import mounted_in_memory

HASH_TREE = """
import hashlib, os, sys
digest = hashlib.sha256()
for directory, directories, files in os.walk(sys.argv[1]):
    directories.sort()
    for name in sorted(files):
        path = os.path.join(directory, name)
        digest.update(os.path.relpath(path, sys.argv[1]).encode())
        if not os.path.islink(path):
            digest.update(open(path, "rb").read())
print(digest.hexdigest())
"""


@pytest.fixture(autouse=True)
def no_session_before(sessions):
    sessions.kill_all()


def assert_64_at_once_say_up(launch):
    ready = threading.Barrier(64, timeout=60)
    results = []

    def start():
        ready.wait()
        results.append(launch())

    threads = [threading.Thread(target=start) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=400)  # longer than the limit of each program
    assert [(done.returncode, done.stdout, done.stderr) for done in results] == [(0, "up\n", "")] * 64


def test_64_cold_starts_at_once(user, env, sessions):
    assert_64_at_once_say_up(lambda: user.run(f"{env}/bin/python", "-c", "import json; print('up')", check=False))
    assert len(sessions.supervisors()) == 1
    assert len(sessions.servers()) == 1
    log = next(sessions.state.glob("v*-*/log")).read_text()
    assert log.count("started with") == 1


@pytest.mark.skipif(not resend_is_possible(), reason="a killed server can be replaced from Linux 6.9 on")
def test_server_killed_twenty_times_during_parallel_reads(user, env, sessions):
    python = f"{env}/bin/python"
    expected = user.run(python, "-c", HASH_TREE, f"{env}/lib").stdout
    sessions.kill_all()
    # So slow that the readers need longer than all kills.
    user.run(python, "-c", "pass", env={"CONTAINERIZE_DEBUG_READ_DELAY": "100000"})
    readers = [user.start(python, "-c", "print('begun', flush=True)\n" + HASH_TREE, f"{env}/lib") for _ in range(4)]
    for reader in readers:
        assert next_line(reader.stdout) == "begun\n"
    killed = []

    def serving():
        """Servers give themselves this name when they begin to answer requests."""
        return [pid for pid in sessions.servers() if pid not in killed and Path(f"/proc/{pid}/comm").read_text() == "containerize-fs\n"]

    while len(killed) < 20:
        eventually(serving)
        killed += serving()
        os.kill(killed[-1], signal.SIGKILL)
    assert any(reader.poll() is None for reader in readers), "nothing was read during the last kills"
    for reader in readers:
        out, err = reader.communicate(timeout=120)
        assert (out, err, reader.returncode) == (expected, "", 0)
    (log,) = sessions.state.glob("v*-*/log")
    eventually(lambda: log.read_text().count("died of signal 9") == 20)
    assert user.run(python, "-c", "import numpy; print(1)").stdout == "1\n"


def test_an_image_that_no_server_can_open_any_more_is_given_up(user, env, small, sessions, work):
    """The session continues for other installations."""
    damaged = user.copy(env, work / "damaged", work / "damaged")
    user.run(f"{small}/bin/python", "-c", "pass")
    other = sessions.servers()
    # Not an import: that takes a directory for a package if it cannot read the files in it.
    reader = user.start(f"{damaged}/bin/python", "-c", "import sysconfig; print('up', flush=True); input(); open(sysconfig.get_path('purelib') + '/numpy/version.py')",
                        stdin=subprocess.PIPE)
    assert next_line(reader.stdout) == "up\n"
    with open(damaged / "env.sqfs", "r+b") as image:
        image.truncate(1000)
    (server,) = set(sessions.servers()) - set(other)
    os.kill(server, signal.SIGKILL)
    out, err = reader.communicate("\n", timeout=60)
    assert reader.returncode != 0, (out, err)
    log = next(sessions.state.glob("v*-*/log"))
    eventually(lambda: "the server of an image cannot continue" in log.read_text())
    assert f"the server of {damaged} died" in log.read_text()
    eventually(lambda: sessions.servers() == other)
    assert user.run(f"{small}/bin/python", "-c", "print(4)").stdout == "4\n"


def test_tree_is_what_was_packed(user, env, work):
    subprocess.run(["unsquashfs", "-q", "-n", "-d", str(work / "tree"), str(env / "env.sqfs")], check=True)
    unpacked = user.run("/usr/bin/python3", "-c", HASH_TREE, str(work / "tree/lib")).stdout
    assert user.run(f"{env}/bin/python", "-c", HASH_TREE, f"{env}/lib").stdout == unpacked


@pytest.mark.parametrize("whom", ["supervisors", "servers", "processes"])
def test_killed_while_idle(user, env, sessions, whom):
    user.run(f"{env}/bin/python", "-c", "pass")
    found = list(getattr(sessions, whom)())
    assert found
    for pid in found:
        with suppress(ProcessLookupError):  # some end when another one was killed
            os.kill(pid, signal.SIGKILL)
    assert user.run(f"{env}/bin/python", "-c", "import numpy; print(2)").stdout == "2\n"


def test_server_killed_when_a_launch_has_found_its_session(user, env, sessions, work):
    program = f"{env}/bin/python"
    user.run(program, "-c", "pass")
    # Inside, the launcher examines the program before it executes it.
    slow = user.start("strace", "-qq", "-f", "-o", work / "trace", "-P", program,
                      "-e", "inject=newfstatat:delay_enter=2000000", program, "-c", "import numpy; print(numpy.ones(3).sum())")
    supervisor = sessions.supervisors()[0]
    children = Path(f"/proc/{slow.pid}/task/{slow.pid}/children")
    eventually(lambda: any(namespace(int(pid)) == namespace(supervisor) for pid in children.read_text().split()))
    os.kill(sessions.servers()[0], signal.SIGKILL)
    (log,) = sessions.state.glob("v*-*/log")
    eventually(lambda: "died of signal 9" in log.read_text())
    assert slow.communicate(timeout=60) == ("3.0\n", "")


def test_server_killed_under_a_running_process(user, env, tool, sessions, work):
    """Where the kernel cannot send requests again, the image is mounted again: at both paths of a moved installation."""
    first = work / "first"
    moved = user.copy(env, work / "moved", first)
    process = user.start(f"{moved}/bin/python", "-c", f"""
import importlib, os
for name in ["json", "sqlite3", "numpy"]:
    print("next", flush=True)
    input()
    importlib.import_module(name)
    print(*(os.path.exists(path + "/bin/activate") for path in ["{moved}", "{first}"]), flush=True)
""", stdin=subprocess.PIPE)
    for _ in range(3):
        assert next_line(process.stdout) == "next\n", process.stderr.read()
        (server,) = sessions.servers()
        os.kill(server, signal.SIGKILL)
        eventually(lambda: sessions.servers() not in ([], [server]))
        user.run(tool, "stats", moved)  # answered when the supervisor has done all else
        process.stdin.write("\n")
        process.stdin.flush()
        assert next_line(process.stdout) == "True True\n"
    assert process.communicate(timeout=60) == ("", "") and process.returncode == 0
    assert user.run(f"{moved}/bin/python", "-c", "print(4)").stdout == "4\n"
    assert len(sessions.supervisors()) == 1


def test_server_killed_while_a_name_is_looked_up(user, env, small, sessions):
    """The kernel then holds a lock of the directory, which a mount over it needs."""
    process = user.start(f"{env}/bin/python", "-c", f"import os; print('up', flush=True); input(); os.path.exists('{env}/no-such-name')",
                         stdin=subprocess.PIPE)
    assert next_line(process.stdout) == "up\n"
    (server,) = sessions.servers()
    supervisors = sessions.supervisors()
    os.kill(server, signal.SIGSTOP)
    eventually(lambda: all(thread.read_text().rpartition(")")[2].split()[0] == "T" for thread in Path(f"/proc/{server}/task").glob("*/stat")))
    process.stdin.write("\n")
    process.stdin.flush()
    eventually(lambda: Path(f"/proc/{process.pid}/wchan").read_text() == "request_wait_answer")
    os.kill(server, signal.SIGKILL)
    for prefix in (small, env):
        assert user.run(f"{prefix}/bin/python", "-c", "print(3)", timeout=60).stdout == "3\n"
    assert process.communicate(timeout=60) == ("", "") and process.returncode == 0
    assert sessions.supervisors() == supervisors


def test_server_killed_when_only_a_nested_namespace_has_its_mount(user, env, sessions):
    inside = f"exec 3<{env}/pyvenv.cfg; echo up; exec sleep 1000"
    nested = user.start(f"{env}/bin/python", "-c", f"import os; os.execvp('unshare', ['unshare', '--user', '--mount', 'sh', '-c', {inside!r}])",
                        env={"CONTAINERIZE_SESSION_IDLE": "1"})
    assert next_line(nested.stdout) == "up\n"
    (path,) = sessions.state.glob("v*-*/log")
    with path.open() as log:
        eventually(lambda: not path.exists())
        (server,) = sessions.servers()
        os.kill(server, signal.SIGKILL)
        eventually(lambda: server not in sessions.processes())
        nested.kill()
        nested.communicate()
        eventually(lambda: not sessions.processes())
        assert "cannot mount" not in log.read()


def test_supervisor_killed_under_a_running_process(user, env, sessions):
    process = user.start(f"{env}/bin/python", "-c", "print('up', flush=True); input(); import numpy; print(numpy.ones(3).sum())",
                         stdin=subprocess.PIPE)
    assert next_line(process.stdout) == "up\n"
    orphan = sessions.servers()[0]
    os.kill(sessions.supervisors()[0], signal.SIGKILL)
    assert user.run(f"{env}/bin/python", "-c", "print(3)").stdout == "3\n"
    out, err = process.communicate("\n", timeout=60)
    assert (out, err) == ("3.0\n", "")
    # Its server exits when nothing uses it any more.
    eventually(lambda: orphan not in sessions.processes())


def test_a_session_that_no_longer_sees_owners_is_replaced(user, env, sessions):
    process = user.start(f"{env}/bin/python", "-c", "print('up', flush=True); input(); import numpy; print(numpy.ones(3).sum())",
                         stdin=subprocess.PIPE)
    assert next_line(process.stdout) == "up\n"
    first = sessions.supervisors()
    [helper] = sessions.helpers()
    os.kill(helper, signal.SIGKILL)
    eventually(lambda: any("new launches use another session" in log.read_text() for log in sessions.state.glob("old-*/log")))
    assert user.run(f"{env}/bin/python", "-c", "print(3)").stdout == "3\n"
    assert len(sessions.supervisors()) == 2 and set(first) < set(sessions.supervisors())
    assert process.communicate("\n", timeout=60) == ("3.0\n", "")


def blocked_on(process: Path) -> str:
    """The file whose descriptor is the first argument of the system call in which a process or thread waits, or an empty string."""
    with suppress(OSError, ValueError, IndexError):
        return os.readlink(process / f"fd/{int((process / 'syscall').read_text().split()[1], 16)}")
    return ""


def test_a_launch_just_when_its_session_no_longer_sees_owners(user, env, small, sessions, work):
    """The session that the launcher has asked cannot mount a moved installation any more, but another one can."""
    user.run(f"{env}/bin/python", "-c", "pass")
    [supervisor], [helper] = sessions.supervisors(), sessions.helpers()
    moved = user.copy(small, work / "moved", work / "first")
    os.kill(supervisor, signal.SIGSTOP)
    os.kill(helper, signal.SIGKILL)
    eventually(lambda: not sessions.helpers())
    launch = user.start(f"{moved}/bin/python", "-c", "print(3)")
    eventually(lambda: blocked_on(Path(f"/proc/{launch.pid}")).startswith("socket:"))
    os.kill(supervisor, signal.SIGCONT)
    assert launch.communicate(timeout=60) == ("3\n", "")
    assert len(sessions.supervisors()) == 2


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make this situation")
def test_a_session_that_never_sees_owners_is_replaced(user, small, sessions, work):
    """The helper is killed while the session starts."""
    with HangingImage(user.copy(small, work / "moved", work / "first"), work) as hanging:
        hanging.hang()
        launch = user.start(f"{hanging.installation}/bin/python", "-c", "print(3)")
        # There is also the guard of the start, which waits for something else.
        looking_up = lambda: [pid for pid in sessions.helpers() if blocked_on(Path(f"/proc/{pid}")).startswith("socket:")]  # noqa: E731
        eventually(lambda: [sessions.processes().get(pid) for pid in sessions.supervisors()] == [1] and looking_up())
        [helper] = looking_up()
        os.kill(helper, signal.SIGKILL)
        eventually(lambda: helper not in sessions.processes())
        hanging.go_on()
        assert launch.communicate(timeout=60) == ("3\n", "")
        sessions.kill_all()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make this situation")
def test_launcher_killed_while_it_starts_a_session(user, small, sessions, work):
    """Launches from other filesystems soon start a session. The one that the killed launcher has started is of no use any more."""
    with HangingImage(user.copy(small, work / "slow-env", work / "slow-env"), work) as hanging:
        hanging.hang()
        command = [f"{hanging.installation}/bin/python", "-c", "print('up')"]
        first = user.start(*command)
        # The process that the launcher started forks the supervisor and ends: then init is the supervisor's parent.
        eventually(lambda: [sessions.processes().get(pid) for pid in sessions.supervisors()] == [1] and list(sessions.state.glob("v*-*")))
        begun = sessions.supervisors()
        first.kill()
        first.communicate(timeout=60)
        second = user.start(*command)
        eventually(lambda: blocked_on(Path(f"/proc/{second.pid}")) == f"{sessions.state}/start.lock")
        assert user.run(f"{small}/bin/python", "-c", "print('other')").stdout == "other\n"
        hanging.go_on()
        assert second.communicate(timeout=30) == ("up\n", "")
        eventually(lambda: len(sessions.supervisors()) == 1)
        assert sessions.supervisors() != begun
        sessions.kill_all()


def test_ends_by_itself_when_idle(user, env, sessions):
    user.run(f"{env}/bin/python", "-c", "pass", env={"CONTAINERIZE_SESSION_IDLE": "1"})
    assert sessions.supervisors()
    eventually(lambda: not sessions.processes())
    assert [path.name for path in sessions.state.iterdir()] == ["start.lock"]
    assert str(env) not in open("/proc/self/mounts").read()


def test_does_not_end_under_a_running_process(user, env, sessions):
    code = "import time; time.sleep(4); import numpy; print('still here')"
    done = user.run(f"{env}/bin/python", "-c", code, env={"CONTAINERIZE_SESSION_IDLE": "1"})
    assert done.stdout == "still here\n"


def test_does_not_end_under_a_process_in_a_nested_namespace(user, env, sessions):
    inner = f"sleep 4; exec {env}/bin/python -c 'import numpy; print(4)'"
    done = user.run(f"{env}/bin/_debug_exec", "unshare", "-Urm", "sh", "-c", inner, env={"CONTAINERIZE_SESSION_IDLE": "0"})
    assert done.stdout == "4\n"
    eventually(lambda: not sessions.processes())


def test_foreign_user_namespace_gets_a_session_of_its_own(user, env, sessions):
    user.run(f"{env}/bin/python", "-c", "pass")
    code = "import numpy, sys; print(sys.executable)"
    idle = {"CONTAINERIZE_SESSION_IDLE": "0"}
    for enter in (["unshare", "-Ur"], ["bwrap", "--dev-bind", "/", "/"], ["bwrap", "--unshare-user", "--dev-bind", "/", "/"]):
        assert user.run(*enter, f"{env}/bin/python", "-c", code, env=idle).stdout == f"{env}/bin/python\n"
    eventually(lambda: len(sessions.supervisors()) == 1)


def test_state_directory_of_somebody_else_is_refused(user, env, work):
    foreign = work / "runtime"
    foreign.mkdir(mode=0o777)
    foreign.chmod(0o777)
    # It is not private, so the session uses the directory in /tmp instead.
    assert user.run(f"{env}/bin/python", "-c", "print(5)", env={"XDG_RUNTIME_DIR": str(foreign)}).stdout == "5\n"
    assert list(foreign.iterdir()) == []


def test_state_directory_in_xdg_runtime_dir(user, env, work, sessions):
    runtime = work / "xdg"
    runtime.mkdir(mode=0o700)
    os.chown(runtime, user.uid, user.uid)
    assert user.run(f"{env}/bin/python", "-c", "print(6)", env={"XDG_RUNTIME_DIR": str(runtime)}).stdout == "6\n"
    assert (runtime / "containerize").stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
def test_state_directory_that_cannot_be_written_is_not_used(user, small, work, sessions):
    """The filesystem became read-only, or the directory's mode was changed: /tmp serves instead."""
    sessions.kill_all()
    runtime = work / "no writing"
    runtime.mkdir(mode=0o700)
    program = [f"{small}/bin/python", "-c", "print(6)"]
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=700,uid={user.uid},gid={user.uid}", "none", str(runtime)], check=True)
    try:
        assert user.run(*program, env={"XDG_RUNTIME_DIR": str(runtime)}).stdout == "6\n"
        own = runtime / "containerize"
        sessions.kill_all()
        shutil.rmtree(own)
        own.mkdir(mode=0o700)
        os.chown(own, user.uid, user.uid)
        own.chmod(0o500)
        assert user.run(*program, env={"XDG_RUNTIME_DIR": str(runtime)}).stdout == "6\n"
        own.chmod(0o700)
        subprocess.run(["mount", "-o", "remount,ro", str(runtime)], check=True)
        sessions.kill_all()
        assert user.run(*program, env={"XDG_RUNTIME_DIR": str(runtime)}).stdout == "6\n"
        assert not list(own.iterdir())
    finally:
        sessions.kill_all()
        subprocess.run(["umount", str(runtime)], check=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make this situation")
def test_working_directory_that_cannot_be_entered_is_named(user, small, work):
    """The program would otherwise read and write elsewhere, without a word."""
    closed = work / "of root"
    closed.mkdir(mode=0o700)
    done = user.run(f"{small}/bin/python", "-c", "import os; print(os.getcwd())", cwd=closed)
    assert done.stdout == "/\n" and f"the working directory {closed} cannot be entered here" in done.stderr


def test_files_beside_the_state_directory_stay(user, small, work):
    """Files of a dead session are removed by name, but only in the state directory."""
    runtime = work / "beside"
    runtime.mkdir(mode=0o700)
    os.chown(runtime, user.uid, user.uid)
    names = {"lock", "control", "log", "plan-b.txt"}
    for name in names:
        user.write(runtime / name, "mine")
    user.run(f"{small}/bin/python", "-c", "pass", env={"XDG_RUNTIME_DIR": str(runtime)})
    assert {entry.name for entry in runtime.iterdir()} == names | {"containerize"}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a directory for somebody else")
def test_planted_state_directory_is_not_used(user, env, sessions):
    state = sessions.state
    aside = state.with_name("aside-" + state.name)
    state.rename(aside)
    try:
        state.mkdir(mode=0o777)
        state.chmod(0o777)
        # However many names are taken, the user gets one directory of their own, and all launches use the same one.
        for number in range(10):
            state.with_name(f"{state.name}-{number}").mkdir()
        for _ in range(3):
            assert user.run(f"{env}/bin/python", "-c", "print(7)").stdout == "7\n"
        assert list(state.iterdir()) == []
        (own,) = state.parent.glob(f"{state.name}.*")
        assert (own.stat().st_uid, own.stat().st_mode & 0o777) == (user.uid, 0o700)
        assert len(sessions.supervisors()) == 1
    finally:
        sessions.kill_all()
        for path in [*state.parent.glob(f"{state.name}.*"), *state.parent.glob(f"{state.name}-*")]:
            shutil.rmtree(path)
        state.rmdir()
        aside.rename(state)


def test_moved_installation(user, make, place, tool, sessions):
    original = make(place / "to move", "six==1.16.0\nPygments\n")
    moved = place / "moved here"
    original.rename(moved)
    show = "import sys, os, six; print(sys.executable, os.path.exists(sys.argv[1]))"
    assert user.run(f"{moved}/bin/python", "-c", show, str(original)).stdout == f"{moved}/bin/python True\n"
    # The first line of its script contains the path where it was built.
    assert "Pygments version" in user.run(f"{moved}/bin/pygmentize", "-V").stdout
    told = user.run(str(tool), "inspect", str(moved)).stdout
    assert f"built for {original}" in told
    sessions.kill_all()
    original.rmdir() if original.exists() else None


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a directory for somebody else")
def test_moved_from_where_the_user_may_not_look(user, small, work):
    private = work / "home of another"
    private.mkdir(mode=0o700)
    installation = user.copy(small, work / "moved", private / "env")
    show = f"import os; print(os.listdir({str(private)!r}), os.path.exists({str(private / 'env/bin/python')!r}))"
    assert user.run(f"{installation}/bin/python", "-c", show).stdout == "['env'] True\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can unmount it")
@pytest.mark.parametrize("end", ["nsenter --target {supervisor} --mount umount {first}", "rmdir {first}; mkdir {first}"])
def test_a_mount_point_that_goes_is_made_again(user, small, work, sessions, end):
    first = work / "first"
    installation = user.copy(small, work / "moved", first)
    code = f"import os; print(os.path.exists({str(first / 'bin/python')!r}), flush=True); input()"
    waiting = user.start(f"{installation}/bin/python", "-c", code, stdin=subprocess.PIPE, env={"CONTAINERIZE_SESSION_IDLE": "1"})
    assert next_line(waiting.stdout) == "True\n"
    (supervisor,) = sessions.supervisors()
    subprocess.run(["sh", "-ec", end.format(first=first, supervisor=supervisor)], check=True)
    shown = f"import os; print(os.path.exists({str(first / 'bin/python')!r}))"
    eventually(lambda: user.run(f"{installation}/bin/python", "-c", shown).stdout == "True\n")
    assert waiting.poll() is None
    waiting.communicate("\n", timeout=30)


def test_moved_installation_hides_nothing(user, small, work):
    first = work / "first"
    installation = user.copy(small, work / "moved", first)
    first.mkdir()
    user.write(first / "train.py", "print(42)")
    done = user.run(f"{installation}/bin/python", str(first / "train.py"), check=False)
    assert done.returncode == 1 and "something else is now at its original path" in done.stderr


def test_two_copies_of_a_moved_installation(user, small, work):
    copies = [user.copy(small, work / name, work / "built for") for name in ("first", "second")]
    for copy in copies * 2:
        assert user.run(f"{copy}/bin/python", "-c", "print(11)").stdout == "11\n"


def test_a_copy_never_takes_the_place_of_the_original(user, small, work, sessions):
    original = user.copy(small, work / "original", work / "original")
    same = user.copy(small, work / "same", work / "original")
    other = user.copy(small, work / "other", work / "original")
    manifest = json.loads((other / "containerize.json").read_text())
    manifest["image"]["sha256"] = "0" * 64  # pretends to be another image
    user.write(other / "containerize.json", json.dumps(manifest))
    show = "import sys; print(sys.prefix)"
    assert user.run(f"{original}/bin/python", "-c", show).stdout == f"{original}\n"
    mounts = Path(f"/proc/{sessions.supervisors()[0]}/mountinfo")
    before = mounts.read_text().count(f" {original} ")
    assert user.run(f"{same}/bin/python", "-c", show).stdout == f"{same}\n"
    done = user.run(f"{other}/bin/python", "-c", show, check=False)
    assert done.returncode == 1 and f"{original} is in use by {original}" in done.stderr
    assert mounts.read_text().count(f" {original} ") == before, "nothing was mounted over it"
    assert user.run(f"{original}/bin/python", "-c", show).stdout == f"{original}\n"


def test_moved_installation_in_two_sessions(user, small, work, sessions):
    """As on two nodes: the session that ends first leaves the mount point for the other."""
    first = work / "first"
    installation = user.copy(small, work / "moved", first)
    python = f"{installation}/bin/python"
    short = {"SLURM_JOB_ID": "1", "CONTAINERIZE_SESSION_IDLE": "0"}
    waiting = user.start(python, "-c", "print(1, flush=True); input()", env=short, stdin=subprocess.PIPE)
    assert next_line(waiting.stdout) == "1\n"
    code = f"import os; print(2, flush=True); input(); print(os.path.exists({str(first / 'bin/python')!r}))"
    other = user.start(python, "-c", code, env={"SLURM_JOB_ID": "2"}, stdin=subprocess.PIPE)
    assert next_line(other.stdout) == "2\n"
    waiting.communicate("\n", timeout=30)
    eventually(lambda: len(sessions.supervisors()) == 1)
    assert other.communicate("\n", timeout=30)[0] == "True\n"


def test_another_installation_where_one_was_moved_away(user, small, work):
    """The mount moves with the directory, so what is at that path now needs a session that sees it."""
    first, second = (user.copy(small, work / name, work / "first") for name in ("first", "second"))
    user.run(f"{first}/bin/python", "-c", "pass")
    first.rename(work / "away")
    second.rename(first)
    assert user.run(f"{first}/bin/python", "-c", "print(10)").stdout == "10\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a filesystem")
def test_installation_on_a_filesystem_that_was_mounted_later(user, env, small, work, sessions):
    user.run(f"{env}/bin/python", "-c", "pass")
    with mounted_in_memory(work / "disk") as disk:
        try:
            late = user.copy(small, disk / "env", disk / "env")
            assert user.run(f"{late}/bin/python", "-c", "import six; print(8)").stdout == "8\n"
            assert user.run(f"{env}/bin/python", "-c", "import numpy; print(9)").stdout == "9\n"
        finally:
            sessions.kill_all()


def test_corrupt_image_is_refused(user, small, work):
    broken = user.copy(small, work / "broken", work / "broken")
    image = broken / "env.sqfs"
    data = bytearray(image.read_bytes())
    image.write_bytes(data[: len(data) // 2])
    done = user.run(f"{broken}/bin/python", "-c", "pass", check=False)
    assert done.returncode == 1 and "the image is not the one that was built" in done.stderr
    data[:4] = b"nope"
    image.write_bytes(data)
    done = user.run(f"{broken}/bin/python", "-c", "pass", check=False)
    assert "it is not a squashfs image" in done.stderr
    assert "Build the installation again with `containerize new --force`." in done.stderr


@pytest.mark.parametrize("end", ["rm -rf {0}", "mv {0} {0}-elsewhere", "mv {0} {0}-elsewhere; rm -rf {0}-elsewhere"])
def test_an_installation_that_goes_leaves_no_process(user, env, sessions, work, end):
    """Mounts move with their directories and are removed with them."""
    gone = user.copy(env, work / "gone", work / "gone")
    user.run(f"{gone}/bin/python", "-c", "pass", env={"CONTAINERIZE_SESSION_IDLE": "2"})
    assert sessions.processes()
    user.run("sh", "-c", end.format(gone))
    eventually(lambda: not sessions.processes())


def test_files_are_what_the_image_has(user, env):
    """One device and the inode numbers that directory listings show; the filesystem has the size of the image and no free space."""
    code = f"""
import os
top = {str(env)!r}
seen = {{}}
for directory, _, files in os.walk(top):
    for entry in os.scandir(directory):
        info = entry.stat(follow_symlinks=False)
        assert info.st_dev == os.stat(top).st_dev and info.st_ino == entry.inode() < 2 ** 32, entry.path
        assert info.st_nlink > 1 or seen.setdefault(info.st_ino, entry.path) == entry.path
assert os.stat(top).st_ino not in seen
filesystem = os.statvfs(top)
print(filesystem.f_blocks * filesystem.f_frsize, filesystem.f_bfree)
"""
    size, free = map(int, user.run(f"{env}/bin/python", "-c", code).stdout.split())
    assert 0 < size - (env / "env.sqfs").stat().st_size < 2 << 20 and free == 0


@pytest.mark.skipif(os.getuid() != 0, reason="tracing a server needs root")
def test_warm_import_asks_the_server_for_nothing(user, env, sessions, work):
    python = [f"{env}/bin/python", "-c", "import numpy, requests"]
    allowed = set()
    if not linux_is_at_least(4, 20):
        allowed |= {5, 28, 44}  # the kernel caches neither links nor lists of directories
    if not linux_is_at_least(5, 1):
        allowed |= {27, 29}  # opening and closing directories cannot be left to the kernel
    if not linux_is_at_least(5, 11):
        allowed |= {39}  # without an overlay, Python asks by an ioctl for each file whether it is a terminal
    # The kernel may drop pages from its cache at any time and reads them again, so only one of three imports has to be completely warm.
    for _ in range(3):
        user.run(*python)
        user.run(*python)
        opcodes, image_reads = traced(sessions.servers()[0], lambda: user.run(*python), work / "trace")
        if set(opcodes) <= allowed and image_reads == 0:
            return
    assert (set(opcodes) - allowed, image_reads) == (set(), 0)


def traced(server, act, trace):
    """The opcodes of the requests that the server gets during `act`, and the number of its reads of the image."""
    strace = subprocess.Popen(
        ["strace", "-f", "-xx", "-s", "64", "-e", "trace=read,pread64", "-o", str(trace), "-p", str(server)],
        stderr=subprocess.PIPE,
    )
    assert b"attached" in next_line(strace.stderr)
    act()
    strace.send_signal(signal.SIGINT)
    strace.communicate(timeout=30)
    lines = trace.read_text().splitlines()
    requests = [bytes.fromhex(line.split('"')[1].replace("\\x", "")) for line in lines if '"' in line and "pread64" not in line]
    return [int.from_bytes(data[4:8], "little") for data in requests], sum("pread64(" in line for line in lines)


def anonymous_memory(pid: int) -> int:
    """In bytes."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


def memory_watchers(server: int) -> list[Path]:
    """A server has one thread that looks from time to time how much memory is left. Its others of this name wait for requests."""
    return [thread for thread in Path(f"/proc/{server}/task").iterdir()
            if (thread / "comm").read_text() == "containerize-fs\n" and blocked_on(thread) != "/dev/fuse"]


def times_of_rest(thread: Path) -> int:
    """How often it has begun to wait for something."""
    return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (thread / "status").read_text(), re.MULTILINE)[1])


@pytest.fixture()
def small_memory(sessions):
    """A control group with a low memory limit."""
    limit = 200 << 20
    for place, file in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
        try:
            group = Path(tempfile.mkdtemp(prefix="containerize-test-", dir=place))
        except OSError:
            continue
        try:
            group.chmod(0o755)  # for servers to see their limit
            (group / file).write_text(str(limit))
            break
        except OSError:
            group.rmdir()
    else:
        pytest.skip("no group of processes with a limit of memory can be made here")
    yield group
    sessions.kill_all()
    eventually(lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


def test_a_server_lets_go_of_its_cache_where_memory_is_short(user, env, sessions, small_memory):
    hash_all = [f"{env}/bin/python", "-c", HASH_TREE, f"{env}/lib"]
    expected = user.run(*hash_all).stdout
    (server,) = sessions.servers()
    before = anonymous_memory(server)
    assert before > 20 << 20, "or there is nothing to see"
    eventually(lambda: len(memory_watchers(server)) == 1)
    (watcher,) = memory_watchers(server)
    rests = times_of_rest(watcher)
    eventually(lambda: times_of_rest(watcher) > rests, 60)
    assert anonymous_memory(server) > 20 << 20, "there is enough memory"
    (small_memory / "cgroup.procs").write_text(str(server))
    # The server moves without the memory it has; a program beside it would need some in the group.
    assert user.run(*hash_all).stdout == expected
    eventually(lambda: anonymous_memory(server) < before - (15 << 20), 60)
    assert user.run(*hash_all).stdout == expected
