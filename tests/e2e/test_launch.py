"""A wrapped program behaves as if it had been started directly."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess

import pytest

from conftest import next_line

SHOW = "import sys, os, json; print(json.dumps([sys.argv[1:], sys.executable, sys.prefix, os.getcwd()]))"


def shown(user, *argv, **more):
    return json.loads(user.run(*map(str, argv), "-c", SHOW, **more).stdout)


def test_packages_are_there(user, env):
    user.run(f"{env}/bin/python", "-c", "import numpy, requests; assert numpy.arange(5).sum() == 10")
    listed = user.run(f"{env}/bin/pip", "list", "--format", "freeze").stdout.lower()
    assert "numpy==" in listed and "requests==" in listed and "pygments==" in listed


def test_console_script(user, env):
    assert "Pygments version" in user.run(f"{env}/bin/pygmentize", "-V").stdout


def test_same_path_inside_and_outside(user, env):
    _, executable, prefix, _ = shown(user, env / "bin/python")
    assert executable == f"{env}/bin/python"
    assert prefix == str(env)


def test_same_name_is_the_wrapper_outside_and_the_program_inside(user, env):
    outside = os.stat(env / "bin/python").st_size
    inside = int(user.run(f"{env}/bin/python", "-c", f"import os; print(os.stat('{env}/bin/python').st_size)").stdout)
    assert outside != inside


def test_arguments_arrive_as_they_were(user, env):
    arguments = [b"", b"a b", b"it's", b'"q"', b"line\nbreak", b"$HOME `x` \\", b"\xff\xfe not utf-8", b"-c", b"*"]
    code = "import sys, os; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    done = user.run(os.fsencode(f"{env}/bin/python"), b"-c", os.fsencode(code), *arguments, text=False)
    assert done.stdout == b"\0".join(arguments)


def test_argv0_is_kept(user, env):
    code = "import sys; print(open('/proc/self/cmdline', 'rb').read().split(b'\\0')[0].decode())"
    done = user.run("/bin/bash", "-c", f"exec -a my-name {env}/bin/python -c {shlex.quote(code)}")
    assert done.stdout.strip() == "my-name"


@pytest.mark.parametrize("code", [0, 1, 2, 42, 255])
def test_exit_code(user, env, code):
    assert user.run(f"{env}/bin/python", "-c", f"raise SystemExit({code})", check=False).returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGUSR1])
def test_death_by_signal(user, env, number):
    code = f"import os; os.kill(os.getpid(), {int(number)})"
    assert user.run(f"{env}/bin/python", "-c", code, check=False).returncode == -number


def test_signals_reach_the_program_itself(user, env):
    code = "import signal, time; signal.signal(signal.SIGTERM, lambda *a: exit(7)); print('up', flush=True); time.sleep(60)"
    process = user.start(f"{env}/bin/python", "-c", code)
    assert next_line(process.stdout) == "up\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 7


def test_ignored_signals_stay_ignored(user, env):
    code = "import signal; print(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)"
    done = user.run("/bin/bash", "-c", f"trap '' INT; exec {env}/bin/python -c '{code}'")
    assert done.stdout == "True\n"


def test_standard_input_and_output(user, env):
    code = "import sys; sys.stdout.write(sys.stdin.read().upper())"
    process = user.start(f"{env}/bin/python", "-c", code, stdin=subprocess.PIPE)
    assert process.communicate("some text", timeout=60)[0] == "SOME TEXT"


def test_terminal(user, env):
    ours, theirs = pty.openpty()
    code = "import sys, os; print(sys.stdin.isatty(), sys.stdout.isatty(), os.ttyname(0))"
    process = user.start(f"{env}/bin/python", "-c", code, stdin=theirs, stdout=theirs, stderr=theirs)
    name = os.ttyname(theirs)
    assert process.wait(60) == 0
    os.close(theirs)
    assert os.read(ours, 1000).decode().split() == ["True", "True", name]
    os.close(ours)


def test_closed_standard_streams(user, env, work):
    result = work / "result"
    code = f"open('{result}', 'w').write('fine')"
    user.run("/bin/bash", "-c", f"exec <&- >&- 2>&-; {env}/bin/python -c \"{code}\"")
    assert result.read_text() == "fine"


def test_descriptors_are_passed_on_and_none_is_added(user, env, work):
    (work / "data").write_text("through descriptor 7")
    code = "import os; print(os.read(7, 100).decode()); print(sorted(os.listdir('/proc/self/fd')))"
    done = user.run("/bin/bash", "-c", f"exec 7<{work}/data; exec {env}/bin/python -c \"{code}\"").stdout
    assert "through descriptor 7" in done
    # 3 is the directory that listdir has open.
    assert "['0', '1', '2', '3', '7']" in done


def test_environment_changes_only_as_documented(user, env):
    code = "import os, json; print(json.dumps(dict(os.environ)))"
    given = {"A": "1", "EMPTY": "", "PYTHONHOME": "/nonsense", "WITH_NEWLINE": "a\nb"}
    seen = json.loads(user.run(f"{env}/bin/python", "-c", code, env=given).stdout)
    expected = {**user.environment, **given, "VIRTUAL_ENV": str(env), "CONTAINERIZE_PREFIX": str(env)}
    expected["PATH"] = f"{env}/bin:" + expected["PATH"]
    del expected["PYTHONHOME"]
    seen.pop("LC_CTYPE", None)  # set by Python itself (PEP 538)
    assert seen == expected


def test_path_does_not_grow(user, env):
    code = "import os; print(os.environ['PATH'])"
    path = f"/usr/bin:{env}/bin:/bin"
    assert user.run(f"{env}/bin/python", "-c", code, env={"PATH": path}).stdout.strip() == f"{env}/bin:/usr/bin:/bin"


def test_system_programs_are_found_without_path(user, env):
    code = "import os, subprocess; print(os.environ['PATH']); subprocess.run(['true'], check=True)"
    assert user.run(f"{env}/bin/python", "-c", code, env={"PATH": None}).stdout == f"{env}/bin:/usr/bin:/bin\n"


def test_limits_are_kept(user, env):
    code = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_NOFILE))"
    done = user.run("/bin/bash", "-c", f"ulimit -S -c 4; ulimit -n 100; exec {env}/bin/python -c '{code}'")
    assert done.stdout.startswith("(4096, ") and done.stdout.endswith("(100, 100)\n")


def test_umask_and_priority_are_kept(user, env):
    code = "import os; print(oct(os.umask(0)), os.nice(0))"
    done = user.run("/bin/bash", "-c", f"umask 027; exec nice -n 5 {env}/bin/python -c '{code}'")
    assert done.stdout == "0o27 5\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can choose a group")
def test_another_group(user, env, work):
    """As after newgrp: the session of the first group does not map the second one."""
    user.run(f"{env}/bin/python", "-c", "pass")
    code = "import os; open('f', 'w'); os.chown('f', -1, os.getgid()); print(os.getgid(), os.stat('f').st_gid)"
    done = user.run(f"{env}/bin/python", "-c", code, group=4, extra_groups=[user.uid], cwd=work)
    assert done.stdout == "4 4\n"


def test_working_directory(user, env, work):
    assert shown(user, env / "bin/python", cwd=work)[3] == str(work)


def test_working_directory_inside_the_installation(user, env):
    done = user.run(f"{env}/bin/python", "-c", "import os; print(os.getcwd(), os.path.exists('python3'))", cwd=env / "bin")
    assert done.stdout == f"{env}/bin True\n"


def test_working_directory_that_is_hidden_inside(user, env):
    # libexec/ exists only on disk, hidden below the mounted image.
    done = user.run(f"{env}/bin/python", "-c", "import os; print(os.listdir('.'))", cwd=env / "libexec")
    assert "containerize-session" in done.stdout


def test_working_directory_that_was_deleted(user, env, work):
    gone = work / "gone"
    script = f"mkdir {gone}; cd {gone}; rmdir {gone}; {env}/bin/python -I -c 'print(1 + 1)'"
    assert user.run("/bin/bash", "-c", script).stdout == "2\n"


def test_relative_path(user, env):
    assert user.run("/bin/bash", "-c", f"cd {env}/bin; ./python -c 'print(3)'").stdout == "3\n"
    assert user.run("/bin/bash", "-c", f"cd {env}; bin/python -c 'print(4)'").stdout == "4\n"


def test_found_on_path(user, env):
    done = user.run("/bin/bash", "-c", "python -c 'import sys; print(sys.executable)'", env={"PATH": f"{env}/bin:/bin"})
    assert done.stdout.strip() == f"{env}/bin/python"


def test_symbolic_link(user, env, work):
    (work / "py").symlink_to(env / "bin/python")
    assert user.run(str(work / "py"), "-c", "print(5)").stdout == "5\n"


def test_link_to_the_installation(user, env, work):
    (work / "link").symlink_to(env)
    user.run(f"{work}/link/bin/python", "-c", "import numpy")


def test_executed_by_descriptor(user, env):
    code = f"import os; fd = os.open('{env}/bin/python', os.O_RDONLY); os.execve(fd, ['python', '-c', 'print(6)'], os.environ)"
    assert user.run("/usr/bin/python3", "-c", code).stdout == "6\n"


def test_shebang(user, env, work):
    script = user.write(work / "script", f"#!{env}/bin/python\nimport numpy, sys\nprint(sys.argv, sys.executable)\n", 0o755)
    done = user.run(str(script), "x y")
    assert done.stdout.strip() == f"{[str(script), 'x y']} {env}/bin/python"


def test_subprocess_of_sys_executable(user, env):
    code = "import subprocess, sys; print(subprocess.check_output([sys.executable, '-c', 'import numpy; print(7)'], text=True))"
    assert user.run(f"{env}/bin/python", "-c", code).stdout.strip() == "7"


def test_multiprocessing_spawn(user, env, work):
    script = user.write(
        work / "spawn.py",
        "import multiprocessing, numpy\n"
        "def square(x): return int(numpy.square(x))\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('spawn').Pool(2) as pool: print(pool.map(square, range(4)))\n",
    )
    assert user.run(f"{env}/bin/python", str(script)).stdout == "[0, 1, 4, 9]\n"


def test_no_child_process_is_added(user, env, sessions):
    sessions.kill_all()
    code = "import os\ntry: os.waitpid(-1, os.WNOHANG); print('a child')\nexcept ChildProcessError: print('none')"
    assert user.run(f"{env}/bin/python", "-c", code).stdout == "none\n"


def test_called_from_inside_itself(user, env, sessions):
    before = set(sessions.processes())
    code = f"import subprocess; subprocess.run(['{env}/bin/python', '-c', 'import numpy'], check=True)"
    user.run(f"{env}/bin/python", "-c", code)
    assert len(sessions.supervisors()) == 1
    assert before <= set(sessions.processes())


def test_called_from_another_installation_and_back(user, env, small, sessions):
    sessions.kill_all()
    inner = f"import subprocess, six; subprocess.run(['{env}/bin/python', '-c', 'import numpy; print(8)'], check=True)"
    outer = f"import subprocess, numpy; subprocess.run(['{small}/bin/python', '-c', \"\"\"{inner}\"\"\"], check=True)"
    assert user.run(f"{env}/bin/python", "-c", outer).stdout == "8\n"
    # One session holds both, because a process inside a session cannot join another one.
    assert len(sessions.supervisors()) == 1
    assert len(sessions.servers()) == 2


def test_venv_on_top(user, env, work):
    venv = work / "V"
    user.run(f"{env}/bin/python", "-m", "venv", str(venv))
    user.run(f"{venv}/bin/pip", "install", "-q", "six==1.16.0")
    done = user.run(f"{venv}/bin/python", "-c", "import six, numpy, sys; print(sys.prefix, six.__file__)")
    assert done.stdout.split() == [str(venv), f"{venv}/lib/python3.11/site-packages/six.py"]
    done = user.run("/bin/bash", "-c", f"cd {venv}/bin && ./python -c 'import six, sys; print(sys.prefix)'")
    assert done.stdout.strip() == str(venv)


@pytest.mark.parametrize("words", [["-m", "venv"], ["-mvenv"], ["-Imvenv"]])
def test_venv_however_it_is_asked_for(user, env, work, words):
    venv = work / "V"
    user.run(f"{env}/bin/python", *words, "--without-pip", str(venv))
    user.run(f"{venv}/bin/python", "-c", "import numpy")


def test_active_venv_is_left_alone(user, env, work):
    code = "import os; print(os.environ['VIRTUAL_ENV'], os.environ['PATH'])"
    given = {"VIRTUAL_ENV": f"{work}/V", "PATH": f"{work}/V/bin:{env}/bin:/bin"}
    done = user.run(f"{env}/bin/python", "-c", code, env=given)
    assert done.stdout.split() == [given["VIRTUAL_ENV"], given["PATH"]]


def test_read_only(user, env):
    done = user.run(f"{env}/bin/python", "-c", f"open('{env}/lib/x', 'w')", check=False)
    assert "Read-only file system" in done.stderr


def test_no_byte_code_is_compiled_again(user, env):
    code = "import numpy, sys; print(numpy.__cached__)"
    done = user.run(f"{env}/bin/python", "-v", "-c", code)
    # Python says "code object from .../NAME.py" when it compiles a file, and "code object from '.../NAME.pyc'" when it reads byte code.
    loaded = re.findall(rf"^# code object from '?{env}/.*\.(pyc?)'?$", done.stderr, re.MULTILINE)
    assert len(loaded) > 50 and set(loaded) == {"pyc"}
    assert "__pycache__" in done.stdout


def test_ranks_may_read_each_other(user, env):
    """MPI's cross-memory attach: process_vm_readv between two processes of one session."""
    code = """
import ctypes, os, sys
class iovec(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
libc = ctypes.CDLL(None, use_errno=True)
pid, address = int(sys.argv[1]), int(sys.argv[2])
here = ctypes.create_string_buffer(5)
got = libc.process_vm_readv(pid, ctypes.byref(iovec(ctypes.addressof(here), 5)), 1, ctypes.byref(iovec(address, 5)), 1, 0)
print(got, here.value, os.strerror(ctypes.get_errno()) if got < 0 else "")
"""
    holder = "import ctypes, os; b = ctypes.create_string_buffer(b'hello'); print(os.getpid(), ctypes.addressof(b), flush=True); input()"
    process = user.start(f"{env}/bin/python", "-c", holder, stdin=subprocess.PIPE)
    pid, address = next_line(process.stdout).split()
    assert user.run(f"{env}/bin/python", "-c", code, pid, address).stdout.strip() == "5 b'hello'"
    process.communicate("\n", timeout=30)


def test_debug_commands(user, env, tool, work):
    assert user.run(f"{env}/bin/_debug_exec", "sh", "-c", "echo $VIRTUAL_ENV").stdout.strip() == str(env)
    assert user.run(f"{env}/bin/_debug_shell", "-c", "command -v pip", env={"SHELL": "/bin/sh"}).stdout == f"{env}/bin/pip\n"
    assert user.run(str(tool), "run", str(env), "--", "python", "-c", "print(9)").stdout == "9\n"
    words = ["[a,b]", "[]", "", "--", "-x", "--help", "a,b", "%%"]
    for mark in ([], ["--"]):
        done = user.run(str(tool), "run", str(env), *mark, "printf", "<%s>", *words)
        assert done.stdout == "".join(f"<{word}>" for word in words)
    assert user.run(f"{env}/bin/_debug_exec", "no-such-command", check=False).returncode == 127
    (work / "id").mkdir()  # a directory on PATH is not a command
    assert user.run(f"{env}/bin/_debug_exec", "id", "-u", env={"PATH": f"{work}:/usr/bin"}).stdout == f"{user.uid}\n"
    done = user.run(f"{env}/bin/_debug_exec", check=False)
    assert done.returncode == 2 and "usage: _debug_exec" in done.stderr
    process = user.start(str(tool), "shell", str(env), stdin=subprocess.PIPE, env={"SHELL": "/bin/sh"})
    assert process.communicate("echo $CONTAINERIZE_PREFIX\n", timeout=60)[0].strip() == str(env)
