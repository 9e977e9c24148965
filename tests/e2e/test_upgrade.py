"""Other versions of the program: old installations get new programs, and two versions are used on one node at once.

The newer version is this one, linked with another version number and another format of what launchers and sessions exchange
(tests/lib/other_version.cpp). A build of an older commit would need its sources, which an archive does not have, and minutes. This way,
both versions are real programs, their launchers and sessions cannot talk to each other, and only the linker has work to do.
"""

import json
import os
import re
import shutil
import subprocess
import threading

import pytest
from changes import made  # noqa: F401 (a fixture)
from conftest import BUILD, SOURCE, next_line
from installation import Installation
from test_import import of_pip  # noqa: F401 (a fixture)

NEWER = "99.1.0"


@pytest.fixture(scope="session")
def version(user, tool):
    return user.run(str(tool), "--version").stdout.split()[1]


@pytest.fixture()
def installed(user, tool, made, sessions):  # noqa: F811
    """An installation with this version's programs."""
    prefix, backup = made
    installation = Installation(user, tool, prefix)
    installation.restore(backup)
    yield installation
    sessions.kill_all()


@pytest.fixture()
def by_newer(installed, newer):
    """The same installation, as the newer version handles it."""
    return Installation(installed.user, newer, installed.prefix)


def launchers(installation):
    """The number of different files among the wrappers and of those in libexec."""
    wrappers = [path for path in (installation.prefix / "bin").iterdir() if os.access(path, os.X_OK) and path.name != "containerize-rank"]
    return len({path.stat().st_ino for path in wrappers}), {path.name for path in (installation.prefix / "libexec").iterdir()}


def content_is(installation, tool, *wrappers):
    launcher = (tool.parents[1] / "libexec/containerize/launcher").read_bytes()
    return all((installation.prefix / path).read_bytes() == launcher for path in wrappers)


def about(installation):
    return json.loads(installation.call("inspect", installation.prefix, "--json").stdout)


def test_version(user, tool, version):
    first, *libraries = user.run(str(tool), "--version").stdout.splitlines()
    assert re.fullmatch(r"containerize \d+\.\d+\.\d+( \(\S+\))?", first)
    assert {"libarchive", "libcurl", "libsolv", "libsquashfs", "yaml-cpp", "zstd"} <= {line.split()[0] for line in libraries}
    assert all(re.fullmatch(r"  \S+ +\d+(\.\d+)+.*", line) for line in libraries), libraries
    described = subprocess.run(["git", "-C", SOURCE, "rev-parse", "--short", "HEAD"], stdout=subprocess.PIPE, text=True, check=False)
    if described.returncode == 0:
        assert (BUILD / "share/containerize/commit").read_text().strip(), "a checkout has a commit"
        assert first == f"containerize {version} ({(BUILD / 'share/containerize/commit').read_text().strip()})"


def test_a_source_without_git(tmp_path):
    """An archive made by `git archive` has the commit in a file; nothing is known of other sources."""
    for text, expected in (("$Format:%h$\n", "\n"), ("0123abc\n", "0123abc\n")):
        (tmp_path / "src/main").mkdir(parents=True, exist_ok=True)
        (tmp_path / "src/main/commit.txt").write_text(text)
        subprocess.run(["cmake", "-D", f"SOURCE={tmp_path}", "-D", f"OUTPUT={tmp_path}/commit", "-P", SOURCE / "src/main/write_commit.cmake"], check=True)
        assert (tmp_path / "commit").read_text() == expected


def test_upgrade_while_programs_run(installed, by_newer, user, newer, version):
    installed.update("--", "sh", "-c", "echo 1 > $CONTAINERIZE_PREFIX/count")
    states, before = installed.log(), installed.manifest()
    code = "import sys, subprocess; print('up'); sys.stdin.readline(); import six; print(six.__version__); subprocess.run([sys.executable, '-c', 'print(1)'])"
    process = user.start(installed.prefix / "bin/python", "-uc", code, stdin=subprocess.PIPE)
    assert next_line(process.stdout) == "up\n"
    programs = about(by_newer)["programs"]
    command = f"containerize upgrade {installed.prefix}"
    assert programs == {"version": version, "difference": f"older than this containerize, {NEWER}", "command": command}
    assert f"Programs      of containerize {version}, older than this containerize, {NEWER}: `{command}` replaces them" in by_newer.call("inspect", installed.prefix).stdout
    for found in (["--prefix", installed.prefix], []):
        doctor = user.run(newer, "doctor", *found, "--json", env={"PATH": f"{installed.prefix}/bin:/usr/bin:/bin"}).stdout
        (finding,) = [one for one in json.loads(doctor)["findings"] if one["name"] == "installation"]
        assert finding["verdict"] == "note" and f"`{command}`" in finding["advice"] and version in finding["found"]

    said = by_newer.call("upgrade", installed.prefix).stdout
    assert said.startswith(f"Upgraded: {installed.prefix}, from version {version} to {NEWER}, ")
    assert content_is(installed, newer, "bin/python", "bin/_debug_shell")
    count, libexec = launchers(installed)
    assert count == 1 and "containerize-session-99" in libexec and len(libexec) == 2, "a launch that has begun still needs the old session program"
    assert by_newer.log() == states and installed.images()
    assert by_newer.manifest() == {**before, "programs_version": NEWER}
    assert about(by_newer)["programs"] == {"version": NEWER, "difference": "", "command": ""}
    assert by_newer.python("import six; print(six.__version__)") == "1.16.0"
    output, errors = process.communicate("go\n", timeout=60)
    assert output == "1.16.0\n1\n", errors

    times = (installed.prefix / "containerize.json").stat()
    assert by_newer.call("upgrade", installed.prefix).stdout == f"Up to date: {installed.prefix}, version {NEWER}.\n"
    assert (installed.prefix / "containerize.json").stat().st_ino == times.st_ino

    by_newer.call("rollback", installed.prefix)
    assert by_newer.current() == 1 and by_newer.manifest()["tool_version"] == version and by_newer.manifest()["programs_version"] == NEWER
    assert content_is(installed, newer, "bin/python") and launchers(installed)[1] == {"containerize-session-99"}
    assert by_newer.python("import six; print(six.__version__)") == "1.16.0"


def test_an_older_version_changes_nothing(installed, by_newer, version):
    by_newer.call("upgrade", installed.prefix)
    before = installed.files(), (installed.prefix / "containerize.json").read_bytes()
    for command in (["upgrade"], ["update", "--", "true"], ["rollback"], ["squash"], ["dev", "--", "true"], ["profile", "--", "true"]):
        done = installed.call(command[0], installed.prefix, *command[1:], check=False)
        assert done.returncode == 2 and done.stderr == (
            f"containerize: {installed.prefix}: only a newer containerize can change this installation: it was made or upgraded by containerize {NEWER}, "
            f"and this is version {version}\nUse containerize {NEWER} or newer.\n"), command
    assert (installed.files(), (installed.prefix / "containerize.json").read_bytes()) == before
    assert about(installed)["programs"] == {"version": NEWER, "difference": f"newer than this containerize, {version}", "command": ""}
    assert "--prefix" not in installed.call("doctor", "--prefix", installed.prefix).stdout
    text = json.loads(before[1])
    (installed.prefix / "containerize.json").write_text(json.dumps({**text, "format": text["format"] + 1}))
    for command in ("inspect", "log", "squash"):
        done = installed.call(command, installed.prefix, check=False)
        assert done.returncode == 2 and "only a newer containerize can use this installation" in done.stderr and NEWER in done.stderr, command


def test_two_versions_at_once(installed, by_newer, user, newer, work, sessions):
    """Programs of an installation call those of another one, which has programs of another version."""
    other = Installation(user, newer, work / "other")
    other.new(user.write(work / "other.txt", "six==1.15.0\n"))
    code = "import subprocess, sys, six; print(six.__version__, end=' ', flush=True); subprocess.run([*sys.argv[1:]], check=True) if sys.argv[1:] else print()"
    first, second = installed.prefix / "bin/python", other.prefix / "bin/python"
    for one, two, expected in ((first, second, "1.16.0 1.15.0 1.16.0"), (second, first, "1.15.0 1.16.0 1.15.0")):
        assert user.run(one, "-c", code, two, "-c", code, one, "-c", code).stdout.split() == expected.split()
    formats = {path.name.split("-")[0] for path in sessions.state.iterdir() if path.name.startswith("v")}
    assert "v99" in formats and len(formats) == 2


def test_launches_during_upgrades(installed, by_newer, user, made):  # noqa: F811
    """A program that is started at any moment of an upgrade runs."""
    for _ in range(3):
        installed.restore(made[1])
        failures, done, rounds = [], threading.Event(), []

        def launch():
            while not done.is_set():
                ended = user.run(installed.prefix / "bin/python", "-c", "import six", check=False, env={"CONTAINERIZE_SESSION_IDLE": "0"})
                rounds.append(ended.returncode)
                if ended.returncode != 0 or ended.stderr:
                    failures.append(ended.stderr)

        threads = [threading.Thread(target=launch) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            by_newer.call("upgrade", installed.prefix)
        finally:
            done.set()
            for thread in threads:
                thread.join()
        assert not failures and rounds
        assert by_newer.python("print(1)") == "1"


def test_wrapper_paths_and_symlinks(installed, by_newer, user, newer):
    """All directories of wrappers are upgraded, also where the old version could not make hard links."""
    script = "mkdir -p opt/tool/bin; printf '#!/bin/sh\\necho tool\\n' > opt/tool/bin/tool; chmod +x opt/tool/bin/tool"
    installed.update("-w", "opt/tool/bin", "--", "sh", "-c", f"cd $CONTAINERIZE_PREFIX; {script}")
    for path in (installed.prefix / "bin").iterdir():
        if os.access(path, os.X_OK) and path.name not in ("_debug_exec", "containerize-rank", "tool"):
            path.unlink()
            path.symlink_to("_debug_exec")
    tool = installed.prefix / "opt/tool/bin/tool"
    tool.unlink()
    tool.symlink_to("../../../bin/_debug_exec")
    by_newer.call("upgrade", installed.prefix)
    assert content_is(installed, newer, "bin/python", "opt/tool/bin/tool") and not tool.is_symlink() and launchers(installed)[0] == 1
    for wrapper in (tool, installed.prefix / "bin/tool"):
        assert user.run(wrapper).stdout == "tool\n"


def test_an_imported_installation(user, tool, newer, work, of_pip):  # noqa: F811
    imported = Installation(user, tool, work / "imported")
    imported.call("import-tykky", of_pip.directory, imported.prefix)
    before = user.run(imported.prefix / "bin/python", "-c", "import sys; print(sys.prefix)").stdout
    user.run(newer, "upgrade", imported.prefix)
    assert content_is(imported, newer, "bin/python")
    assert user.run(imported.prefix / "bin/python", "-c", "import sys; print(sys.prefix)").stdout == before


def test_several_of_which_some_fail(installed, by_newer, user, newer, version, work):
    copies = [user.copy(installed.prefix, work / name, work / name) for name in ("read-only", "foreign", "good")]
    copies[0].chmod(0o555)
    if os.getuid() == 0:
        for path in [copies[1], *copies[1].rglob("*")]:
            os.chown(path, 0, 0, follow_symlinks=False)
    else:
        shutil.rmtree(copies[1])
    done = user.run(newer, "upgrade", work / "missing", *copies, check=False)
    assert done.returncode == 2  # all that failed are directories that cannot be upgraded
    assert [line.split(": ")[1] for line in done.stderr.splitlines() if line.startswith("containerize: ")] == [str(work / "missing"), *map(str, copies[:2])]
    assert done.stdout.startswith(f"Upgraded: {copies[2]}, from version {version} to {NEWER}, ") and done.stdout.count("\n") == 1
    assert user.run(copies[2] / "bin/python", "-c", "print(1)").stdout == "1\n"
    assert Installation(user, newer, copies[0]).manifest()["programs_version"] == version
    one = user.run(newer, "upgrade", copies[0], check=False)
    assert one.returncode == 2 and "cannot write to the prefix" in one.stderr


def test_going_back_by_a_replacement(installed, by_newer, user, version, work):
    """`new --force` replaces everything, so it may also be an older version's."""
    by_newer.call("upgrade", installed.prefix)
    installed.new(user.write(work / "requirements.txt", "six==1.15.0\n"), "--force")
    assert installed.manifest()["programs_version"] == version
    assert installed.python("import six; print(six.__version__)") == "1.15.0"
