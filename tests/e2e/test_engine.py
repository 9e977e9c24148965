"""The same installation, run by the kernel's own means and by Apptainer: programs see no difference.

Apptainer is not in Debian 12, so programs are started in a root of Debian's unstable. Installations are made outside."""

import json
import os
import pty
import shlex
import signal
import subprocess
import sys

import pytest

from conftest import BUILD, CACHE, SOURCE, eventually

sys.path.insert(0, str(SOURCE / "tests/lib"))
import machine as machines  # noqa: E402

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can enter another root directory")

CONTAINER = {"CONTAINERIZE_ENGINE": "apptainer"}
SHOW = "import sys, os, json; print(json.dumps([sys.argv[1:], sys.executable, sys.prefix, os.getcwd()]))"


@pytest.fixture(scope="session")
def machine(user, place):
    return machines.Machine(machines.make_root(CACHE), user, [place, SOURCE, BUILD])


@pytest.fixture(scope="session")
def env(make, place):
    """An installation that needs nothing of Debian 12. Tests only read it."""
    return make(place / "bundled", "six==1.16.0\n", "--bundle-python")


@pytest.fixture(scope="session")
def updated(user, tool, place, env):
    """A copy of it with a layer that adds, replaces and removes."""
    prefix = user.copy(env, place / "updated", place / "updated")
    library = f"{prefix}/lib/python3.11/site-packages"
    change = f"echo 'added = 1' > {library}/added.py; echo '__version__ = \"replaced\"' > {library}/six.py; rm {library}/__pycache__/six.*; rm -r {library}/pip"
    user.run(str(tool), "update", str(prefix), "--", "sh", "-c", change)
    return prefix


@pytest.fixture(params=["native", "apptainer"])
def engine(request):
    return {"CONTAINERIZE_ENGINE": request.param}


def python(machine, prefix, code, *arguments, **more):
    return machine.run(f"{prefix}/bin/python", "-c", code, *arguments, **more).stdout


def inside(machine, prefix, **more):
    """Whether the container runtime ran it."""
    return "squashfuse" in python(machine, prefix, "print(open('/proc/self/mountinfo').read())", **more)


def test_the_engine_is_the_one_that_was_asked_for(machine, env):
    assert not inside(machine, env)
    assert not inside(machine, env, env={"CONTAINERIZE_ENGINE": "native"})
    assert inside(machine, env, env=CONTAINER)
    done = machine.run(f"{env}/bin/python", "-c", "", env={"CONTAINERIZE_ENGINE": "docker"}, check=False)
    assert done.returncode == 2 and "not an engine: 'docker'" in done.stderr
    done = machine.run(f"{env}/bin/python", "-c", "", env={"CONTAINERIZE_ENGINE": "singularity"}, check=False)
    assert done.returncode == 1 and "singularity is not on PATH" in done.stderr


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
    """All of it, with names and values that a shell on the way would lose, and those that runtimes set."""
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
    code = f"import signal, time; signal.signal({int(number)}, lambda *a: exit(7)); print('up', flush=True); time.sleep(60)"
    process = machine.start(f"{env}/bin/python", "-c", code, env=engine)
    assert process.stdout.readline() == "up\n", process.stderr.read()
    process.send_signal(number)
    assert process.wait(30) == 7


def test_a_killed_launch_leaves_no_program(machine, env, engine, work):
    code = f"import fcntl, time; f = open('{work}/f', 'w'); fcntl.flock(f, fcntl.LOCK_EX); print('up', flush=True); time.sleep(600)"
    process = machine.start(f"{env}/bin/python", "-c", code, env=engine)
    assert process.stdout.readline() == "up\n"
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


def test_ways_of_calling(machine, user, env, engine, work):
    assert machine.run("/bin/bash", "-c", f"cd {env}/bin; ./python -c 'print(3)'", env=engine).stdout == "3\n"
    (work / "py").symlink_to(env / "bin/python")
    assert machine.run(str(work / "py"), "-c", "print(5)", env=engine).stdout == "5\n"
    done = machine.run("/bin/bash", "-c", f"exec -a my-name {env}/bin/python -c \"print(open('/proc/self/cmdline').read().split(chr(0))[0])\"", env=engine)
    assert done.stdout == "my-name\n"
    script = user.write(work / "script", f"#!{env}/bin/python\nimport sys\nprint(sys.argv, sys.executable)\n", 0o755)
    assert machine.run(str(script), "x y", env=engine).stdout.strip() == f"{[str(script), 'x y']} {env}/bin/python"


def test_subprocesses(machine, env, engine):
    code = "import subprocess, sys; print(subprocess.check_output([sys.executable, '-c', 'import six; print(7)'], text=True), end='')"
    assert python(machine, env, code, env=engine) == "7\n"
    # By its wrapper's path: inside, that is the real program.
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


def test_layers(machine, updated, engine):
    code = "import added, six, importlib.util; print(added.added, six.__version__, importlib.util.find_spec('pip'))"
    assert python(machine, updated, code, env=engine) == "1 replaced None\n"
    done = machine.run(f"{updated}/bin/python", "-c", f"open('{updated}/lib/x', 'w')", env=engine, check=False)
    assert "Read-only file system" in done.stderr
    for way in ("w", "a", "r+"):
        done = machine.run(f"{updated}/bin/python", "-c", f"open('{updated}/pyvenv.cfg', '{way}').write('x')", env=engine, check=False)
        assert "Read-only file system" in done.stderr


def test_moved(machine, user, env, place, engine, work):
    moved = user.copy(env, work / "here", work / "first")
    code = "import six, sys; print(sys.prefix)"
    assert python(machine, moved, code, env=engine) == f"{moved}\n"
    script = f"{work}/first/bin/pip"
    assert machine.run(f"{moved}/bin/_debug_exec", "test", "-x", script, env=engine).returncode == 0
    # Where nobody may make a directory, and where that is the root itself.
    engine_alone = CONTAINER
    hopeless = user.copy(env, work / "there", "/usr/share/nowhere")
    done = machine.run(f"{hopeless}/bin/python", "-c", "", env=engine_alone, check=False)
    assert done.returncode == 1 and "first path cannot be made to exist" in done.stderr
    of_root = user.copy(env, work / "of-root", "/brand-new/env")
    assert machine.run(f"{of_root}/bin/_debug_exec", "test", "-x", "/brand-new/env/bin/pip", env=engine_alone).returncode == 0


def test_names_with_special_characters(machine, user, env, engine, work):
    odd = user.copy(env, work / 'a, "b" =c', work / 'a, "b" =c')
    assert python(machine, odd, "import six; print(six.__version__)", env=engine) == "1.16.0\n"


def test_binds(machine, user, env, engine, work):
    if engine["CONTAINERIZE_ENGINE"] == "native":
        pytest.skip("the native engine shows the host as it is")
    (work / "data").mkdir()
    (work / "data/file").write_text("content")
    (work / "target").mkdir()
    asked = {**engine, "CONTAINERIZE_BIND": f"{work}/data:{work}/target:ro"}
    assert python(machine, env, f"print(open('{work}/target/file').read())", env=asked) == "content\n"
    done = machine.run(f"{env}/bin/python", "-c", f"open('{work}/target/new', 'w')", env=asked, check=False)
    assert "Read-only file system" in done.stderr
    done = machine.run(f"{env}/bin/python", "-c", "", env={**engine, "CONTAINERIZE_BIND": "/no-such:/x:required"}, check=False)
    assert done.returncode == 1 and "what is to be bound is missing" in done.stderr


def test_another_installation_inside(machine, env, updated):
    """From a container, another one is started natively, where namespaces may be nested."""
    code = f"import os, subprocess; os.environ.pop('CONTAINERIZE_ENGINE'); subprocess.run(['{updated}/bin/python', '-c', 'import added; print(added.added)'], check=True)"
    assert python(machine, env, code, env=CONTAINER) == "1\n"


NO_FUSE = "mount --bind /dev/null /dev/fuse"
NO_NAMESPACES = "echo 0 > /proc/sys/user/max_user_namespaces"


def test_automatic_choice_without_fuse(machine, env):
    """Apptainer needs the device as well, so what it says shows that it was asked."""
    done = machine.run(f"{env}/bin/python", "-c", "", env={"CONTAINERIZE_ENGINE": "native"}, prepare=NO_FUSE, check=False)
    assert done.returncode == 1 and "cannot" in done.stderr and "FATAL" not in done.stderr
    done = machine.run(f"{env}/bin/python", "-c", "", prepare=NO_FUSE, check=False)
    assert "FATAL" in done.stderr


def test_no_engine_at_all(machine, env):
    hide = f"{NO_FUSE}; mount --bind /dev/null /usr/bin/apptainer"
    done = machine.run(f"{env}/bin/python", "-c", "", prepare=hide, check=False)
    assert done.returncode == 1
    assert "neither apptainer nor singularity is on PATH" in done.stderr and "The native engine: " in done.stderr


def test_a_wrapper_is_no_container_runtime(machine, user, env, work):
    """An environment may have a program of that name."""
    odd = user.copy(env, work / "env", work / "env")
    os.link(odd / "bin/python", odd / "bin/apptainer")
    assert python(machine, odd, "print(9)", env={**CONTAINER, "PATH": f"{odd}/bin:/usr/bin:/bin"}) == "9\n"


def test_recorded_engine(machine, user, tool, env, work):
    prefix = user.copy(env, work / "env", work / "env")
    shown = lambda: json.loads(user.run(str(tool), "inspect", "--json", str(prefix)).stdout)["engine"]  # noqa: E731
    assert shown() == "auto"
    user.run(str(tool), "update", "--engine", "apptainer", str(prefix))
    assert shown() == "apptainer"
    assert "fuse.squashfuse" in python(machine, prefix, "print(open('/proc/self/mountinfo').read())") or "fuse" in python(machine, prefix, "print(open('/proc/self/mountinfo').read())")
    done = user.run(f"{prefix}/bin/python", "-c", "", check=False)  # this machine has none
    assert done.returncode == 1 and "apptainer is not on PATH" in done.stderr
    assert user.run(f"{prefix}/bin/python", "-c", "print(1)", env={"CONTAINERIZE_ENGINE": "native"}).stdout == "1\n"
    done = user.run(str(tool), "update", "--engine", "podman", str(prefix), check=False)
    assert done.returncode == 2 and "not an engine: 'podman'" in done.stderr
