"""Cold starts: what programs read first is recorded, and later sessions read it ahead."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from conftest import BUILD, eventually, next_line, resend_is_possible, unique_uid
from test_session import HASH_TREE, assert_64_at_once_say_up

AHEAD = {"CONTAINERIZE_PREFETCH": "on"}
# Slow enough that programs start while the image is still being read ahead.
SLOW = {**AHEAD, "CONTAINERIZE_DEBUG_READ_DELAY": "20000"}
# In small requests, one after another, which takes several seconds.
SLOWEST = {**SLOW, "CONTAINERIZE_PREFETCH": "on:64K:1"}
IMPORTS = "import numpy, requests, pygments; print('up')"


@pytest.fixture(autouse=True)
def no_session_before(sessions):
    sessions.kill_all()


@pytest.fixture()
def stats(user, tool):
    return lambda prefix: json.loads(user.run(str(tool), "stats", "--json", str(prefix)).stdout)


@pytest.fixture()
def inspect(user, tool):
    return lambda prefix: json.loads(user.run(str(tool), "inspect", "--json", str(prefix)).stdout)


@pytest.fixture()
def copy(user, env, work):
    return user.copy(env, work / "env", work / "env")


@pytest.fixture()
def reads_ahead(sessions, stats):
    """reads_ahead(PREFIX) is how often its server, the only one, has read ahead. Waits until the server reads ahead or has decided not to."""

    def threads():
        """Without those that answer requests, which have this name. One waits for the end of the supervisor, the others read ahead."""
        (server,) = sessions.servers()
        names = [file.read_text() for file in Path(f"/proc/{server}/task").glob("*/comm")]
        assert "containerize-fs\n" in names
        return [name for name in names if name != "containerize-fs\n"]

    def count(prefix):
        eventually(lambda: stats(prefix)["prefetch"]["reads"] > 0 or len(threads()) == 1)
        return stats(prefix)["prefetch"]["reads"]

    return count


def python(user, prefix, code, environment=AHEAD, **more):
    return user.run(f"{prefix}/bin/python", "-c", code, env=environment, **more)


def test_a_mistake_in_the_variable_is_told_once(user, env, sessions):
    first, second = (python(user, env, "print('up')", {"CONTAINERIZE_PREFETCH": "onn"}) for _ in range(2))
    assert first.stdout == second.stdout == "up\n"
    assert "warning: CONTAINERIZE_PREFETCH: invalid prefetch setting: 'onn'" in first.stderr and not second.stderr
    sessions.kill_all()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a process namespace for another user")
def test_few_threads_are_enough(user, env):
    """The process limit counts all of a user's processes. This user has nothing but the program, the session and its server."""
    # When the command ends, its pid namespace ends with everything it has started.
    uid = unique_uid()
    alone = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]

    def run(limit):
        return subprocess.run([*alone, "prlimit", f"--nproc={limit}", f"{env}/bin/python", "-c", "import pygments; print('up')"], capture_output=True,
                              text=True, timeout=60, env={**user.environment, **AHEAD, "HOME": "/tmp"}, stdin=subprocess.DEVNULL)

    limit = 1
    while (done := run(limit)).returncode != 0:
        assert "Resource temporarily unavailable" in done.stderr, (limit, done.stderr)
        limit += 1
        assert limit < 20
    for more in range(1, 8):
        assert run(limit + more).stdout == "up\n", more


def test_what_is_imported_is_read_ahead_in_few_requests(user, env, sessions, stats, inspect):
    profile = inspect(env)["profile"]
    assert profile["blocks"] > 50
    assert python(user, env, IMPORTS, {"CONTAINERIZE_PREFETCH": "off"}).stdout == "up\n"
    without = stats(env)
    assert without["prefetch"]["reads"] == 0
    sessions.kill_all()
    assert python(user, env, IMPORTS, SLOW).stdout == "up\n"
    eventually(lambda: stats(env)["prefetch"]["reads"] == profile["requests"])
    ahead = stats(env)
    assert ahead["requests"]["lookup"] > 100
    assert ahead["prefetch"]["used"] > 0.5 * profile["bytes"], "the build recorded the imports of all packages"
    # Besides the blocks read ahead, it reads the tables, and what is read differently from the recorded run.
    assert ahead["reads"] - profile["requests"] < without["reads"] / 4
    assert ahead["blocks_wanted"] == pytest.approx(without["blocks_wanted"], rel=0.2)


def test_what_nobody_wants_is_given_up(user, env, stats, inspect):
    """Only the interpreter runs, so the server drops the other blocks that it has read ahead."""
    python(user, env, "pass")
    eventually(lambda: stats(env)["prefetch"]["dropped"] > 0, seconds=60)
    assert stats(env)["prefetch"]["bytes"] <= 256 << 20
    assert python(user, env, IMPORTS).stdout == "up\n"


def test_images_on_the_nodes_own_disk_are_not_read_ahead(user, env, reads_ahead, sessions):
    python(user, env, IMPORTS, None)
    assert reads_ahead(env) == 0
    sessions.kill_all()
    python(user, env, IMPORTS)
    assert reads_ahead(env) > 0, "if it is asked for"


@pytest.fixture()
def slow_place(user, work):
    """A directory of the user's, and the same directory seen through a slow filesystem."""
    directory, mounted = user.directory(work), work / "slow"
    mounted.mkdir()
    server = subprocess.Popen([BUILD / "tests/slow_filesystem", directory, mounted, "2000"])
    eventually(lambda: os.path.ismount(mounted))
    yield directory, mounted
    subprocess.run(["umount", "--lazy", str(mounted)], check=True)
    server.wait(60)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may show a filesystem to others")
def test_images_on_a_slow_filesystem_are(user, env, sessions, stats, inspect, slow_place):
    directory, mounted = slow_place
    user.copy(env, directory / "env", mounted / "env")
    moved = mounted / "env"
    expected = user.run(f"{env}/bin/python", "-c", HASH_TREE, f"{env}/lib").stdout
    assert python(user, moved, IMPORTS, None).stdout == "up\n"
    eventually(lambda: stats(moved)["prefetch"]["reads"] == inspect(moved)["profile"]["requests"])
    assert stats(moved)["prefetch"]["used"] > 0
    assert user.run(f"{moved}/bin/python", "-c", HASH_TREE, f"{moved}/lib").stdout == expected
    sessions.kill_all()  # the filesystem cannot be unmounted while they use it


def test_64_ranks_that_come_while_it_is_read(user, env, sessions):
    assert_64_at_once_say_up(lambda: python(user, env, IMPORTS, SLOW, check=False))
    assert len(sessions.servers()) == 1


@pytest.mark.skipif(not resend_is_possible(), reason="a killed server can be replaced from Linux 6.9 on")
def test_server_killed_while_it_reads_ahead(user, env, sessions, stats):
    expected = user.run(f"{env}/bin/python", "-c", HASH_TREE, f"{env}/lib").stdout
    for _ in range(5):
        sessions.kill_all()
        reader = user.start(f"{env}/bin/python", "-c", "print('begun', flush=True)\n" + HASH_TREE, f"{env}/lib", env=SLOWEST)
        assert next_line(reader.stdout) == "begun\n"
        eventually(lambda: stats(env)["prefetch"]["reads"] > 0)  # killing the server now must not be visible
        os.kill(sessions.servers()[0], signal.SIGKILL)
        out, err = reader.communicate(timeout=120)
        assert (out, err, reader.returncode) == (expected, "", 0)


def blocks_in(profile):
    """The start offsets of all blocks."""
    places = set()
    for line in profile.splitlines()[2:]:
        start, sizes = line.split()
        for size in sizes.split(","):
            places.add(int(start))
            start = int(start) + (int(size) & 0xFFFFFF)
    return places


def damaged(kind, text):
    lines = text.splitlines(keepends=True)
    digest = lines[1].split()[1]
    if kind == "of another image":
        return text.replace(digest, digest[::-1])
    if kind == "cut short":
        return text[: len(text) // 2]
    if kind == "empty":
        return ""
    if kind == "of another version":
        return text.replace("profile 1", "profile 7")
    if kind == "no text":
        return "\0" * 5000
    if kind == "beyond the image":
        return "".join(lines[:2]) + "".join(f"{(1 << 40) + i * 4096} 4096\n" for i in range(5000))
    if kind == "other blocks":  # with the right offsets, but wrong sizes and flags
        return "".join(lines[:2]) + "".join(f"{line.split()[0]} {(1 << 24) + 77 + i}\n" for i, line in enumerate(lines[2:]))
    raise ValueError(kind)


@pytest.mark.parametrize("kind", ["of another image", "cut short", "empty", "of another version", "no text", "beyond the image", "other blocks"])
def test_profiles_that_are_none(user, env, copy, sessions, reads_ahead, kind):
    expected = user.run(f"{env}/bin/python", "-c", HASH_TREE, f"{env}/lib").stdout
    sessions.kill_all()
    profile = copy / "env.sqfs.profile"
    user.write(profile, damaged(kind, profile.read_text()))
    assert python(user, copy, HASH_TREE, AHEAD, check=False).returncode == 1  # fails with an IndexError as usual, because it gets no argument
    assert user.run(f"{copy}/bin/python", "-c", HASH_TREE, f"{copy}/lib", env=AHEAD).stdout == expected
    if kind != "other blocks":
        assert reads_ahead(copy) == 0


@pytest.mark.parametrize("kind", ["link", "pipe", "directory", "unreadable"])
def test_profiles_that_are_no_files(user, copy, reads_ahead, kind):
    profile = copy / "env.sqfs.profile"
    content = profile.read_text()
    profile.unlink()
    if kind == "link":
        profile.symlink_to(user.write(copy / "elsewhere", content))
    elif kind == "pipe":
        os.mkfifo(profile)
    elif kind == "directory":
        profile.mkdir()
    else:
        profile.write_text(content)
        profile.chmod(0)
    assert python(user, copy, IMPORTS).stdout == "up\n"
    assert reads_ahead(copy) == 0


def test_a_job_is_recorded(user, tool, env, copy, sessions, inspect):
    profile = copy / "env.sqfs.profile"
    everything = inspect(copy)["profile"]
    done = user.run(str(tool), "profile", str(copy), "--replace", "--", "python", "-c", "import json, sys; print(sys.argv)", "a b", "--x")
    assert done.stdout == "['-c', 'a b', '--x']\n"
    assert "Recorded" in done.stderr
    assert not sessions.processes(), "its session is its own, and ends with it"
    start = inspect(copy)["profile"]
    assert 0 < start["blocks"] < everything["blocks"]
    first = profile.read_text()
    user.run(str(tool), "profile", str(copy), "--", "python", "-c", "import numpy")
    both = inspect(copy)["profile"]
    assert start["blocks"] < both["blocks"] <= everything["blocks"] * 1.1
    # A new recording goes first; what earlier ones had is kept.
    user.run(str(tool), "profile", str(copy))
    assert inspect(copy)["profile"]["blocks"] >= both["blocks"]
    user.run(str(tool), "profile", str(copy), "--replace", "--", "python", "-c", "import json, sys")
    assert inspect(copy)["profile"]["blocks"] == pytest.approx(start["blocks"], rel=0.1)
    assert first.splitlines()[:2] == profile.read_text().splitlines()[:2]


def test_a_job_that_fails_is_recorded_and_says_so(user, tool, copy, inspect):
    before = inspect(copy)["profile"]["blocks"]
    done = user.run(str(tool), "profile", str(copy), "--replace", "--", "python", "-c", "raise SystemExit(7)", check=False)
    assert done.returncode == 7
    assert "Recorded" in done.stderr
    assert "so the earlier recording is also kept" in done.stderr and inspect(copy)["profile"]["blocks"] >= before
    done = user.run(str(tool), "profile", str(copy), "--", "no-such-program", check=False)
    assert done.returncode != 0


def test_stats_for_people_and_where_there_is_no_session(user, tool, env, work):
    done = user.run(str(tool), "stats", str(env), check=False)
    assert done.returncode == 1
    assert "no session" in done.stderr
    assert user.run(str(tool), "stats", str(work), check=False).returncode == 2
    python(user, env, IMPORTS)
    text = user.run(str(tool), "stats", str(env)).stdout
    assert [line.split()[0] for line in text.splitlines()] == ["Requests", "Image", "Cache", "Read"]
    assert "lookup" in text
    assert "recorded, in" in user.run(str(tool), "inspect", str(env)).stdout


def test_what_a_build_records(user, make, only_python, tool, work, inspect):
    assert inspect(make(work / "none", only_python, "--no-profile"))["profile"] is None
    assert not (work / "none/env.sqfs.profile").exists()
    start = inspect(make(work / "start", only_python, "--profile", "python -c pass"))["profile"]
    more = inspect(make(work / "more", only_python, "--profile", "python -c pass", "--profile", "python -m this; python -c 'import xml.dom.minidom, email.parser'"))["profile"]
    assert 0 < start["blocks"] < more["blocks"]
    spec = user.write(work / "r.txt", only_python)
    done = user.run(str(tool), "new", "--prefix", str(work / "fails"), "--profile", "exit 3", str(spec), check=False)
    assert done.returncode == 0, "what was built is there"
    assert "warning" in done.stderr
    assert user.run(str(tool), "new", "--prefix", str(work / "x"), "--profile", "true", "--no-profile", str(spec), check=False).returncode == 2
    assert user.run(str(tool), "new", "--prefix", str(work / "x"), "--layout", "profile", "--no-profile", str(spec), check=False).returncode == 2
    assert user.run(str(tool), "new", "--prefix", str(work / "x"), "--layout", "best", str(spec), check=False).returncode == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_recording_leaves_no_import_behind(user, tool, copy, work, number):
    imported = work / "pid"
    (work / "path/slow-1.dist-info").mkdir(parents=True)
    user.write(work / "path/slow.py", f"import os, time\nopen({str(imported)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    user.write(work / "path/slow-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: slow\nVersion: 1\n")
    user.write(work / "path/slow-1.dist-info/top_level.txt", "slow\n")
    process = user.start(str(tool), "profile", str(copy), env={"PYTHONPATH": str(work / "path")})
    eventually(lambda: imported.exists() and imported.read_text())
    running = Path("/proc") / imported.read_text()
    assert running.exists()
    process.send_signal(number)
    assert process.wait(60) == 128 + number
    assert not running.exists()


def test_profiles_through_updates_and_squashing(user, tool, make, work, stats, sessions, inspect):
    prefix = make(work / "env", "six==1.16.0\nrequests\n")
    base = (prefix / "env.sqfs.profile").read_text()
    user.run(str(tool), "update", str(prefix), "--", "pip", "install", "Pygments")
    layer = next((prefix / "layers").glob("*.profile"))
    assert blocks_in(base) <= blocks_in((prefix / "env.sqfs.profile").read_text())
    assert layer.read_text().count("\n") > 2
    code = "import requests, pygments; print('up')"
    assert python(user, prefix, code).stdout == "up\n"
    eventually(lambda: stats(prefix)["prefetch"]["reads"] > 1)
    sessions.kill_all()

    before = inspect(prefix)["profile"]
    user.run(str(tool), "squash", str(prefix))
    assert [path.name for path in prefix.glob("*.profile")] == [inspect(prefix)["image"]["file"] + ".profile"]
    assert not list(prefix.glob("layers/*"))
    squashed = inspect(prefix)["profile"]
    assert squashed["bytes"] == pytest.approx(before["bytes"], rel=0.5)
    user.run(str(tool), "squash", "--layout", "profile", str(prefix))
    placed = inspect(prefix)["profile"]
    assert placed["requests"] < squashed["requests"]
    assert placed["requests"] <= 4
    assert "is already one image" in user.run(str(tool), "squash", str(prefix)).stdout, "what is not asked for stays"
    user.run(str(tool), "squash", "--layout", "path", str(prefix))
    assert inspect(prefix)["profile"]["requests"] > placed["requests"]
    user.run(str(tool), "squash", "--layout", "profile", str(prefix))
    tree = user.run(f"{prefix}/bin/python", "-c", HASH_TREE, f"{prefix}/lib").stdout
    subprocess.run(["unsquashfs", "-q", "-n", "-d", str(work / "tree"), str(prefix / inspect(prefix)["image"]["file"])], check=True)
    assert user.run("/usr/bin/python3", "-c", HASH_TREE, str(work / "tree/lib")).stdout == tree
    assert python(user, prefix, code, SLOW).stdout == "up\n"


def test_an_image_with_the_recorded_files_first(user, make, env, work, sessions, inspect):
    prefix = make(work / "env", "numpy\nrequests\nPygments\n", "--layout", "profile")
    sessions.kill_all()
    assert inspect(prefix)["profile"]["requests"] < inspect(env)["profile"]["requests"]
    code = HASH_TREE.replace("sys.argv[1]", "sys.prefix + '/lib'") + IMPORTS
    paths = "import os, sys; print(sum(len(files) for _, _, files in os.walk(sys.prefix + '/lib')))"
    assert python(user, prefix, paths).stdout == python(user, env, paths).stdout
    assert python(user, prefix, code).stdout.endswith("up\n")
