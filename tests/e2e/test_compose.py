"""Several installations at once, made from pip, from conda and from wrapped software, whose programs call one another."""

import itertools
import json
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

ARGUMENTS = ["", "two words", "*", "$HOME", 'q"uo\'te', "-x", "a\nb", "\u00e5"]
SHOWN = ["PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONTAINERIZE_PREFIX", "GIVEN"]

# show ARG... prints its arguments and environment; call COMMAND... runs the command; exit N exits with code N
PROGRAM = f"""import json, os, subprocess, sys
kind, arguments = sys.argv[1], sys.argv[2:]
if kind == "call":
    sys.exit(subprocess.run(arguments).returncode)
if kind == "exit":
    sys.exit(int(arguments[0]))
print(json.dumps({{"program": os.path.basename(os.environ.get("TOOL", sys.argv[0])), "arguments": arguments, "prefix": sys.prefix, "directory": os.getcwd(),
                  "environment": {{name: os.environ.get(name) for name in {SHOWN}}}}}))
"""


class Three:
    """Three installations on one PATH, in the order of their names."""

    def __init__(self, user, pip, conda, wrapped):
        self.user = user
        self.prefixes = {"a-tool": pip, "b-tool": conda, "c-tool": wrapped}
        self.path = ":".join(f"{prefix}/bin" for prefix in self.prefixes.values()) + ":/usr/bin:/bin"

    def by_path(self, name):
        return f"{self.prefixes[name]}/bin/{name}"

    def run(self, *argv, env=None, **more):
        return self.user.run(*argv, env={"PATH": self.path, **(env or {})}, **more)

    def show(self, *argv, **more):
        return json.loads(self.run(*argv, **more).stdout)


@pytest.fixture(scope="module")
def three(user, tool, place, channels):
    work = user.directory(place)

    def script(name):
        body = f"#!/bin/sh\nset -e\ncat > $env_root/bin/{name} <<'END'\n#!@PREFIX@/bin/python\n{PROGRAM}END\n"
        return user.write(work / f"{name}.sh", body + f'sed -i "1s|@PREFIX@|$env_root|" $env_root/bin/{name}\nchmod +x $env_root/bin/{name}\n')

    cache = {"CONTAINERIZE_CACHE": str(work / "cache")}
    user.run(str(tool), "new", "--prefix", work / "a", "--post-install", script("a-tool"), user.write(work / "a.txt", "six==1.16.0\n"), timeout=600)
    spec = user.write(work / "b.yml", f"channels:\n  - file://{channels}/main\n  - nodefaults\ndependencies:\n  - python=3.11\n  - where\n  - active\n")
    user.run(str(tool), "new", "--prefix", work / "b", "--post-install", script("b-tool"), spec, env=cache, timeout=600)
    software = user.directory(work)
    (software / "bin").mkdir()
    user.write(software / "program.py", PROGRAM)
    user.write(software / "bin/c-tool", '#!/bin/sh\nif [ "$1" = call ]; then shift; exec "$@"; fi\n'
               'TOOL=c-tool exec /usr/bin/python3 -I "$(dirname "$(dirname "$0")")/program.py" "$@"\n', 0o755)
    for path in software.rglob("*"):
        os.chown(path, user.uid, user.uid)
    user.run(str(tool), "wrap-install", software, "-w", "bin", "--prefix", work / "c")
    return Three(user, work / "a", work / "b", work / "c")


NAMES = ["a-tool", "b-tool", "c-tool"]


@pytest.mark.parametrize("name", NAMES)
def test_each_sees_its_own(three, sessions, name):
    prefix = str(three.prefixes[name])
    seen = three.show(name, "show", cwd=three.prefixes[name].parent)
    environment = seen["environment"]
    assert environment["CONTAINERIZE_PREFIX"] == prefix and environment["PATH"].startswith(f"{prefix}/bin:")
    assert sorted(environment["PATH"].split(":")) == sorted(three.path.split(":")), "nothing is lost, nothing is there twice"
    assert environment["VIRTUAL_ENV"] == (prefix if name == "a-tool" else None)
    assert environment["CONDA_PREFIX"] == (prefix if name == "b-tool" else None)
    assert seen["prefix"] == ("/usr" if name == "c-tool" else prefix)
    assert seen["directory"] == str(three.prefixes[name].parent)


@pytest.mark.parametrize("caller, called", itertools.product(NAMES, NAMES))
def test_each_calls_each(three, sessions, caller, called):
    """In a new session or one that already holds all installations, called by name or by path: it behaves like plain directories."""
    sessions.kill_all()
    by_itself = three.show(caller, "show")
    seen = []
    for target in (called, three.by_path(called), called):
        seen.append(three.show(caller, "call", target, "show", *ARGUMENTS, env={"GIVEN": "some\nthing"}))
        assert three.run(caller, "call", target, "exit", "37", check=False).returncode == 37
    sessions.kill_all()
    seen.append(three.show(caller, "call", called, "show", *ARGUMENTS, env={"GIVEN": "some\nthing"}))
    for one in seen:
        assert one["program"] == called and one["arguments"] == ARGUMENTS
        assert one["prefix"] == ("/usr" if called == "c-tool" else str(three.prefixes[called]))
        assert one["environment"] == {**by_itself["environment"], "GIVEN": "some\nthing"}, "a call from inside changes nothing"


def test_a_chain_through_all(three, sessions):
    sessions.kill_all()
    chain = ["a-tool", "call", "b-tool", "call", "c-tool", "call", three.by_path("a-tool"), "call", "c-tool", "call", "b-tool"]
    assert three.show(*chain, "show", *ARGUMENTS)["arguments"] == ARGUMENTS
    assert three.run(*chain, "exit", "9", check=False).returncode == 9
    assert len(sessions.supervisors()) == 1


def test_a_driver_with_workers(three, user, work, sessions):
    """Like snakemake and dask: a driver starts workers with another interpreter; they call tools and answer through a socket."""
    sessions.kill_all()
    worker = user.write(work / "worker.py", "import json, socket, subprocess, sys\n"
                        "shown = json.loads(subprocess.run(['c-tool', 'show', sys.argv[2]], capture_output=True, check=True).stdout)\n"
                        "with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as line:\n"
                        "    line.sendall(json.dumps([sys.prefix, shown['program'], shown['arguments']]).encode())\n")
    driver = user.write(work / "driver.py", "import json, socket, subprocess, sys\n"
                        "server = socket.create_server(('127.0.0.1', 0), backlog=64)\n"
                        "port = str(server.getsockname()[1])\n"
                        "workers = [subprocess.Popen([sys.argv[1], sys.argv[2], port, str(i)]) for i in range(12)]\n"
                        "answers = []\n"
                        "for _ in workers:\n"
                        "    line, _ = server.accept()\n"
                        "    answers.append(json.loads(b''.join(iter(lambda: line.recv(4096), b''))))\n"
                        "print(json.dumps([[one.wait() for one in workers], answers]))\n")
    codes, answers = three.show(three.prefixes["a-tool"] / "bin/python", driver, three.prefixes["b-tool"] / "bin/python", worker)
    assert codes == [0] * 12
    assert sorted(answers) == sorted([str(three.prefixes["b-tool"]), "c-tool", [str(i)]] for i in range(12))
    assert len(sessions.supervisors()) == 1


def test_fifty_calls_at_once(three, user, work, sessions):
    """Called from inside one program, for installations that its session does not hold yet."""
    sessions.kill_all()
    caller = user.write(work / "calls.py", "import json, subprocess, sys\n"
                        "started = [(name, i, subprocess.Popen([name, 'show', str(i)], stdout=subprocess.PIPE)) for i in range(25) for name in ('b-tool', 'c-tool')]\n"
                        "print(json.dumps([[name, i, json.loads(one.communicate()[0]), one.returncode] for name, i, one in started]))\n")
    results = three.show(three.prefixes["a-tool"] / "bin/python", caller)
    assert len(results) == 50
    for name, i, seen, code in results:
        assert (seen["program"], seen["arguments"], code) == (name, [str(i)], 0)
    assert len({json.dumps(seen["environment"]) for _, _, seen, _ in results}) == 1, "it does not matter who was first"
    assert len(sessions.supervisors()) == 1


def test_fifty_launches_at_once(three, sessions):
    sessions.kill_all()
    with ThreadPoolExecutor(50) as pool:
        seen = list(pool.map(lambda i: three.show(NAMES[i % 3], "show", str(i)), range(50)))
    for i, one in enumerate(seen):
        assert one["arguments"] == [str(i)] and one["program"] == NAMES[i % 3]
        assert one["environment"]["CONTAINERIZE_PREFIX"] == str(three.prefixes[NAMES[i % 3]])
    assert len(sessions.supervisors()) == 1


def test_from_a_venv_on_top(three, user, work, sessions):
    pip = three.prefixes["a-tool"]
    user.run(pip / "bin/python", "-m", "venv", work / "venv")
    user.run(work / "venv/bin/pip", "install", "-q", "iniconfig==2.0.0")
    which = "import json, sys, iniconfig, six; print(json.dumps([sys.prefix, sys.executable]))"
    active = {"PATH": f"{work}/venv/bin:{three.path}", "VIRTUAL_ENV": str(work / "venv")}
    own = [str(work / "venv"), f"{work}/venv/bin/python"]
    for _ in range(2):
        sessions.kill_all()
        assert three.show("python", "-c", which, env=active) == own
        for name in NAMES:
            called = three.show("a-tool", "call", name, "call", "python", "-c", which, env=active)
            assert called == own, "the venv stays the first on PATH, whoever calls"
            seen = three.show(name, "show", env=active)["environment"]
            assert seen["VIRTUAL_ENV"] == str(work / "venv") and seen["PATH"].startswith(f"{work}/venv/bin:")
        # Started by the venv's path, without activating it.
        assert three.show(work / "venv/bin/python", "-c", f"import subprocess, sys; sys.exit(subprocess.run(['b-tool', 'call', sys.executable, '-c', {which!r}]).returncode)") == own
