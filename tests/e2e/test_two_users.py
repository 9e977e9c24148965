"""Two users on one node: a user never runs programs that the other has planted."""

import json
import os
import platform
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import OTHER_USER, SOURCE, Sessions, User, next_line

sys.path.insert(0, str(SOURCE / "tests/lib"))
from oci_image import MACHINE, Layout, tar_of  # noqa: E402

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")

TMP = Path("/tmp")


@pytest.fixture(scope="module")
def other():
    """The user who tries to make the test user run foreign programs."""
    try:
        pwd.getpwnam(OTHER_USER)
    except KeyError:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/bash", OTHER_USER], check=True)
    return User(OTHER_USER)


class Trap:
    """Files of the other user, with programs that record who runs them."""

    def __init__(self, other):
        self.other = other
        self.caught = TMP / "caught"

    def shell(self, script, *arguments, check=True):
        return self.other.run("/bin/sh", "-ec", script, "sh", *map(str, arguments), check=check)

    def plant(self, path: Path, text: str | None = None, mode: int = 0o755):
        """Writes as the other user, and creates missing directories."""
        told = f"#!/bin/sh\nid -u >> {self.caught}\nexit 66\n"
        self.shell('mkdir -p "${1%/*}"; printf %s "$2" > "$1"; chmod "$3" "$1"', path, told if text is None else text, f"{mode:o}")

    def assert_nobody_was_caught(self):
        assert not self.caught.exists(), self.caught.read_text()


@pytest.fixture
def trap(other, sessions):
    sessions.kill_all()
    shutil.rmtree(sessions.state, ignore_errors=True)  # frees the name for the other user
    before = set(TMP.iterdir())
    trap = Trap(other)
    trap.caught.touch()
    trap.caught.chmod(0o666)
    trap.caught.unlink()
    yield trap
    sessions.kill_all()
    for path in set(TMP.iterdir()) - before:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    trap.assert_nobody_was_caught()


@pytest.fixture
def home(user):
    """A directory of the user's; no other user can write to it or to its parents."""
    path = user.directory(user.entry.pw_dir)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def grounds():
    """A directory of root's in which other users have directories."""
    path = Path(tempfile.mkdtemp(prefix="containerize-e2e-", dir="/opt"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def owned(path: Path, uid: int, gid: int | None = None, mode: int = 0o755) -> Path:
    path.mkdir(exist_ok=True)
    os.chown(path, uid, uid if gid is None else gid)
    path.chmod(mode)
    return path


def python(user, installation, code="print('fine')", check=True, **more):
    return user.run(f"{installation}/bin/python", "-c", code, check=check, **more)


def test_a_manifest_beside_the_installation(user, small, trap):
    """A wrapper without a manifest of its own does not use one from a directory that everybody can write to."""
    env = user.copy(small, TMP / "env", TMP / "env")
    manifest = (env / "containerize.json").read_text()
    (env / "containerize.json").unlink()
    trap.plant(TMP / "containerize.json", manifest, 0o644)
    trap.plant(TMP / "libexec/containerize-session")
    done = python(user, env, check=False)
    assert done.returncode == 1 and f"{TMP}/containerize.json: not used by {env}/bin/python: " in done.stderr
    assert "everybody can write to its directory" in done.stderr
    trap.assert_nobody_was_caught()
    assert python(user, env, check=False, env={"CONTAINERIZE_ENGINE": "apptainer"}).returncode == 1


def test_parts_of_an_installation_that_others_could_have_written(user, other, small, home, trap):
    env = user.copy(small, home / "env", home / "env")
    for part, change in (("containerize.json", lambda path: os.chown(path, other.uid, other.uid)), ("containerize.json", lambda path: path.chmod(0o666)),
                         (".", lambda path: path.chmod(0o777)), (".", lambda path: os.chown(path, other.uid, other.uid)),
                         ("libexec", lambda path: path.chmod(0o1777)), ("libexec/containerize-session", lambda path: os.chown(path, other.uid, other.uid))):
        path = env / part
        info = path.stat()
        change(path)
        done = python(user, env, check=False)
        assert done.returncode == 1 and f": not used by {env}/bin/python: " in done.stderr, f"{part}: {done.stderr}"
        os.chown(path, info.st_uid, info.st_gid)
        path.chmod(info.st_mode & 0o7777)
    assert python(user, env).stdout == "fine\n"


def test_a_colleagues_installation_is_used(user, other, small, home, trap):
    """All of it belongs to the colleague, to root, or to a group."""
    env = user.copy(small, home / "env", home / "env")
    for uid in (other.uid, 0):
        for path in [env, *env.rglob("*")]:
            os.chown(path, uid, uid, follow_symlinks=False)
        assert python(user, env).stdout == "fine\n"
    for path in env.rglob("*"):
        os.chown(path, other.uid, 100, follow_symlinks=False)
    for path in (env, env / "libexec"):
        os.chown(path, user.uid, 100)
        path.chmod(0o2775)
    assert python(user, env).stdout == "fine\n"


def files(directory: Path) -> dict:
    """What is in a tree, and when each file last changed."""
    return {path: path.lstat().st_mtime_ns for path in directory.rglob("*")}


def test_root_changes_nothing_of_another_user(user, other, tool, small, home):
    """The owner could have put links there, and programs that the change runs."""
    env = user.copy(small, home / "env", home / "env")
    victim = home / "victim"
    victim.mkdir()
    (victim / "file").touch()
    (env / "layers").symlink_to(victim)
    requirements = user.write(home / "requirements.txt", "six\n")
    before = files(home)

    def containerize(*arguments, **more):
        return subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=300, **more)

    commands = (["update", env, "--", "true"], ["rollback", env], ["squash", env], ["profile", env, "--", "python", "-c", "pass"],
                ["new", "--force", "--prefix", env, requirements])
    for arguments in commands:
        done = containerize(*arguments)
        assert done.returncode == 2 and f"{env}: this directory belongs to another user" in done.stderr, done.stderr
    assert files(home) == before
    (env / "layers").unlink()
    for group in (0, 100):  # who gives a group write access need not be in it
        os.chown(env, user.uid, group)
        env.chmod(0o2775)
        done = containerize("update", env, "--", "true", extra_groups=[100])
        assert done.returncode == 2 and f"{env}: this directory belongs to another user" in done.stderr, done.stderr
    # A user who is root only in name may change what the user's group maintains. The machine's root stays root.
    os.chown(env, other.uid, 100)
    env.chmod(0o2775)
    as_root = ["unshare", "--map-root-user"]
    as_somebody = ["unshare", "--map-user=4321", "--map-group=100"]
    update = [tool, "update", env, "--", "true"]
    for names in (as_root, [*as_root, *as_root]):
        assert "Nothing changed" in user.run(*names, *update, extra_groups=[100]).stdout
    for names in (as_root, [*as_root, *as_root], as_somebody, [*as_somebody, *as_root]):
        done = subprocess.run([*names, *update], capture_output=True, text=True, timeout=300, extra_groups=[100])
        assert done.returncode == 2 and f"{env}: this directory belongs to another user" in done.stderr, done.stderr
    empty = owned(home / "empty", user.uid)
    done = containerize("new", "--prefix", empty, requirements)
    assert done.returncode == 2 and f"{empty}: this directory belongs to another user" in done.stderr and not files(empty), done.stderr


def test_root_on_a_filesystem_that_gives_its_files_to_nobody(tool, only_python, place, home):
    """As NFS does with root_squash. A build in two steps fails before the first."""
    for name in ("lower", "upper", "work", "squashed"):
        (home / name).mkdir()
    home.chmod(0o755)
    spec = home / "spec.txt"
    spec.write_text(only_python)
    options = f"lowerdir={home}/lower,upperdir={home}/upper,workdir={home}/work,squash_to_uid=65534,squash_to_gid=65534,allow_other"
    subprocess.run(["fuse-overlayfs", "-o", options, home / "squashed"], check=True)
    try:
        prefix = home / "squashed/above/env"

        def new(*options):
            return subprocess.run([tool, "new", "--prefix", prefix, *options, spec], capture_output=True, text=True, timeout=300,
                                  env={**os.environ, "HOME": str(home)})

        done = new("--layout", "profile")
        assert done.returncode == 2 and f"{prefix}: root's files belong to another user on this filesystem" in done.stderr, done.stderr
        assert "Packing" not in done.stderr and not list((home / "squashed").iterdir()), done.stderr
        assert new("--no-profile").returncode == 0
        assert prefix.stat().st_uid == 65534
    finally:
        subprocess.run(["umount", "--lazy", home / "squashed"], check=True)


def test_a_directory_that_all_users_can_write_to_is_not_changed(user, other, tool, small, home):
    env = user.copy(small, home / "env", home / "env")
    for uid in (user.uid, other.uid):
        os.chown(env, uid, uid)
        env.chmod(0o777)
        for arguments in (["update", env, "--", "true"], ["profile", env, "--", "python", "-c", "pass"]):
            done = user.run(str(tool), *arguments, check=False)
            assert done.returncode == 2 and f"{env}: all users can write to this directory" in done.stderr, done.stderr
    # A group that maintains an installation may change it.
    os.chown(env, other.uid, 100)
    env.chmod(0o2775)
    assert "Nothing changed" in user.run(str(tool), "update", env, "--", "true", extra_groups=[100]).stdout


@pytest.fixture(scope="module")
def built_in_tmp(make, tmp_path_factory):
    """An installation that was built below /tmp; its scripts contain that path."""
    kept = tmp_path_factory.mktemp("kept") / "env"
    built = make(TMP / "firstplace", "six==1.16.0\n")
    subprocess.run(["cp", "-a", str(built), str(kept)], check=True)
    shutil.rmtree(built)
    (TMP / "firstplace-requirements.txt").unlink()
    return kept


@pytest.mark.parametrize("maker", ["nobody", "other", "user"])
def test_a_first_path_that_anybody_may_make(user, other, built_in_tmp, home, trap, maker):
    """While a session runs, its owner or a cleaner of /tmp removes the mount point, and another user takes the path."""
    moved = home / "moved"
    subprocess.run(["cp", "-a", str(built_in_tmp), str(moved)], check=True)
    first = TMP / "firstplace"
    if maker != "nobody":
        owned(first, {"other": other, "user": user}[maker].uid)
    running = user.start(f"{moved}/bin/python", "-c", "print('up', flush=True); input()", stdin=subprocess.PIPE)
    assert next_line(running.stdout) == ""  # it does not start
    if first.exists():
        first.rmdir()
    trap.plant(first / "bin/python")
    done = user.run(f"{moved}/bin/pip", "--version", check=False)
    said = running.communicate("\n", timeout=60)[1]
    trap.assert_nobody_was_caught()
    assert running.returncode == done.returncode == 1
    assert "/tmp: everybody can write to it" in said and "Build the installation again where it is now" in said


def test_a_first_path_in_a_directory_of_another_user(user, other, small, home, grounds, trap):
    """The directory and its entries are made in memory, so that nobody can take the path away."""
    theirs = owned(grounds / "theirs", other.uid)
    below = owned(theirs / "below", other.uid)
    other.write(below / "data", "seen")
    first = below / "env"
    moved = user.copy(small, home / "moved", first)
    code = f"import os; print(open({str(below / 'data')!r}).read(), flush=True); os.execv({str(first / 'bin/python')!r}, ['python', '-c', 'print(2)'])"
    running = user.start(f"{moved}/bin/python", "-c", "print('up', flush=True); input()", stdin=subprocess.PIPE)
    assert next_line(running.stdout) == "up\n"
    assert python(user, moved, code).stdout == "seen\n2\n"
    trap.shell('mv "$1" "$1.away"; mkdir "$1"', below)
    trap.plant(first / "bin/python")
    assert python(user, moved, code).stdout == "seen\n2\n"
    running.communicate("\n", timeout=60)
    trap.assert_nobody_was_caught()


def test_a_moved_installation_of_a_colleague(user, other, small, grounds, trap):
    theirs = owned(grounds / "theirs", other.uid)
    moved = other.copy(small, theirs / "moved", theirs / "env")
    assert python(user, moved, f"import os; print(os.listdir({str(theirs / 'env')!r}) == os.listdir({str(moved)!r}))").stdout == "True\n"
    trap.shell('mkdir "$1"', theirs / "env")
    assert python(user, moved).stdout == "fine\n"


def test_a_moved_installation_in_a_projects_directory(user, other, small, home, grounds, trap):
    """The project's members decide over both paths, but not over what runs from the user's home."""
    project = owned(grounds / "project", 0, user.entry.pw_gid, 0o2775)
    moved = user.copy(small, project / "moved", project / "env")
    assert python(user, moved, f"open({str(project / 'written')!r}, 'w').write('x'); print('fine')").stdout == "fine\n"
    assert (project / "env").stat().st_uid == user.uid
    sent_home = user.copy(small, home / "moved", project / "env")
    done = python(user, sent_home, check=False)
    assert done.returncode == 1 and f"{project}: its group can write to it" in done.stderr


def test_a_first_path_where_the_user_alone_decides(user, small, home, trap):
    moved = user.copy(small, home / "moved", home / "below/env")
    assert python(user, moved).stdout == "fine\n"
    assert (home / "below/env").stat().st_uid == user.uid


# Plays the supervisor of the session in a directory until its input ends: holds the session's lock and listens at its socket.
IMPOSTOR = """
import fcntl, os, socket, sys
os.chdir(sys.argv[1])
os.chmod("lock", 0o666)
lock = open("lock", "r+")
fcntl.lockf(lock, fcntl.LOCK_EX, 1)
control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
control.bind("control")
os.chmod("control", 0o777)
control.listen()
control.setblocking(False)
print("ready", flush=True)
sys.stdin.read()
try:
    control.accept()
    print("somebody came")
except BlockingIOError:
    print("nobody came")
"""


@pytest.fixture
def gone(user, small, sessions, trap):
    """What the other user can copy of a session, here one that is gone: a directory of its name, with a lock and a plan. The plan sets
    one more variable."""
    place = Path(tempfile.mkdtemp(dir="/opt"))
    place.chmod(0o755)
    python(user, small)
    (session,) = sessions.state.glob("v*-*")
    (plan,) = session.glob("plan-*")
    content = plan.read_bytes()
    assert content.endswith(b"\0end\0")
    copy = owned(place / session.name, 0)
    (copy / plan.name).write_bytes(content.removesuffix(b"end\0") + b"Es\0PLANTED\0yes\0end\0")
    (copy / "lock").touch()
    sessions.kill_all()
    shutil.rmtree(sessions.state)
    yield copy
    shutil.rmtree(place)


PLANTED_STATE = {
    "a directory for all": 'mkdir -m 777 "$1"; cp -r "$2" "$1"; ln -s "${2##*/}" "$1/$3"',
    "a directory": 'mkdir -m 755 "$1"; cp -r "$2" "$1"; ln -s "${2##*/}" "$1/$3"',
    "a link to a directory": 'mkdir -m 777 "$1-there"; cp -r "$2" "$1-there"; ln -s "${2##*/}" "$1-there/$3"; ln -s "$1-there" "$1"',
    "a link to one of the user's": 'ln -s "$4" "$1"',
    "a link to nowhere": 'ln -s "$1-nowhere" "$1"',
    "a file": ': > "$1"',
    "a pipe": 'mkfifo "$1"',
}


@pytest.mark.parametrize("kind", PLANTED_STATE)
def test_a_planted_state_directory(user, other, small, home, trap, sessions, gone, kind):
    """A directory has a session that seems alive, and the link by which a process finds the session that it is in. That it belongs to
    another user is all that is wrong with it."""
    node, mounts = gone.name.split("-")[1], os.stat("/proc/self/ns/mnt").st_ino
    owned(home / "mine", user.uid)
    trap.shell(PLANTED_STATE[kind], sessions.state, gone, f"in-{node}-{mounts}", home / "mine")
    planted = sessions.state / gone.name
    impostor = None
    try:
        if planted.is_dir():
            impostor = other.start("/usr/bin/python3", "-c", IMPOSTOR, planted, stdin=subprocess.PIPE)
            assert impostor.stdout.readline() == "ready\n", impostor.communicate()
        before = sorted(map(str, sessions.state.rglob("*"))) if sessions.state.is_dir() else []
        for _ in range(2):
            assert python(user, small, "import os; print(os.environ.get('PLANTED', 'fine'))", timeout=60).stdout == "fine\n"
        assert (sorted(map(str, sessions.state.rglob("*"))) if sessions.state.is_dir() else []) == before
        assert list((home / "mine").iterdir()) == []
        (substitute,) = TMP.glob(f"containerize-{user.uid}.*")
        assert substitute.stat().st_uid == user.uid and substitute.stat().st_mode & 0o777 == 0o700
    finally:
        if impostor:
            told, _ = impostor.communicate(timeout=60)
    assert ("directory" in kind) == (impostor is not None)
    assert impostor is None or told == "nobody came\n"


def test_all_names_of_state_directories_are_taken(user, small, home, trap, sessions):
    """The names of the cache directories of ranks are taken as well."""
    names = [f"containerize-{user.uid}{end}" for end in ("", *(f"-{i}" for i in range(8)), *(f".{i:06}" for i in range(100)))]
    trap.shell('cd "$1"; shift; mkdir -m 777 "$@"', TMP, f"containerize-cache-{user.uid}", *names)
    for _ in range(2):
        assert python(user, small).stdout == "fine\n"
    assert len(sessions.supervisors()) == 1
    assert all(list((TMP / name).iterdir()) == [] for name in names)
    profile = user.write(home / "site.yaml", "name: ours\ndescription: none\ncaches:\n  TRITON_CACHE_DIR: triton\n")
    done = user.run(f"{small}/bin/containerize-rank", "--site", str(profile), "printenv", "TRITON_CACHE_DIR", check=False)
    assert done.returncode == 0 and not done.stdout.startswith(f"{TMP}/containerize-cache-"), done.stderr
    assert list((TMP / f"containerize-cache-{user.uid}").iterdir()) == []


def test_the_state_directory_under_a_session(user, small, trap, sessions):
    """Others cannot replace, list or read it, nor connect to its socket."""
    running = user.start(f"{small}/bin/python", "-c", "print('up', flush=True); input()", stdin=subprocess.PIPE)
    assert next_line(running.stdout) == "up\n"
    (session,) = sessions.state.glob("v*-*")
    for script in ('ls "$1"', 'mv "$1" "$1.away"', 'rm -rf "$1"', 'echo x > "$2/lock"', 'cat "$2"/plan-*', ': > "$1/start.lock"',
                   'python3 -c "import socket, sys; socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1])" "$2/control"'):
        assert trap.shell(script, sessions.state, session, check=False).returncode != 0, script
    for pid in sessions.processes():
        assert trap.shell('ls "/proc/$1/root/" || kill "$1"', pid, check=False).returncode != 0
    assert python(user, small).stdout == "fine\n"
    running.communicate("\n", timeout=60)
    assert running.returncode == 0


def test_a_session_of_another_user_is_none(user, other, small, trap, sessions):
    """Each user has a session of their own for the same installation."""
    theirs = other.start(f"{small}/bin/python", "-c", "print('up', flush=True); input()", stdin=subprocess.PIPE)
    assert next_line(theirs.stdout) == "up\n"
    assert python(user, small, "import os; print(os.getuid())").stdout == f"{user.uid}\n"
    assert len(sessions.supervisors()) == 1
    theirs.communicate("\n", timeout=60)
    Sessions(other).kill_all()


def test_planted_stores_and_build_directories(user, tool, home, trap):
    """Another user has created directories with the names that the user's configuration gives."""
    store = TMP / f"bases-{user.uid}"
    mine = {"CONTAINERIZE_BASES": str(home / "bases")}
    config = user.write(home / "config.yaml", f"defaults:\n  bases: {store}\n  staging: {TMP}/build-{user.uid}\n")
    configured = {"CONTAINERIZE_CONFIG": str(config)}
    trap.shell('mkdir -m 777 "$1" "$2"', store, TMP / f"build-{user.uid}")
    done = user.run(str(tool), "base", "list", env=configured, check=False)
    assert done.returncode == 2 and f"{store} belongs to another user" in done.stderr
    spec = user.write(home / "requirements.txt", "six\n")
    done = user.run(str(tool), "new", "--prefix", str(home / "new"), str(spec), env={**configured, **mine}, check=False)
    assert done.returncode == 2 and "belongs to another user" in done.stderr and not (home / "new").exists()
    config.write_text("")
    config.chmod(0o666)
    done = user.run(str(tool), "base", "list", env={**configured, **mine}, check=False)
    assert done.returncode == 2 and f"{config}: this configuration is not used: everybody can write to it" in done.stderr


def test_an_overlay_of_another_user(user, tool, small, trap):
    """Its files would replace the installation's programs."""
    overlay = TMP / "overlay"
    trap.plant(overlay / "upper/bin/python")
    trap.plant(overlay / "made-for", f"{small}\nstate 1\n", 0o666)
    trap.shell('mkdir "$1/work"; chmod -R a+rwX "$1"', overlay)
    develop = lambda where: user.run(str(tool), "dev", "--overlay", str(where), str(small), "--", "python", "-c", "print('fine')", check=False)  # noqa: E731
    done = develop(overlay)
    assert done.returncode == 2 and f"{overlay}: it belongs to another user" in done.stderr, done.stderr
    trap.assert_nobody_was_caught()
    assert develop(TMP / "own-overlay").stdout == "fine\n"


def test_leftovers_in_a_directory_that_everybody_writes_to(user, tool, home, trap):
    """What looks like the leftover of a killed build lists files of the user's for removal."""
    shared = owned(TMP / "shared", user.uid, mode=0o1777)
    mine = user.write(shared / "mydata", "mine")
    leftover = f".containerize-shared-1@{platform.node()}"
    trap.plant(shared / leftover / ".names", "mydata\n", 0o644)
    spec = user.write(home / "requirements.txt", "six\n")
    done = user.run(str(tool), "new", "--prefix", str(shared), str(spec), check=False)
    assert done.returncode == 2 and "it contains '" in done.stderr, done.stderr
    assert mine.read_text() == "mine"


def test_staging_in_a_directory_of_another_user(user, tool, home, trap):
    """Its owner could replace the directory in which a build works."""
    trap.shell('mkdir "$1"; chmod 1777 "$1"', TMP / "theirs")
    spec = user.write(home / "requirements.txt", "six\n")
    done = user.run(str(tool), "new", "--tmpdir", str(TMP / "theirs"), "--prefix", str(home / "env"), str(spec), check=False)
    assert done.returncode != 0 and "it belongs to another user, and all users can write to it" in done.stderr, done.stderr


def test_what_others_put_into_a_store(user, other, tool, home, trap):
    store = owned(home / "bases", user.uid)
    digest = "sha256:" + "ab" * 32
    image = store / digest.replace(":", "-")
    config = {"os": "linux", "architecture": "amd64", "environment": [], "working_directory": "", "entrypoint": [], "command": []}
    description = {"format": 1, "references": ["docker://debian:13"], "digest": digest, "index_digest": digest, "config": config}
    for writer in (user, other):
        writer.write(image.with_name(image.name + ".json"), json.dumps(description))
        writer.write(image.with_name(image.name + ".sqfs"), "image")
        shown = user.run(str(tool), "base", "list", env={"CONTAINERIZE_BASES": str(store)})
        assert ("docker://debian:13" in shown.stdout) == (writer is user)
        assert ("is not used: it belongs to another user" in shown.stderr) == (writer is other)


def test_a_store_that_a_colleague_may_only_read(user, other, tool, home, trap):
    layout = Layout(home / "images")
    made = layout.image("made", [layout.layer(tar_of("bin/", ("bin/tool", "x")))], MACHINE[platform.machine()])
    layout.index("again", {MACHINE[platform.machine()]: made})
    layout.image("missing", [layout.layer(tar_of("bin/", ("bin/tool", "y")))], MACHINE[platform.machine()])
    home.chmod(0o755)
    shared = {"CONTAINERIZE_BASES": str(home / "bases")}
    pull = lambda who, name, **more: who.run(str(tool), "base", "pull", f"oci:{home}/images:{name}", env=shared, umask=0o022, **more)  # noqa: E731
    mine = pull(user, "made")
    for name in ("made", "again"):
        theirs = pull(other, name)
        assert theirs.stdout == mine.stdout and "already in the store" in theirs.stderr
    refused = pull(other, "missing", check=False)
    assert refused.returncode == 1 and "Permission denied" in refused.stderr and "Set CONTAINERIZE_BASES to another directory" in refused.stderr


def test_what_a_foreign_manifest_says_is_only_shown(user, other, tool, small, home, trap):
    env = other.copy(small, home / "env", home / "env")
    manifest = json.loads((env / "containerize.json").read_text())

    def told(*command, **changes):
        (env / "containerize.json").write_text(json.dumps({**manifest, **changes}))
        done = user.run(str(tool), *command, str(env), check=False)
        assert not any(c in done.stdout + done.stderr for c in "\x1b\x07\x9b"), done.stdout
        return done

    shown = told("inspect", created="now\x1b[2J\x9b31m\nSession       all is well", build={**manifest["build"], "python": {"version": "3\x07"}})
    assert shown.returncode == 0 and shown.stdout.count("\nSession  ") == 1
    assert told("log", created="\x1b]0;title\x07").returncode == 0
    for build in ([], "text", {"files": "many"}, {"python": "3\x1b"}, {"command": []}):
        for command in (["inspect"], ["inspect", "--json"], ["log"]):
            done = told(*command, build=build)
            assert done.returncode == 2 and "this version cannot read the manifest" in done.stderr, done.stderr
    deep = json.dumps({**manifest, "build": {"x": "DEEP"}}).replace('"DEEP"', "[" * 3_000_000 + "]" * 3_000_000)
    (env / "containerize.json").write_text(deep)
    for command in (["inspect"], ["inspect", "--json"], ["log"]):
        done = user.run(str(tool), *command, str(env), check=False)
        assert done.returncode == 2 and "nested too deeply" in done.stderr, done.stderr[:2000]
    done = python(user, env, check=False)
    assert done.returncode == 1 and "nested too deeply" in done.stderr
    (env / "containerize.json").write_text(json.dumps(manifest))
    (env / "share/packages.txt").unlink()
    other.write(env / "share/packages.txt", "six 1.0\x1b[31m\n")
    assert user.run(str(tool), "inspect", "--packages", str(env)).stdout == "six 1.0?[31m\n"
