#!/usr/bin/python3
"""What a user does first with a bundle, on a real kernel: run as root in a virtual machine that run.sh has booted.

Prints a line for each step, in TAP's form, and at last what ran where. alice owns the installations, and bob uses them.
"""

import os
import platform
import pwd
import shutil
import signal
import subprocess
import time
import traceback
from pathlib import Path

SMOKE = Path(__file__).resolve().parent
TOOL = SMOKE / "bundle/bin/containerize"
WHEELS, CHANNEL = SMOKE / "wheels", SMOKE / "channel"
HOME = Path("/srv/alice")
PIP, CONDA, SOFTWARE = HOME / "pip", HOME / "conda", HOME / "software"
LINUX = tuple(map(int, os.uname().release.split("-")[0].split(".")[:2]))
GLIBC = tuple(map(int, platform.libc_ver()[1].split(".")))
SPEC = f"channels: ['file://{CHANNEL}', nodefaults]\ndependencies: [{{}}]\n"
CONDA_PYTHON = GLIBC >= (2, 36)  # the channel's Python is Debian 12's
CRASHES = ("terminate called", "Traceback", "Segmentation", "Aborted", "core dumped", "Assertion")


class Skip(Exception):
    """Why this machine cannot do the step."""


class Failed(Exception):
    """What a step found instead of what it expected."""


def require(condition, found):
    if not condition:
        raise Failed(str(found))


class User:
    def __init__(self, name):
        self.entry = pwd.getpwnam(name)
        self.environment = {"HOME": self.entry.pw_dir, "USER": name, "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8",
                            "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS)}

    def options(self, env):
        return {"env": {**self.environment, **(env or {})}, "cwd": "/", "text": True, "user": self.entry.pw_uid, "group": self.entry.pw_gid,
                "extra_groups": []}

    def run(self, *argv, code=0, env=None):
        done = subprocess.run(list(map(str, argv)), capture_output=True, stdin=subprocess.DEVNULL, timeout=900, **self.options(env))
        self.wait_for_recording()
        if code is not None:
            require(done.returncode == code, f"{' '.join(map(str, argv))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def wait_for_recording(self):
        """A build leaves a process behind, which records what programs read first."""
        deadline = time.monotonic() + 600
        while any(command.startswith(b"containerize\0profile\0") for command in self.commands()):
            require(time.monotonic() < deadline, "the recording does not end")
            time.sleep(0.2)

    def commands(self):
        """The command lines of the user's processes."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and entry.stat().st_uid == self.entry.pw_uid:
                    found.append((entry / "cmdline").read_bytes())
            except OSError:  # it has ended
                pass
        return found

    def says(self, *argv, **more):
        return self.run(*argv, **more).stdout.strip()

    def start(self, *argv, env=None):
        return subprocess.Popen(list(map(str, argv)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **self.options(env))

    def write(self, path, text, mode=0o644):
        path.write_text(text)
        path.chmod(mode)
        os.chown(path, self.entry.pw_uid, self.entry.pw_gid)
        return path

    def directory(self, path):
        path.mkdir()
        os.chown(path, self.entry.pw_uid, self.entry.pw_gid)
        return path

    def sessions(self):
        """Maps the pids of session processes to their parents'."""
        found = {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and entry.stat().st_uid == self.entry.pw_uid:
                    status = (entry / "stat").read_text().rpartition(")")[2].split()
                    if b"/libexec/containerize-session" in (entry / "cmdline").read_bytes().split(b"\0")[0] and status[0] != "Z":
                        found[int(entry.name)] = int(status[1])
            except OSError:  # it has ended
                pass
        return found

    def end_sessions(self):
        deadline = time.monotonic() + 60
        while found := self.sessions():
            require(time.monotonic() < deadline, "the sessions do not end")
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.1)

    def servers(self):
        """The file servers: session processes' children in the same user namespace."""
        def namespace(pid):
            try:
                return os.readlink(f"/proc/{pid}/ns/user")
            except FileNotFoundError:
                return "gone"
        found = self.sessions()
        return [pid for pid, parent in found.items() if parent in found and namespace(pid) == namespace(parent)]

    def log(self):
        return "".join(path.read_text() for path in Path(f"/tmp/containerize-{self.entry.pw_uid}").glob("v*-*/log"))


alice, bob, root = User("alice"), User("bob"), User("root")
steps = []


def step(name):
    def add(function):
        steps.append((name, function))
        return function

    return add


@step("doctor")
def doctor():
    said = alice.says(TOOL, "doctor")
    way = "with the kernel's overlayfs" if LINUX >= (5, 11) else "with fuse-overlayfs"
    require(os.uname().release in said and way in said, said)


@step("new: wheels")
def new_from_wheels():
    spec = alice.write(HOME / "requirements.txt", "six==1.16.0\nmarkupsafe==3.0.3\n")
    said = alice.says(TOOL, "new", "--offline", "--prefix", PIP, spec)
    require(f"Ready: {PIP} (" in said, said)


@step("launch")
def launch():
    code = "import six, markupsafe._speedups, sys; print(six.__version__, sys.prefix)"
    for _ in range(2):
        require(alice.says(PIP / "bin/python", "-c", code) == f"1.16.0 {PIP}", "another version or prefix")
    require(f"from {PIP}/" in alice.says(PIP / "bin/pip", "--version"), "another pip")
    require(alice.run(PIP / "bin/python", "-c", "raise SystemExit(37)", code=37), "")


@step("launch in a login session")
def login():
    said = subprocess.run(["systemd-run", "--quiet", "--uid=alice", "--property=PAMName=login", "--pipe", "--wait", PIP / "bin/python", "-c",
                           "import os; print(os.environ['XDG_RUNTIME_DIR'], *os.listdir(os.environ['XDG_RUNTIME_DIR']))"],
                          capture_output=True, text=True, timeout=120)
    require(said.returncode == 0 and said.stdout.split()[0] == f"/run/user/{alice.entry.pw_uid}" and "containerize" in said.stdout.split(), said)


@step("script with a shebang")
def shebang():
    script = alice.write(HOME / "script", f"#!{PIP}/bin/python\nimport six, sys\nprint(six.__version__, *sys.argv[1:])\n", 0o755)
    require(alice.says(script, "a b", "*") == "1.16.0 a b *", "other arguments")


@step("venv on top")
def venv():
    alice.run(PIP / "bin/python", "-m", "venv", HOME / "venv")
    alice.run(HOME / "venv/bin/pip", "install", "-q", "iniconfig==2.0.0")
    said = alice.says(HOME / "venv/bin/python", "-c", "import iniconfig, six, sys; print(sys.prefix, six.__version__)")
    require(said == f"{HOME}/venv 1.16.0", said)


@step("new: conda channel")
def new_from_conda():
    python = "python=3.11, numpy=1.26, where"
    if not CONDA_PYTHON:
        done = alice.run(TOOL, "new", "--offline", "--prefix", CONDA, alice.write(HOME / "refused.yml", SPEC.format(python)), code=2)
        require("__glibc" in done.stderr and "2.36" in done.stderr, done.stderr)
    wanted = alice.write(HOME / "env.yml", SPEC.format(python if CONDA_PYTHON else "where, active"))
    said = alice.says(TOOL, "new", "--offline", "--prefix", CONDA, wanted)
    require(f"Ready: {CONDA} (" in said, said)


@step("launch: conda")
def launch_conda():
    require(alice.says(CONDA / "bin/where").split()[0] == f"{CONDA}/share/where", "the prefix in a binary")
    if CONDA_PYTHON:
        said = alice.says(CONDA / "bin/python", "-c", "import numpy; print(numpy.arange(4).sum(), numpy.__version__)")
        require(said == "6 1.26.4", said)


@step("installations call one another")
def compose():
    source = alice.directory(HOME / "source")
    alice.directory(source / "bin")
    alice.write(source / "bin/all-tools", "#!/bin/sh\nset -e\nwhere | head -n 1\npython -c 'import six; print(six.__version__)'\n"
                "python -c 'import subprocess; subprocess.run([\"where\"], check=True)' | head -n 1\n", 0o755)
    alice.run(TOOL, "wrap-install", source, "-w", "bin", "--prefix", SOFTWARE)
    path = {"PATH": f"{SOFTWARE}/bin:{PIP}/bin:{CONDA}/bin:/usr/bin:/bin"}
    for _ in range(2):
        alice.end_sessions()
        said = alice.says("all-tools", env=path)
        require(said.splitlines() == [f"{CONDA}/share/where", "1.16.0", f"{CONDA}/share/where"], said)
        require(len([pid for pid, parent in alice.sessions().items() if parent == 1]) == 1, f"not one session: {alice.sessions()}\n{alice.log()}")


def update(version, way, *options, env=None):
    """Installs another version of six, and requires that the updater made the installation writable in this way."""
    note = HOME / "way"
    script = f"grep -F ' {PIP} ' /proc/self/mountinfo > {note}; pip install -q six=={version}"
    done = alice.run(TOOL, "update", *options, PIP, "--", "sh", "-c", script, env=env)
    copied = "copying the environment to disk" in done.stdout + done.stderr
    found = "copy" if copied else "fuse-overlayfs" if "fuse-overlayfs" in note.read_text() else "overlay" if "overlay" in note.read_text() else "none"
    require(found == way, f"updated by {found}\n{done.stdout}{done.stderr}{note.read_text()}")
    require(alice.says(PIP / "bin/python", "-c", "import six; print(six.__version__)") == version, "another version")


@step("update: by the kernel's overlayfs")
def update_by_overlay():
    if LINUX < (5, 11):
        raise Skip("users can mount overlays since Linux 5.11")
    update("1.15.0", "overlay")


def staging_without_overlay():
    place = HOME / "staging"
    if not place.exists():
        place.mkdir()
        subprocess.run(["mount", "-t", "ramfs", "none", place], check=True)
        place.chmod(0o1777)
    return place


@step("update: by fuse-overlayfs")
def update_by_fuse():
    update("1.17.0", "fuse-overlayfs", "--tmpdir", staging_without_overlay())


@step("update: by a copy")
def update_by_copy():
    programs = HOME / "programs"
    programs.mkdir()
    for path in [*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()]:
        link = programs / path.name
        if path.name != "fuse-overlayfs" and not link.is_symlink():
            link.symlink_to(path)
    update("1.14.0", "copy", "--tmpdir", staging_without_overlay(), env={"PATH": str(programs)})


@step("rollback")
def rollback():
    alice.run(TOOL, "rollback", PIP, "1")
    require(alice.says(PIP / "bin/python", "-c", "import six; print(six.__version__)") == "1.16.0", "another version")


@step("another user's installation")
def another_user():
    require(bob.says(PIP / "bin/python", "-c", "import six; print(six.__version__)") == "1.16.0", "another version")
    done = bob.run(TOOL, "update", PIP, "--", "true", code=None)
    require(done.returncode != 0, "bob may not change it")


@step("root's installation")
def of_root():
    prefix = Path("/srv/root")
    root.run(TOOL, "new", "--offline", "--prefix", prefix, root.write(Path("/srv/env.yml"), SPEC.format("where")))
    for user in (root, bob):
        require(user.says(prefix / "bin/where").split()[0] == f"{prefix}/share/where", "another prefix")


@step("the server is killed under a program")
def killed_server():
    alice.end_sessions()
    file = alice.says(PIP / "bin/python", "-c", "import markupsafe; print(markupsafe.__path__[0] + '/_speedups.c')")
    program = alice.start(PIP / "bin/python", "-c", f"print('up', flush=True); input(); print(len(open({file!r}).read()) > 1000)")
    require(program.stdout.readline() == "up\n", "it did not start")
    (first,) = alice.servers()
    os.kill(first, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while alice.servers() in ([], [first]):  # before Linux 6.9, requests to the first would fail
        require(time.monotonic() < deadline, "there is no other server")
        time.sleep(0.1)
    out, errors = program.communicate("go\n", timeout=120)
    require((out, errors, program.returncode) == ("True\n", "", 0), f"{program.returncode} {out} {errors}")
    require(alice.says(PIP / "bin/python", "-c", "import six; print(six.__version__)") == "1.16.0", "another version")


@step("staged in memory")
def staged_in_memory():
    alice.end_sessions()
    alice.run(PIP / "bin/python", "-c", "import six", env={"CONTAINERIZE_STAGE": "ram"})
    require("copied env.sqfs to this node" in alice.log(), alice.log())


@step("staged for the node")
def staged_for_the_node():
    alice.end_sessions()
    holder = alice.start(TOOL, "stage", "--node", PIP)
    try:
        require([holder.stdout.readline() for _ in range(2)] == ["\n", "held\n"], "no copy")
        alice.run(PIP / "bin/python", "-c", "import six")
        require("using the copy of" in alice.log(), alice.log())
    finally:
        holder.terminate()
        holder.communicate(timeout=60)


def require_message(done, named, code):
    """One clear message, which names what an administrator can change."""
    text = done.stderr
    require(done.returncode == code, f"exit code {done.returncode}\n{done.stdout}{text}")
    require(text.count("containerize: ") == 1 and named in text and not any(crash in text for crash in CRASHES), text)


def require_refused_launch(named, *wrap):
    alice.end_sessions()
    command = [*wrap, PIP / "bin/python", "-c", "import six; print(six.__version__)"]
    require_message(alice.run(*command, env={"CONTAINERIZE_ENGINE": "native"}, code=None), named, 1)
    said = alice.run(*wrap, TOOL, "doctor", code=1)
    require(named in said.stdout + said.stderr, said.stdout + said.stderr)
    done = alice.run(*command, code=None)
    if not shutil.which("apptainer"):
        require_message(done, named, 1)
        require("apptainer" in done.stderr, done.stderr)
    elif done.returncode == 0:
        require(done.stdout == "1.16.0\n", done.stdout)
        print("# Apptainer ran it", flush=True)
    else:  # Apptainer needs the same, and says so
        require(any(word in done.stderr for word in ("FATAL", "ERROR")) and not any(crash in done.stderr for crash in CRASHES), done.stderr)
        print(f"# Apptainer did not run it: {done.stderr.strip().splitlines()[-1]}", flush=True)


def require_refused_build(named, *wrap):
    done = alice.run(*wrap, TOOL, "new", "--offline", "--prefix", HOME / "more", HOME / "requirements.txt", code=None)
    require_message(done, named, 1)
    require(not (HOME / "more").exists(), "it left files")


class Setting:
    """A value of a sysctl, for a while."""

    def __init__(self, name, value):
        self.file = Path("/proc/sys") / name.replace(".", "/")
        self.value = value

    def __enter__(self):
        if not self.file.exists():
            raise Skip("this kernel has no such setting")
        self.before = self.file.read_text()
        self.file.write_text(self.value)

    def __exit__(self, *_):
        self.file.write_text(self.before)


def refusing_setting(name, value):
    @step(f"refused: {name}={value}")
    def refused():
        with Setting(name, value):
            require_refused_launch(name)
            require_refused_build(name)


refusing_setting("kernel.unprivileged_userns_clone", "0")
refusing_setting("user.max_user_namespaces", "0")
refusing_setting("kernel.apparmor_restrict_unprivileged_userns", "1")


@step("refused: /dev/fuse is not for users")
def refused_fuse():
    device = Path("/dev/fuse")
    device.chmod(0o600)
    try:
        require_refused_launch("/dev/fuse")
    finally:
        device.chmod(0o666)


@step("refused: there is no /dev/fuse")
def no_fuse():
    device = Path("/dev/fuse")
    device.rename("/dev/away")
    try:
        require_refused_launch("/dev/fuse")
    finally:
        Path("/dev/away").rename(device)


# Ubuntu either forbids the namespace, or allows it and denies all capabilities in it.
PROFILES = """abi <abi/4.0>,
profile without_namespaces flags=(attach_disconnected) {
  allow all,
  deny userns,
}
profile without_capabilities flags=(attach_disconnected) {
  allow all,
  deny capability,
}
"""


def refusing_profile(name):
    @step(f"refused: AppArmor, {name.replace('_', ' ')}")
    def refused():
        features = Path("/sys/kernel/security/apparmor/features/namespaces")
        if not any("userns_create" in file.name + file.read_text() for file in features.iterdir() if file.is_file()):
            raise Skip("this kernel's AppArmor does not control user namespaces")
        subprocess.run(["apparmor_parser", "--replace"], input=PROFILES, text=True, check=True)
        confined = ["aa-exec", "-p", name, "--"]
        require_refused_launch("AppArmor", *confined)
        require_refused_build("AppArmor", *confined)


refusing_profile("without_namespaces")
refusing_profile("without_capabilities")


@step("launch after all")
def launch_after_all():
    alice.end_sessions()
    require(alice.says(PIP / "bin/python", "-c", "import six; print(six.__version__)") == "1.16.0", "another version")


def main():
    alice.directory(HOME)
    begin = time.monotonic()
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    print(f"1..{len(steps)}")
    for number, (name, function) in enumerate(steps, 1):
        started = time.monotonic()
        result, word, more = "passed", "ok", ""
        try:
            function()
        except Skip as reason:
            result, more = "skipped", f" # SKIP {reason}"
        except Exception as error:  # the next steps may still pass
            result, word = "failed", "not ok"
            told = str(error) if isinstance(error, Failed) else traceback.format_exc()
            more = "".join(f"\n#   {line}" for line in told.splitlines())
        counts[result] += 1
        print(f"{word} {number} - {name} ({time.monotonic() - started:.1f} s){more}", flush=True)
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    print(f"# {release['PRETTY_NAME'].strip(chr(34))}, Linux {os.uname().release}, glibc {platform.libc_ver()[1]}, "
          f"Python {platform.python_version()}, {platform.machine()}, {time.monotonic() - begin:.0f} s")
    print(", ".join(f"{count} {result}" for result, count in counts.items()), flush=True)


main()
