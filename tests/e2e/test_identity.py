"""Which launches share a session. A session stays usable when its files are damaged, when other jobs end, and when containers
share its directory."""

import copy
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from conftest import BUILD, HangingImage, Sessions, eventually, free_port, next_line, unique_uid, wait_for_recordings
from installation import mounted_in_memory

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can make this situation")


@pytest.fixture(autouse=True)
def no_session_before(sessions):
    sessions.kill_all()


def plans(sessions):
    return sorted(sessions.state.glob("v*/plan-*"))


# ---- Files of a session


@pytest.mark.parametrize("damage", ["deleted", "cut", "of another version", "a directory"])
def test_a_plan_that_is_lost_is_written_again(user, small, sessions, damage):
    command = [f"{small}/bin/python", "-c", "import six; print(six.__file__)"]
    expected = user.run(*command).stdout
    supervisors = sessions.supervisors()
    (plan,) = plans(sessions)
    before = plan.read_bytes()
    if damage == "deleted":
        plan.unlink()
    elif damage == "cut":
        plan.write_bytes(before[:-5])
    elif damage == "of another version":
        plan.write_bytes(before.replace(b"launch plan ", b"launch plan 9"))
    else:
        plan.unlink()
        plan.mkdir()
        done = user.run(*command, check=False)
        assert done.returncode == 1 and "cannot write the launch plan" in done.stderr and str(plan) in done.stderr
        plan.rmdir()
    assert user.run(*command).stdout == expected
    assert sessions.supervisors() == supervisors
    assert plan.read_bytes() == before


@pytest.mark.parametrize("umask", ["222", "277", "777"])
def test_the_umask_of_the_first_is_not_for_all(user, small, sessions, umask):
    shutil.rmtree(sessions.state, ignore_errors=True)
    user.run("sh", "-c", 'umask "$1"; exec "$2/bin/python" -c pass', "sh", umask, small)
    sessions.kill_all()
    user.run(f"{small}/bin/python", "-c", "pass")


def test_a_session_ends_though_its_state_is_gone(user, small, sessions):
    user.run(f"{small}/bin/python", "-c", "pass", env={"CONTAINERIZE_SESSION_IDLE": "1"})
    assert sessions.supervisors()
    shutil.rmtree(sessions.state)
    eventually(lambda: not sessions.processes())


def fill(directory: Path) -> Path:
    file = directory / "filler"
    with open(file, "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(b"x" * 4096)
        except OSError:
            return file


@as_root
def test_a_full_filesystem_ends_no_session(user, env, small, sessions, work):
    with mounted_in_memory(work / "state", f"size=256k,mode=0700,uid={user.uid},gid={user.entry.pw_gid}") as state:
        def start(installation):
            return user.run(f"{installation}/bin/python", "-c", "print('up')", check=False, env={"XDG_RUNTIME_DIR": str(state)})

        def assert_full(done):
            assert done.returncode == 1
            assert "cannot write the launch plan: No space left on device" in done.stderr and "Free some space" in done.stderr

        filler = fill(state)
        assert_full(start(env))
        eventually(lambda: not sessions.processes())
        filler.unlink()
        assert start(env).stdout == "up\n"
        supervisors = sessions.supervisors()
        # Mounting one more installation fails without a half-finished mount, and the first installation stays usable.
        filler = fill(state)
        for _ in range(2):
            assert_full(start(small))
        assert start(env).stdout == "up\n"
        next(state.glob("containerize/v*/plan-*")).unlink()
        filler.write_bytes(b"")
        filler = fill(state)
        assert_full(start(env))
        filler.unlink()
        assert start(env).stdout == start(small).stdout == "up\n"
        assert sessions.supervisors() == supervisors
        eventually(lambda: len(sessions.servers()) == 2)
        sessions.kill_all()


@as_root
def test_a_filesystem_that_hangs_holds_up_nobody_else(user, small, sessions, work):
    """A launch from that filesystem waits. Meanwhile others start a session, and it uses that one when it can go on."""
    with HangingImage(user.copy(small, work / "hanging", work / "hanging"), work) as hanging:
        hanging.hang()
        first = user.start(f"{hanging.installation}/bin/python", "-c", "print('late')")
        eventually(sessions.supervisors)
        assert user.run(f"{small}/bin/python", "-c", "print('up')").stdout == "up\n"
        assert first.poll() is None
        hanging.go_on()
        out, err = first.communicate(timeout=60)
        assert (out, err) == ("late\n", "")
        eventually(lambda: len(sessions.supervisors()) == 1)
        sessions.kill_all()


@as_root
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_session_that_is_killed_while_a_filesystem_hangs_holds_up_nobody(user, small, sessions, work, number):
    with HangingImage(user.copy(small, work / "hanging", work / "hanging"), work) as hanging:
        hanging.hang()
        first = user.start(f"{hanging.installation}/bin/python", "-c", "print('late')")
        eventually(lambda: sessions.supervisors() and list(sessions.state.glob("v*-*")))
        # As in the hint of the message that a session does not answer.
        for pid in sessions.processes() if number == signal.SIGTERM else sessions.supervisors():
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        assert user.run(f"{small}/bin/python", "-c", "print('up')").stdout == "up\n"
        first.kill()
        first.communicate(timeout=60)
        hanging.go_on()
        sessions.kill_all()


@as_root
def test_a_filesystem_that_hangs_holds_up_no_session(user, small, sessions, work):
    """A running session is asked to mount from that filesystem, and still mounts for others meanwhile."""
    other = user.copy(small, work / "other", work / "other")
    with HangingImage(user.copy(small, work / "hanging", work / "hanging"), work) as hanging:
        sessions.kill_all()
        user.run(f"{small}/bin/python", "-c", "")
        hanging.hang()
        first = user.start(f"{hanging.installation}/bin/python", "-c", "print('late')")
        eventually(lambda: "-> socket:" in subprocess.run(["ls", "-l", f"/proc/{first.pid}/fd"], capture_output=True, text=True).stdout)
        assert user.run(f"{other}/bin/python", "-c", "print('up')", timeout=30).stdout == "up\n"
        assert first.poll() is None and len(sessions.supervisors()) == 1
        hanging.go_on()
        out, err = first.communicate(timeout=60)
        assert (out, err) == ("late\n", "")
        assert len(sessions.supervisors()) == 1
        sessions.kill_all()


# Opens many connections to a session, and asks for an installation on each.
ASK_OFTEN = """
import os, socket, sys
os.chdir(sys.argv[1])
clients = []
for _ in range(100):
    clients.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    clients[-1].connect("control")
    clients[-1].send(b"mount\\0" + sys.argv[2].encode())
print("asked", flush=True)
input()
"""
FEW_FILES = ("prlimit", "--nofile=64:64")


@as_root
def test_more_clients_than_a_session_has_descriptors(user, small, sessions, work):
    other = user.copy(small, work / "other", work / "other")
    with HangingImage(user.copy(small, work / "hanging", work / "hanging"), work) as hanging:
        inside = start_waiting(user, small, before=FEW_FILES, CONTAINERIZE_SESSION_IDLE="1")
        (supervisor,) = sessions.supervisors()
        files = Path(f"/proc/{supervisor}/fd")
        before = len(list(files.iterdir()))
        (directory,) = sessions.state.glob("v*")
        hanging.hang()
        clients = user.start("/usr/bin/python3", "-c", ASK_OFTEN, directory, hanging.installation, stdin=subprocess.PIPE)
        assert next_line(clients.stdout) == "asked\n"
        eventually(lambda: len(list(files.iterdir())) == 64)
        trace = work / "trace"
        strace = subprocess.Popen(["strace", "-e", "trace=accept4,poll", "-o", trace, "-p", str(supervisor)], stderr=subprocess.PIPE, text=True)
        assert "attached" in next_line(strace.stderr)
        eventually(lambda: trace.read_text().count("EMFILE") > 3)
        strace.send_signal(signal.SIGINT)
        strace.communicate(timeout=30)
        for between in trace.read_text().split("EMFILE")[1:-1]:
            assert " = 0 (Timeout)" in between, "it rests before it tries again"
        # Those that are already mounted need no answer.
        assert user.run(*FEW_FILES, f"{small}/bin/python", "-c", "print('up')", timeout=30).stdout == "up\n"
        clients.communicate("\n", timeout=30)
        eventually(lambda: len(list(files.iterdir())) == before)
        assert user.run(*FEW_FILES, f"{other}/bin/python", "-c", "print('up')").stdout == "up\n"
        assert sessions.supervisors() == [supervisor]
        hanging.go_on()
        assert inside.communicate("\n", timeout=60) == ("imported\n", "")
        sessions.kill_all()


# Executes a command that may not examine processes outside: Landlock has no more effect here.
IN_A_SANDBOX = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
rules = libc.syscall(444, ctypes.byref(ctypes.c_uint64(1 << 11)), ctypes.c_size_t(8), 0)  # landlock_create_ruleset: no block devices
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.syscall(446, rules, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
"""


def has_landlock():
    return ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) > 0


@pytest.mark.skipif(not has_landlock(), reason="this kernel has no Landlock")
def test_a_session_outside_of_a_sandbox_stays(user, small, sessions):
    native = {"CONTAINERIZE_ENGINE": "native"}  # otherwise a container runtime may run it
    user.run(f"{small}/bin/python", "-c", "", env=native)
    supervisors, kept = sessions.supervisors(), plans(sessions)
    done = user.run("/usr/bin/python3", "-c", IN_A_SANDBOX, f"{small}/bin/python", "-c", "", check=False, env=native)
    assert done.returncode == 1 and "this process may not enter the session that other programs use" in done.stderr, done.stderr
    assert plans(sessions) == kept
    assert user.run(f"{small}/bin/python", "-c", "print('up')", env=native).stdout == "up\n"
    assert sessions.supervisors() == supervisors


# ---- Jobs


def start_waiting(user, installation, before=(), **environment):
    """Starts a program that imports modules when it gets a line of input."""
    code = "print('up', flush=True); input(); import json, email.parser, xml.dom.minidom; print('imported')"
    process = user.start(*before, f"{installation}/bin/python", "-c", code, stdin=subprocess.PIPE, env=environment)
    assert next_line(process.stdout) == "up\n"
    return process


@pytest.mark.parametrize("variable", ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID", "OAR_JOB_ID", "PJM_JOBID", "_CONDOR_SCRATCH_DIR"])
def test_the_end_of_a_job_is_nothing_to_another(user, small, sessions, variable):
    first = start_waiting(user, small, **{variable: "1.server"})
    of_first = set(sessions.processes())
    second = start_waiting(user, small, **{variable: "2.server"})
    # As batch systems do when a job ends: they kill everything the job has started.
    first.kill()
    for pid in of_first:
        with suppress(ProcessLookupError):  # some end when another one was killed
            os.kill(pid, signal.SIGKILL)
    assert second.communicate("\n", timeout=60) == ("imported\n", "")
    first.communicate(timeout=60)
    assert second.returncode == 0


def test_ranks_of_a_job_share_a_session(user, small, sessions):
    ranks = [start_waiting(user, small, PBS_JOBID="1.server", PMI_RANK=str(rank)) for rank in range(3)]
    assert len(sessions.supervisors()) == len(sessions.servers()) == 1
    for rank in ranks:
        assert rank.communicate("\n", timeout=60) == ("imported\n", "")


# ---- Shared directories


@as_root
def test_two_pid_namespaces_share_a_tmp(user, small, sessions):
    """As a container and its host do: each keeps its own session and files."""
    contained = ["unshare", "--pid", "--fork", "--mount-proc", "--propagation", "unchanged", "setpriv", f"--reuid={user.uid}", f"--regid={user.entry.pw_gid}",
                 "--clear-groups"]
    outer = start_waiting(user, small)
    supervisors = sessions.supervisors()
    directories = set(sessions.state.glob("v*"))
    hold = "print('up', flush=True); input(); import json, xml.dom.minidom; print('imported')"
    options = {**user.options(), "user": None, "group": None, "extra_groups": None}
    inner = subprocess.Popen([*contained, f"{small}/bin/python", "-c", hold], text=True, **{**options, "stdin": subprocess.PIPE}, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    assert next_line(inner.stdout) == "up\n"
    assert directories < set(sessions.state.glob("v*"))
    # A third session starts, which removes the files of dead sessions.
    assert user.run(f"{small}/bin/python", "-c", "print('third')", env={"PBS_JOBID": "3"}).stdout == "third\n"
    assert user.run(f"{small}/bin/python", "-c", "print('same')").stdout == "same\n"
    assert set(supervisors) < set(sessions.supervisors())
    assert len(set(sessions.state.glob("v*"))) == 3
    for process in (outer, inner):
        assert process.communicate("\n", timeout=60) == ("imported\n", "")


@as_root
def test_a_pid_namespace_whose_proc_is_another(user, small, sessions):
    """The pids in /proc then differ from those that the kernel reports."""
    options = {**user.options(), "user": None, "group": None, "extra_groups": None}
    for _ in range(2):
        done = subprocess.run(["unshare", "--pid", "--fork", "setpriv", f"--reuid={user.uid}", f"--regid={user.entry.pw_gid}", "--clear-groups",
                               f"{small}/bin/python", "-c", "print('up')"], text=True, capture_output=True, timeout=300, **options)
        assert (done.stdout, done.returncode) == ("up\n", 0), done.stderr


MARKER = "import os; print(os.path.exists('/mnt/planted'))"


def run_as_root(*argv, check=True, **more):
    clean = {"PATH": "/usr/bin:/bin", "HOME": "/root", "CONTAINERIZE_SESSION_IDLE": "2"}
    done = subprocess.run([str(word) for word in argv], env=clean, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, **more)
    assert not check or done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def roots(tmp_path_factory, only_python):
    """An installation of root's that other users can run."""
    place = tmp_path_factory.mktemp("roots")
    for directory in (place, *place.parents[:-2]):
        directory.chmod(0o755)
    (place / "python.txt").write_text(only_python)
    # Built by an interpreter that all users can run.
    environment = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    subprocess.run([BUILD / "bin/containerize", "new", "--prefix", place / "env", place / "python.txt"], check=True, capture_output=True,
                   env={**environment, "PATH": "/usr/bin:/bin", "HOME": "/root"})
    wait_for_recordings(0)
    return place / "env"


@pytest.fixture()
def run_directory():
    """An empty /run/containerize, visible only to this test file."""
    path = Path("/run/containerize")
    path.mkdir(mode=0o700, exist_ok=True)
    with mounted_in_memory(path, "mode=0700"):
        yield path


@as_root
def test_a_session_that_a_container_planted_is_not_entered(roots, run_directory):
    run_as_root(f"{roots}/bin/python", "-c", MARKER)
    (ours,) = run_directory.glob("v*")
    eventually(lambda: not list(run_directory.glob("v*")))
    script = f"mount -t tmpfs none /mnt; touch /mnt/planted; exec {roots}/bin/python -c \"{MARKER}; import sys; sys.stdout.flush(); input()\""
    contained = subprocess.Popen(["unshare", "--pid", "--mount", "--fork", "--mount-proc", "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True, env={"PATH": "/usr/bin:/bin", "CONTAINERIZE_SESSION_IDLE": "2"}, cwd="/")
    assert next_line(contained.stdout) == "True\n"
    (planted,) = run_directory.glob("v*")
    planted.rename(ours)
    assert run_as_root(f"{roots}/bin/python", "-c", MARKER).stdout == "False\n"
    contained.communicate("\n", timeout=60)


@as_root
def test_root_has_its_state_where_no_container_writes(roots, run_directory):
    planted = Path("/tmp/containerize-0")
    planted.mkdir(mode=0o700, exist_ok=True)
    before = list(planted.iterdir())
    run_as_root(f"{roots}/bin/python", "-c", "pass")
    assert list(run_directory.glob("v*")) and list(planted.iterdir()) == before


# ---- Root


@as_root
def test_a_program_of_roots_can_become_another_user(user, roots, run_directory, work):
    secret = user.write(work / "secret", "of the user's own", 0o600)
    own = work / "made"
    own.touch()
    code = f"""
import os, subprocess, sys
print(open({str(secret)!r}).read())
os.chown({str(own)!r}, {user.uid}, {user.uid})
os.setgroups([]); os.setgid({user.uid}); os.setuid({user.uid})
import json
print(os.getuid(), json.__file__)
print(subprocess.run([sys.executable, '-c', 'import os, json; print(os.getuid())'], capture_output=True, text=True, check=True).stdout)
"""
    out = run_as_root(f"{roots}/bin/python", "-c", code).stdout.split("\n")
    assert out[0] == "of the user's own"
    assert out[1].startswith(f"{user.uid} {roots}/lib/")
    assert out[2] == str(user.uid)
    assert own.stat().st_uid == user.uid


@as_root
def test_roots_mounts_stay_in_its_session(roots, run_directory):
    shown = run_as_root(f"{roots}/bin/python", "-c", "print(open('/proc/self/mountinfo').read(), open('/proc/self/uid_map').read().split())").stdout
    assert f" {roots} " in shown and "['0', '0', '4294967295']" in shown
    assert str(roots) not in Path("/proc/self/mountinfo").read_text()


def test_who_is_root_by_a_map_alone_has_a_session(user, small, sessions):
    code = "import os; print(os.getuid(), open('/proc/self/uid_map').read().split())"
    assert user.run("unshare", "-Ur", f"{small}/bin/python", "-c", code, env={"CONTAINERIZE_SESSION_IDLE": "0"}).stdout == "0 ['0', '0', '1']\n"


# ---- Limits


CHILDREN = "import subprocess; print(len([child.wait() for child in [subprocess.Popen(['sleep', '0.2']) for _ in range(40)]]))"


@pytest.fixture()
def lone_user(user):
    """A user with no other processes on this machine, because the kernel counts all processes of a user."""
    lone = copy.copy(user)
    lone.uid = unique_uid()
    lone.switch = {"user": lone.uid, "group": lone.uid, "extra_groups": []}
    yield lone
    Sessions(lone).kill_all()
    shutil.rmtree(f"/tmp/containerize-{lone.uid}")


@as_root
def test_a_soft_limit_of_the_first_is_not_for_all(lone_user, small):
    soft = f"ulimit -S -u 30; exec {small}/bin/python -c 'print(1)'"
    assert lone_user.run("bash", "-c", soft).stdout == "1\n"
    assert lone_user.run(f"{small}/bin/python", "-c", CHILDREN).stdout == "40\n"
    (supervisor,) = Sessions(lone_user).supervisors()
    for line in Path(f"/proc/{supervisor}/limits").read_text().splitlines()[1:]:
        if "core file" not in line:
            soft, hard = line[26:].split()[:2]
            assert soft == hard, line


@as_root
def test_a_hard_limit_has_a_session_of_its_own(lone_user, small):
    hard = f"ulimit -u 30; exec {small}/bin/python -c 'print(1)'"
    assert lone_user.run("bash", "-c", hard).stdout == "1\n"
    assert lone_user.run(f"{small}/bin/python", "-c", CHILDREN).stdout == "40\n"
    assert lone_user.run("bash", "-c", hard).stdout == "1\n"
    assert len(Sessions(lone_user).supervisors()) == 2


def test_who_is_nicer_is_served_apart(user, small, sessions):
    user.run("nice", "-n", "15", f"{small}/bin/python", "-c", "pass")
    user.run(f"{small}/bin/python", "-c", "pass")
    assert sorted(os.getpriority(os.PRIO_PROCESS, pid) for pid in sessions.servers()) == [0, 15]


def test_a_session_is_idle_only_if_it_must_be(user, small, sessions):
    """No limit of this user allows a process to leave SCHED_IDLE. Each can leave the idle class of I/O."""
    user.run("chrt", "--idle", "0", f"{small}/bin/python", "-c", "")
    user.run("ionice", "--class", "idle", "chrt", "--batch", "0", f"{small}/bin/python", "-c", "")
    user.run(f"{small}/bin/python", "-c", "")
    servers = sessions.servers()
    assert sorted(os.sched_getscheduler(pid) for pid in servers) == [os.SCHED_OTHER, os.SCHED_IDLE]
    for pid in servers:
        assert subprocess.run(["ionice", "--pid", str(pid)], capture_output=True, text=True).stdout.startswith("none")


@pytest.mark.parametrize("kibibytes", [32, 64])
def test_a_stack_that_is_too_small(user, small, kibibytes):
    limited = user.run("prlimit", f"--stack={kibibytes << 10}:{kibibytes << 10}", f"{small}/bin/_debug_exec", "true", check=False)
    assert limited.returncode == 1
    assert "the limit of the stack's size is too low" in limited.stderr and f"it is {kibibytes} KiB" in limited.stderr
    user.run("prlimit", "--stack=131072:131072", f"{small}/bin/_debug_exec", "true")


# ---- Logins and services


@pytest.fixture()
def in_group(sessions):
    """A context manager: what the tests start in it is in a control group of that name."""
    parent = next(place for place in (Path("/sys/fs/cgroup/freezer"), Path("/sys/fs/cgroup")) if (place / "cgroup.procs").exists())
    groups = Path(tempfile.mkdtemp(prefix="containerize-test-", dir=parent))

    @contextmanager
    def enter(name: str):
        (groups / name).mkdir(exist_ok=True)
        (groups / name / "cgroup.procs").write_text("0")
        try:
            yield
        finally:
            (parent / "cgroup.procs").write_text("0")

    yield enter
    sessions.kill_all()
    for procs in groups.glob("*/cgroup.procs"):
        eventually(lambda procs=procs: not procs.read_text())
        procs.parent.rmdir()
    groups.rmdir()


@as_root
@pytest.mark.parametrize("kill, expected", [("no", 1), ("yes", 2)])
def test_logins_share_a_session_unless_logind_ends_their_processes(user, small, sessions, work, in_group, kill, expected):
    settings = work / "logind.conf"
    settings.write_text(f"[Login]\nKillUserProcesses={kill}\n")
    subprocess.run(["mount", "--bind", str(settings), "/etc/systemd/logind.conf"], check=True)
    try:
        for login in ("session-96.scope", "session-97.scope", "session-96.scope"):
            with in_group(login):
                assert user.run(f"{small}/bin/python", "-c", "print(8)").stdout == "8\n"
        assert len(sessions.supervisors()) == expected
    finally:
        subprocess.run(["umount", "/etc/systemd/logind.conf"], check=True)


@as_root
def test_services_of_systemd_do_not_share_a_session(user, small, sessions, in_group):
    for service in ("jupyter-me.service", "other.service", "jupyter-me.service", "user@1000.service"):
        with in_group(service):
            assert user.run(f"{small}/bin/python", "-c", "print(9)").stdout == "9\n"
    assert user.run(f"{small}/bin/python", "-c", "print(9)").stdout == "9\n"
    assert len(sessions.supervisors()) == 3


# ---- ssh


@pytest.fixture(scope="module")
def ssh_host(user, place):
    """An sshd that the user runs on this machine; "host" in the user's ssh configuration."""
    directory = user.directory(place)
    for key in ("host_key", "user_key"):
        user.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / key))
    shutil.copy(directory / "user_key.pub", directory / "authorized_keys")
    port = free_port()
    user.write(directory / "sshd_config", f"""\
ListenAddress 127.0.0.1:{port}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/authorized_keys
PidFile none
StrictModes no
UsePAM no
""")
    home = Path(user.entry.pw_dir)
    (home / ".ssh").mkdir(mode=0o700)
    os.chown(home / ".ssh", user.uid, user.entry.pw_gid)
    user.write(home / ".ssh/config", f"""\
Host host
    HostName 127.0.0.1
    Port {port}
    IdentityFile {directory}/user_key
    StrictHostKeyChecking no
    UserKnownHostsFile {directory}/known_hosts
    LogLevel ERROR
""", 0o600)
    server = user.start("/usr/sbin/sshd", "-D", "-e", "-f", str(directory / "sshd_config"))
    assert "Server listening" in next_line(server.stderr)
    yield "host"
    server.kill()
    server.communicate(timeout=60)
    shutil.rmtree(home / ".ssh")


@pytest.fixture()
def site_settings(work):
    """Replaces /etc/ssh, owned by root, with a layout like RHEL's: one file includes another through a symbolic link."""
    settings = work / "etc-ssh"
    (settings / "ssh_config.d").mkdir(parents=True)
    (settings / "policies").mkdir()
    (settings / "back-ends").mkdir()
    for directory in (settings, *settings.iterdir()):
        directory.chmod(0o755)
    (settings / "ssh_config").write_text("Include /etc/ssh/ssh_config.d/*.conf\n")
    (settings / "ssh_config.d/50-site.conf").write_text("Match final all\n\tInclude /etc/ssh/back-ends/openssh.config\n\tForwardX11Trusted yes\n")
    (settings / "policies/default.txt").write_text("RekeyLimit 1G\n")
    (settings / "back-ends/openssh.config").symlink_to("../policies/default.txt")
    subprocess.run(["chown", "-R", "root:root", str(settings)], check=True)
    subprocess.run(["mount", "--bind", str(settings), "/etc/ssh"], check=True)
    yield settings
    subprocess.run(["umount", "--lazy", "/etc/ssh"], check=True)


@as_root
def test_ssh_works_inside(user, small, sessions, ssh_host, site_settings, work):
    def inside(*command, **more):
        return user.run(f"{small}/bin/_debug_exec", *command, env={"CONTAINERIZE_SESSION_IDLE": "4"}, **more)

    assert inside("ssh", ssh_host, "echo", "there").stdout == "there\n"
    assert inside("ssh", "-G", ssh_host).stdout == user.run("ssh", "-G", ssh_host).stdout
    assert "rekeylimit 1073741824" in inside("ssh", "-G", ssh_host).stdout.lower()
    # Through git, which is how requirements are fetched.
    user.run("git", "init", "--quiet", "--initial-branch=main", str(work / "repository"))
    user.run("git", "-C", str(work / "repository"), "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "--quiet", "--allow-empty", "-m", "first")
    inside("git", "clone", "--quiet", f"ssh://{ssh_host}{work}/repository", str(work / "clone"))
    assert user.run("git", "-C", str(work / "clone"), "log", "--format=%s").stdout == "first\n"
    # Files of other users have the same content as outside; only ssh's appear to belong to the user.
    assert inside("cat", "/etc/ssh/ssh_config.d/50-site.conf").stdout == (site_settings / "ssh_config.d/50-site.conf").read_text()


@as_root
def test_settings_of_ssh_that_are_changed_are_seen(user, small, sessions, ssh_host, site_settings):
    held = start_waiting(user, small, CONTAINERIZE_SESSION_IDLE="1")

    def settings():
        done = user.run(f"{small}/bin/_debug_exec", "ssh", "-G", ssh_host, check=False)
        return done.stdout.lower() if done.returncode == 0 else ""

    assert "rekeylimit 1073741824" in settings()
    # A file is overwritten, replaced by a rename, and added.
    (site_settings / "policies/default.txt").write_text("RekeyLimit 2G\n")
    eventually(lambda: "rekeylimit 2147483648" in settings())
    (site_settings / "policies/new.txt").write_text("RekeyLimit 3G\n")
    (site_settings / "policies/new.txt").rename(site_settings / "policies/default.txt")
    eventually(lambda: "rekeylimit 3221225472" in settings())
    (site_settings / "ssh_config.d/60-more.conf").write_text("ConnectTimeout 77\n")
    eventually(lambda: "connecttimeout 77" in settings())
    held.communicate("\n", timeout=60)


@as_root
@pytest.mark.parametrize("owner, mode", [(0, 0o666), (unique_uid(), 0o644)])
def test_settings_of_ssh_that_others_may_write_are_refused(user, small, sessions, ssh_host, site_settings, owner, mode):
    (site_settings / "ssh_config.d/70-open.conf").write_text("ConnectTimeout 78\n")
    (site_settings / "ssh_config.d/70-open.conf").chmod(mode)
    os.chown(site_settings / "ssh_config.d/70-open.conf", owner, 0)
    sessions.kill_all()
    for command in (["ssh", "-G", ssh_host], [f"{small}/bin/_debug_exec", "ssh", "-G", ssh_host]):
        done = user.run(*command, check=False)
        assert done.returncode != 0 and "Bad owner or permissions" in done.stderr


# ---- Kerberos


def test_the_doctor_tells_of_tickets_that_are_not_seen_inside(user, tool):
    warned = user.run(str(tool), "doctor", check=False, env={"KRB5CCNAME": "KEYRING:persistent:1000"}).stdout
    assert "KEYRING:persistent:1000" in warned and "FILE:" in warned
    assert "Kerberos" not in user.run(str(tool), "doctor", check=False, env={"KRB5CCNAME": "FILE:/tmp/krb5cc_1000"}).stdout
