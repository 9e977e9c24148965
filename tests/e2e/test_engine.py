"""The same installation run natively and by Apptainer: programs see no difference.

Debian 12 has no Apptainer, so programs run in a root filesystem of Debian unstable. Installations are built outside of it."""

import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess

import pytest

from conftest import IN_A_NAMESPACE_WITHOUT_FURTHER_ONES, eventually, next_line

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can enter another root directory")

CONTAINER = {"CONTAINERIZE_ENGINE": "apptainer"}
SHOW = "import sys, os, json; print(json.dumps([sys.argv[1:], sys.executable, sys.prefix, os.getcwd()]))"


@pytest.fixture(scope="session")
def env(make, place):
    """An installation that needs nothing from Debian 12. Tests only read it."""
    return make(place / "bundled", "six==1.16.0\n", "--bundle-python")


@pytest.fixture(scope="session")
def scripts(user, tool, place):
    """An installation that can be copied and moved, because nothing in it contains its path. Tests only read it."""
    source = user.directory(place) / "software"
    for directory in (source, source / "bin", source / "share"):
        directory.mkdir()
    user.write(source / "share/text", "first\n")
    user.write(source / "share/gone", "soon\n")
    user.write(source / "bin/show", '#!/bin/sh\ncd "${0%/*}/../share" && cat text && ls && cat /proc/self/mountinfo\n', 0o755)
    shutil.copy("/bin/busybox", source / "bin/box")
    user.run(str(tool), "wrap-install", "--prefix", str(place / "scripts"), "-w", "bin", str(source))
    return place / "scripts"


@pytest.fixture(scope="session")
def updated(user, tool, place, scripts):
    """A copy of `scripts` with a layer that adds, replaces and removes files."""
    prefix = user.copy(scripts, place / "updated", place / "updated")
    user.run(str(tool), "update", str(prefix), "--", "sh", "-c", f"cd {prefix}/share; echo second > text; echo new > added; rm gone")
    return prefix


@pytest.fixture(params=["native", "apptainer"])
def engine(request):
    return {"CONTAINERIZE_ENGINE": request.param}


def python(machine, prefix, code, *arguments, **more):
    return machine.run(f"{prefix}/bin/python", "-c", code, *arguments, **more).stdout


def inside(machine, prefix, **more):
    """Whether the container runtime ran it, which mounts with squashfuse. Mounts that were there before do not count."""
    others = machine.run("cat", "/proc/self/mountinfo").stdout.count("squashfuse")
    return python(machine, prefix, "print(open('/proc/self/mountinfo').read())", **more).count("squashfuse") > others


def test_the_engine_is_the_one_that_was_asked_for(machine, env):
    assert not inside(machine, env)
    assert not inside(machine, env, env={"CONTAINERIZE_ENGINE": "native"})
    assert inside(machine, env, env=CONTAINER)
    done = machine.run(f"{env}/bin/python", "-c", "", env={"CONTAINERIZE_ENGINE": "docker"}, check=False)
    assert done.returncode == 2 and "unknown engine: 'docker'" in done.stderr
    # Apptainer also installs a command of that name.
    assert inside(machine, env, env={"CONTAINERIZE_ENGINE": "singularity"})


def test_packages_and_paths(machine, env, engine, work):
    arguments, executable, prefix, directory = json.loads(python(machine, env, SHOW, "a b", "it's", "", "$HOME", "line\nbreak", env=engine, cwd=work))
    assert arguments == ["a b", "it's", "", "$HOME", "line\nbreak"]
    assert [executable, prefix, directory] == [f"{env}/bin/python", str(env), str(work)]
    assert python(machine, env, "import six; print(six.__version__)", env=engine) == "1.16.0\n"
    assert "pip" in machine.run(f"{env}/bin/pip", "--version", env=engine).stdout


def test_arguments_are_bytes(machine, env, engine):
    code = "import sys, os; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    arguments = [b"\xff\xfe", b"--", b"-c", b"*", b"a\\b", b'"']
    done = machine.run(f"{env}/bin/python", "-c", code, *arguments, env=engine, text=False)
    assert done.stdout == b"\0".join(arguments)


def test_environment_is_the_same(machine, env):
    """The whole environment, including names and values that a shell in between would lose, and those that container runtimes set."""
    given = {
        "A": "1", "EMPTY": "", "WITH_NEWLINE": "a\nb", "BASH_FUNC_f%%": "() { :; }", "a.b-c": "dots", "PYTHONHOME": "/nonsense",
        "PATH": f"/opt/x:{env}/bin:/usr/bin:/bin", "LD_LIBRARY_PATH": "/nowhere/lib", "PS1": "me> ", "PROMPT_COMMAND": "true",
        "APPTAINERENV_PATH": "/wrong", "SINGULARITYENV_A": "wrong", "APPTAINER_BIND": "/nowhere", "APPTAINER_CLEANENV": "1", "CONTAINERIZE_ENGINE": "native",
    }
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    native = json.loads(python(machine, env, code, env=given))
    container = json.loads(python(machine, env, code, env={**given, **CONTAINER}))
    assert native["PATH"] == f"{env}/bin:/opt/x:/usr/bin:/bin" and "PYTHONHOME" not in native
    for variables in (native, container):
        del variables["CONTAINERIZE_ENGINE"]
    assert container == native


def test_programs_are_found_without_path(machine, env, engine):
    assert python(machine, env, "import os; print(os.environ['PATH'])", env={**engine, "PATH": None}) == f"{env}/bin:/usr/bin:/bin\n"


def test_exit_codes(machine, env, engine):
    for code in [0, 1, 42, 126, 127, 128, 254, 255]:
        assert machine.run(f"{env}/bin/python", "-c", f"raise SystemExit({code})", env=engine, check=False).returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1])
def test_death_by_signal(machine, env, engine, number):
    code = f"import os; os.kill(os.getpid(), {int(number)})"
    assert machine.run(f"{env}/bin/python", "-c", code, env=engine, check=False).returncode == -number


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP])
def test_signals_reach_the_program(machine, env, engine, number):
    code = f"import signal, time; signal.signal({int(number)}, lambda *a: exit(7)); print('up', flush=True)\nwhile True: time.sleep(0.1)"
    process = machine.start(f"{env}/bin/python", "-c", code, env=engine)
    assert next_line(process.stdout) == "up\n"
    process.send_signal(number)
    assert process.wait(30) == 7


def test_interrupt_from_the_keyboard(machine, env, engine):
    """The signal goes to the whole process group. Apptainer also forwards its own, so the program may get two."""
    code = (
        "import signal, time\ndef end(*_): signal.signal(signal.SIGINT, signal.SIG_IGN); exit(7)\n"
        "signal.signal(signal.SIGINT, end)\nprint('up', flush=True)\nwhile True: time.sleep(0.1)"
    )
    process = machine.start(f"{env}/bin/python", "-c", code, env=engine, start_new_session=True)
    assert next_line(process.stdout) == "up\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(30) == 7


def test_a_killed_launch_leaves_no_program(machine, env, engine, work):
    code = f"import fcntl, time; f = open('{work}/f', 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('up', flush=True); time.sleep(600)"
    process = machine.start(f"{env}/bin/python", "-c", code, env=engine)
    assert next_line(process.stdout) == "up\n"
    process.kill()
    assert process.wait(30) == -signal.SIGKILL
    eventually(lambda: subprocess.run(["flock", "-n", f"{work}/f", "true"]).returncode == 0)


def test_ignored_signals_umask_and_limits(machine, env, engine):
    code = (
        "import os, resource, signal; print(*(signal.getsignal(s) == signal.SIG_IGN for s in (signal.SIGINT, signal.SIGUSR2, signal.SIGTERM)),"
        " oct(os.umask(0)), os.nice(0), resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CORE)[0])"
    )
    script = f"trap '' INT USR2; umask 027; ulimit -S -c 4; ulimit -n 200; exec nice -n 5 {env}/bin/python -c {shlex.quote(code)}"
    assert machine.run("/bin/bash", "-c", script, env=engine).stdout == "True True False 0o27 5 (200, 200) 4096\n"


def test_streams(machine, env, engine):
    process = machine.start(f"{env}/bin/python", "-c", "import sys; sys.stdout.write(sys.stdin.read().upper())", stdin=subprocess.PIPE, env=engine)
    assert process.communicate("some text", timeout=60)[0] == "SOME TEXT"


def test_terminal(machine, env, engine):
    ours, theirs = pty.openpty()
    code = "import sys, os; print(sys.stdin.isatty(), sys.stdout.isatty(), os.ttyname(0), os.tcgetpgrp(0) == os.getpgrp())"
    process = machine.start("setsid", "--ctty", f"{env}/bin/python", "-c", code, env=engine, stdin=theirs, stdout=theirs, stderr=theirs)
    name = os.ttyname(theirs)
    assert process.wait(60) == 0
    os.close(theirs)
    assert os.read(ours, 1000).decode().split() == ["True", "True", name, "True"]
    os.close(ours)


def test_descriptors(machine, env, engine, work):
    (work / "data").write_text("through descriptor 7")
    code = "import os; print(os.read(7, 100).decode()); print(sorted(os.listdir('/proc/self/fd')))"
    done = machine.run("/bin/bash", "-c", f"exec 7<{work}/data; exec {env}/bin/python -c \"{code}\"", env=engine).stdout
    assert done == "through descriptor 7\n['0', '1', '2', '3', '7']\n"  # 3 is the listing's own


def test_closed_standard_streams(machine, user, env, engine, work):
    code = f"open('{work}/result', 'w').write('fine')"
    machine.run("/bin/bash", "-c", f"exec <&- >&- 2>&-; {env}/bin/python -c \"{code}\"", env=engine)
    assert (work / "result").read_text() == "fine"


def test_working_directories(machine, env, engine, work):
    code = "import os; print(os.getcwd(), os.path.exists('python3'))"
    assert python(machine, env, code, env=engine, cwd=env / "bin") == f"{env}/bin True\n"
    assert "containerize-session" in python(machine, env, "import os; print(os.listdir('.'))", env=engine, cwd=env / "libexec")
    script = f"mkdir {work}/gone; cd {work}/gone; rmdir {work}/gone; {env}/bin/python -I -c 'print(1 + 1)'"
    assert machine.run("/bin/bash", "-c", script, env=engine).stdout == "2\n"


def test_ways_of_calling(machine, user, env, scripts, engine, work):
    assert machine.run("/bin/bash", "-c", f"cd {env}/bin; ./python -c 'print(3)'", env=engine).stdout == "3\n"
    (work / "py").symlink_to(env / "bin/python")
    assert machine.run(str(work / "py"), "-c", "print(5)", env=engine).stdout == "5\n"
    # busybox is one program that does what argv[0] says.
    assert machine.run("/bin/bash", "-c", f"exec -a echo {scripts}/bin/box a b", env=engine).stdout == "a b\n"
    script = user.write(work / "script", f"#!{env}/bin/python\nimport sys\nprint(sys.argv, sys.executable)\n", 0o755)
    assert machine.run(str(script), "x y", env=engine).stdout.strip() == f"{[str(script), 'x y']} {env}/bin/python"


def test_subprocesses(machine, env, engine):
    code = "import subprocess, sys; print(subprocess.check_output([sys.executable, '-c', 'import six; print(7)'], text=True), end='')"
    assert python(machine, env, code, env=engine) == "7\n"
    # Called by the path of its wrapper, which inside is the real program.
    code = f"import subprocess; subprocess.run(['{env}/bin/pip', '--version'], check=True)"
    assert str(env) in python(machine, env, code, env=engine)


def test_venv_on_top(machine, env, engine, work):
    venv = work / "V"
    machine.run(f"{env}/bin/python", "-m", "venv", "--without-pip", str(venv), env=engine)
    assert machine.run(f"{venv}/bin/python", "-c", "import six, sys; print(sys.prefix, sys.executable)", env=engine).stdout == f"{venv} {venv}/bin/python\n"
    assert machine.run("/bin/bash", "-c", f"cd {venv}/bin && ./python -c 'import six, sys; print(sys.prefix)'", env=engine).stdout == f"{venv}\n"


def test_host_is_seen_as_it_is(machine, env, engine):
    code = "import os; print(sorted((name, os.readlink('/' + name) if os.path.islink('/' + name) else '') for name in os.listdir('/')), sorted(os.listdir('/etc'))[:50])"
    shown = python(machine, env, code, env=engine)
    plain = machine.run("/bin/sh", "-c", "ls -A / | sort; ls -A /etc | sort").stdout.split()
    assert all(f"'{name}'" in shown for name in plain[:60])
    assert python(machine, env, f"open('{env.parent}/by-engine', 'w').write('x')", env=engine) == ""


def test_read_only(machine, env, engine):
    done = machine.run(f"{env}/bin/python", "-c", f"open('{env}/lib/x', 'w')", env=engine, check=False)
    assert "Read-only file system" in done.stderr


def test_changes_are_refused(machine, env, engine):
    done = machine.run(f"{env}/bin/pip", "install", "x", env=engine, check=False)
    assert done.returncode == 1 and "this installation is read-only" in done.stderr


def test_debug_commands(machine, env, engine):
    assert machine.run(f"{env}/bin/_debug_exec", "sh", "-c", "echo $VIRTUAL_ENV", env=engine).stdout.strip() == str(env)
    assert machine.run(f"{env}/bin/_debug_exec", "no-such-command", check=False, env=engine).returncode == 127


def show(machine, prefix, **more):
    """The lines that `show` prints, and separately the mounts."""
    lines = machine.run(f"{prefix}/bin/show", **more).stdout.splitlines()
    mounts = [line for line in lines if " - " in line]
    return [line for line in lines if line not in mounts], "\n".join(mounts)


def test_layers(machine, updated, engine):
    assert show(machine, updated, env=engine)[0] == ["second", "added", "text"]
    for change in ("echo x > new", "echo x > text", "echo x >> text", "rm text", "mkdir d", "chmod 700 text"):
        done = machine.run(f"{updated}/bin/_debug_exec", "sh", "-c", f"cd {updated}/share; {change}", env=engine, check=False)
        # Mounts made by a runtime answer some of these changes with an I/O error instead.
        assert done.returncode != 0 and ("Read-only file system" in done.stderr or "I/O error" in done.stderr), change
    assert show(machine, updated, env=engine)[0] == ["second", "added", "text"]


def test_a_server_ends_with_its_program(machine, updated, user, sessions):
    process = machine.start(f"{updated}/bin/_debug_exec", "sh", "-c", "echo up; exec sleep 600", env=CONTAINER)
    assert next_line(process.stdout) == "up\n"
    before = set(sessions.processes())
    assert before
    process.kill()
    process.wait(30)
    eventually(lambda: not before & set(sessions.processes()))


def test_moved(machine, user, scripts, engine, work):
    moved = user.copy(scripts, work / "here", work / "first")
    assert show(machine, moved, env=engine)[0] == ["first", "gone", "text"]
    assert machine.run(f"{moved}/bin/_debug_exec", f"{work}/first/bin/show", env=engine).stdout.startswith("first\n")


def test_moved_from_where_nothing_can_be_made(machine, user, scripts, work):
    hopeless = user.copy(scripts, work / "there", "/usr/share/nowhere")
    done = machine.run(f"{hopeless}/bin/show", env=CONTAINER, check=False)
    assert done.returncode == 1 and "cannot create the installation's original path" in done.stderr
    of_root = user.copy(scripts, work / "of-root", "/brand-new/env")
    assert machine.run(f"{of_root}/bin/_debug_exec", "/brand-new/env/bin/show", env=CONTAINER).stdout.startswith("first\n")
    taken = user.copy(scripts, work / "moved", "/usr/share")
    done = machine.run(f"{taken}/bin/show", env=CONTAINER, check=False)
    assert done.returncode == 1 and "something else is now at its original path" in done.stderr


def test_masked(machine, user, tool, place, engine, work):
    source = work / "software"
    (source / "bin").mkdir(parents=True)
    user.write(source / "bin/show", f"#!/bin/sh\ncat {source}/text\n", 0o755)
    user.write(source / "text", "in the image\n")
    user.run(str(tool), "wrap-install", "--mask", "--prefix", str(work / "env"), "-w", "bin", str(source))
    user.write(source / "text", "on disk\n")
    assert machine.run(f"{work}/env/bin/show", env=engine).stdout == "in the image\n"


def test_names_with_special_characters(machine, user, scripts, updated, engine, work):
    odd = user.copy(scripts, work / 'a, "b" c', work)
    manifest = json.loads((odd / "containerize.json").read_text())
    (odd / "containerize.json").write_text(json.dumps({**manifest, "prefix": str(odd)}))
    assert show(machine, odd, env=engine)[0] == ["first", "gone", "text"]
    odd = user.copy(updated, work / "a b", work / "a b")
    done = machine.run(f"{odd}/bin/show", env=engine, check=False)
    if engine == CONTAINER:
        assert done.returncode == 1 and "containerize squash" in done.stderr
    else:
        assert done.returncode == 0


def test_binds(machine, env, work):
    """The native engine's are in test_root.py."""
    (work / "data").mkdir()
    (work / "data/file").write_text("content")
    (work / "target").mkdir()
    asked = {**CONTAINER, "CONTAINERIZE_BIND": f"{work}/data:{work}/target:ro"}
    assert python(machine, env, f"print(open('{work}/target/file').read())", env=asked) == "content\n"
    done = machine.run(f"{env}/bin/python", "-c", f"open('{work}/target/new', 'w')", env=asked, check=False)
    assert "Read-only file system" in done.stderr
    done = machine.run(f"{env}/bin/python", "-c", "", env={**CONTAINER, "CONTAINERIZE_BIND": "/no-such:/x:required"}, check=False)
    assert done.returncode == 1 and "the source of a required bind is missing" in done.stderr


def test_another_installation_inside(machine, env, updated):
    """From inside a container, another installation runs natively if user namespaces can be nested."""
    code = f"import os, subprocess; os.environ.pop('CONTAINERIZE_ENGINE'); subprocess.run(['{updated}/bin/show'], check=True)"
    assert python(machine, env, code, env=CONTAINER).startswith("second\nadded\ntext\n")


# A /dev/fuse that only root can open.
NO_FUSE = "mount -t tmpfs none /mnt; mknod -m 600 /mnt/fuse c 10 229; mount --bind /mnt/fuse /dev/fuse"


def test_automatic_choice_without_fuse(machine, env):
    """Apptainer needs the device as well, so its own error shows that it was chosen."""
    done = machine.run(f"{env}/bin/python", "-c", "", env={"CONTAINERIZE_ENGINE": "native"}, prepare=NO_FUSE, check=False)
    assert done.returncode == 1 and "cannot open /dev/fuse" in done.stderr and "FATAL" not in done.stderr
    done = machine.run(f"{env}/bin/python", "-c", "", prepare=NO_FUSE, check=False)
    assert done.returncode == 255 and "FATAL" in done.stderr and "cannot open /dev/fuse" not in done.stderr


def test_automatic_choice_without_namespaces(machine, env):
    """This Apptainer is not setuid, so it needs user namespaces as well."""
    words = [*IN_A_NAMESPACE_WITHOUT_FURTHER_ONES, f"{env}/bin/python", "-c", ""]
    done = machine.run(*words, env={"CONTAINERIZE_ENGINE": "native"}, check=False)
    assert done.returncode == 1 and "cannot create a user namespace" in done.stderr and "FATAL" not in done.stderr
    done = machine.run(*words, check=False)
    assert done.returncode != 0 and "cannot create a user namespace" not in done.stderr
    assert "maximum number of user namespaces exceeded" in done.stderr


def test_builds_need_the_native_engine(user, tool, work):
    spec = user.write(work / "requirements.txt", "six\n")
    done = user.run(*IN_A_NAMESPACE_WITHOUT_FURTHER_ONES, str(tool), "new", "--engine", "apptainer", "--prefix", str(work / "env"), str(spec), check=False)
    assert done.returncode == 1 and "cannot create a user namespace" in done.stderr
    assert "Builds need the native engine" in done.stderr and not (work / "env").exists()


def test_root_needs_no_user_namespace(user, env):
    """As root of a container in which no further user namespaces can be created."""
    code = "import os, six; print(six.__version__, os.readlink('/proc/self/ns/mnt'))"
    script = f"echo 0 > /proc/sys/user/max_user_namespaces; for i in 1 2; do {env}/bin/python -c \"{code}\" || exit; done"
    first, second = user.run("unshare", "--user", "--map-root-user", "sh", "-c", script).stdout.splitlines()
    assert first == second and first.startswith("1.16.0 ")


def test_no_engine_at_all(machine, env):
    hide = f"{NO_FUSE}; mount --bind /dev/null /usr/bin/apptainer"  # singularity is a link to it
    done = machine.run(f"{env}/bin/python", "-c", "", prepare=hide, check=False)
    assert done.returncode == 1
    assert "neither apptainer nor singularity is on PATH" in done.stderr and "The native engine: " in done.stderr


def test_a_wrapper_is_no_container_runtime(machine, user, scripts, work):
    """An environment can contain a program named apptainer."""
    odd = user.copy(scripts, work / "env", work / "env")
    os.link(odd / "bin/show", odd / "bin/apptainer")
    assert show(machine, odd, env={**CONTAINER, "PATH": f"{odd}/bin:/usr/bin:/bin"})[0] == ["first", "gone", "text"]


def test_recorded_engine(machine, user, tool, scripts, work):
    prefix = user.copy(scripts, work / "env", work / "env")
    recorded = lambda: json.loads(user.run(str(tool), "inspect", "--json", str(prefix)).stdout)["engine"]  # noqa: E731
    assert recorded() == "auto"
    user.run(str(tool), "update", "--engine", "apptainer", str(prefix))
    assert recorded() == "apptainer"
    assert "squashfuse" in show(machine, prefix)[1]
    assert "fuse.containerize" in show(machine, prefix, env={"CONTAINERIZE_ENGINE": "native"})[1]
    done = user.run(f"{prefix}/bin/show", check=False)  # this machine has no Apptainer
    assert done.returncode == 1 and "apptainer is not on PATH" in done.stderr
    user.run(str(tool), "update", "--post-install", str(user.write(work / "nothing", "touch $CONTAINERIZE_PREFIX/share/x\n")), str(prefix))
    assert recorded() == "apptainer"
    done = user.run(str(tool), "update", "--engine", "podman", str(prefix), check=False)
    assert done.returncode == 2 and "unknown engine: 'podman'" in done.stderr


@pytest.fixture()
def system(work):
    """A small root directory."""
    system = work / "system"
    for directory in ("bin", "dev", "etc", "lib", "proc", "sys", "tmp", "usr/share", "var/tmp"):
        (system / directory).mkdir(parents=True)
    (system / "usr/share/of-base").write_text("here\n")
    shutil.copy("/bin/busybox", system / "bin/busybox")
    for name in ("sh", "cat", "ls", "env"):
        (system / "bin" / name).symlink_to("busybox")
    return system


def test_a_sif_made_by_apptainer(machine, user, tool, system, work):
    """containerize reads its squashfs directly from the SIF, without a container runtime; Apptainer itself gives the same result."""
    machine.run("apptainer", "--silent", "build", str(work / "base.sif"), str(system), cwd=work)
    user.run(str(tool), "wrap-container", "--prefix", str(work / "env"), "-w", "/bin/sh", str(work / "base.sif"))
    assert json.loads((work / "env/containerize.json").read_text())["base"]["offset"] > 0
    told = [machine.run(f"{work}/env/bin/sh", "-c", f"cat /usr/share/of-base; ls /usr; ls -d {work}; exit 3", env=env, check=False) for env in ({}, CONTAINER)]
    assert [done.returncode for done in told] == [3, 3], told
    assert told[0].stdout == told[1].stdout == f"here\nshare\n{work}\n"


def test_libraries_of_the_host(machine, user, tool, base, work):
    """A host profile adds libraries of the machine to a base, with either engine. This machine's ld.so.cache lists the library."""
    (work / "lib").mkdir()
    source = user.write(work / "site.c", "int site(void) { return 7; }\n")
    subprocess.run(["gcc", "-shared", "-nostdlib", "-Wl,-soname,libsite.so.1", "-o", str(work / "lib/libsite.so.1.2"), str(source)], check=True)
    (work / "lib/libsite.so.1").symlink_to("libsite.so.1.2")
    user.write(work / "ld.so.conf", f"{work}/lib\n")
    subprocess.run(["ldconfig", "-X", "-f", str(work / "ld.so.conf"), "-C", str(work / "cache")], check=True)
    profile = user.write(work / "site.yaml", "libraries: [libsite.so.1, libnothing.so.1]\n")
    user.run(str(tool), "wrap-container", "--prefix", str(work / "env"), "-w", "/bin/sh", "--host-profile", str(profile), str(base))
    for env in ({}, CONTAINER):
        done = machine.run(f"{work}/env/bin/sh", "-c", "LD_PRELOAD=libsite.so.1 cat /proc/self/maps", env=env, prepare=f"mount --bind {work}/cache /etc/ld.so.cache")
        assert re.search(r"/libsite\.so\.1(\.2)?$", done.stdout, re.MULTILINE) and not done.stderr, (env, done.stdout, done.stderr)


def test_base(machine, user, scripts, system, work):
    """An image as the root filesystem, in place of the host's."""
    prefix = user.copy(scripts, work / "env", work / "env")
    subprocess.run(["mksquashfs", str(system), str(work / "base.sqfs"), "-quiet", "-no-progress"], check=True, stdout=subprocess.DEVNULL)
    manifest = json.loads((prefix / "containerize.json").read_text())
    manifest["base"] = {"reference": "made by hand", "digest": "", "file": str(work / "base.sqfs"), "offset": 0, "isolate": False, "environment": []}
    (prefix / "containerize.json").write_text(json.dumps(manifest))
    assert show(machine, prefix, env=CONTAINER)[0] == ["first", "gone", "text"]
    done = machine.run(f"{prefix}/bin/_debug_exec", "/bin/sh", "-c", f"cat /usr/share/of-base; ls /usr; ls -d {work}", env=CONTAINER)
    assert done.stdout == f"here\nshare\n{work}\n"
    manifest["base"]["isolate"] = True
    (prefix / "containerize.json").write_text(json.dumps(manifest))
    done = machine.run(f"{prefix}/bin/_debug_exec", "/bin/sh", "-c", f"cat {prefix}/share/text; ls {work}/base.sqfs", env=CONTAINER, check=False)
    assert done.stdout == "first\n" and "No such file" in done.stderr, done
    manifest["base"]["file"] = str(work / "no-such.sqfs")
    (prefix / "containerize.json").write_text(json.dumps(manifest))
    done = machine.run(f"{prefix}/bin/show", env=CONTAINER, check=False)
    assert done.returncode == 1 and "cannot open the base" in done.stderr
