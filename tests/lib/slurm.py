"""A real Slurm with a login machine and two nodes, n1 and n2, for one test file. Needs root and Debian's Slurm packages.

Each machine has its own namespaces: a network with an address, pids, a hostname and a /tmp. They share the rest of the
filesystem, as on a cluster. Killing the holder of a pid namespace ends everything that runs in it.
"""

import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

from common import next_line

NODES = ("n1", "n2")
# More than the machine has, so that many tasks run at the same time.
CPUS = 64
MEMORY = 8192
GPUS = 8
LOGIN = "login"
CONFIGURATION = """\
ClusterName=test
SlurmctldHost=login
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={base}/munge/socket
CryptoType=crypto/munge
SlurmctldPidFile={base}/slurmctld.pid
SlurmctldLogFile={base}/slurmctld.log
StateSaveLocation={base}/state
SlurmdPidFile={base}/slurmd.%n.pid
SlurmdLogFile={base}/slurmd.%n.log
SlurmdSpoolDir={base}/spool.%n
{containment}MpiDefault=pmi2
SwitchType=switch/none
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_min_interval=0,bf_interval=1
SelectType=select/cons_tres
KillWait=5
MinJobAge=7200
OverTimeLimit=0
MaxArraySize=100
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
SlurmdParameters=config_overrides
GresTypes=gpu
{more}NodeName={nodes} CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus} State=UNKNOWN
PartitionName=all Nodes={nodes} Default=YES MaxTime=60 State=UP OverSubscribe=FORCE:4
"""
# How Slurm tells the processes of a job from others.
BY_PROCESSES = """\
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectTypeParameters=CR_Core
"""
# As on most clusters: by control groups, which limit memory; each job has its own /tmp.
BY_CONTROL_GROUPS = """\
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup
SelectTypeParameters=CR_Core_Memory
JobContainerType=job_container/tmpfs
PrologFlags=Contain
"""
CONTROL_GROUPS = """\
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainRAMSpace=yes
ConstrainCores=no
"""
# On a filesystem of the node alone; Slurm does not accept /tmp.
PRIVATE_TMP = """\
AutoBasePath=true
BasePath=/mnt
"""


class Machine:
    """Namespaces that one process holds; everything in them ends with it."""

    def __init__(self, name: str, shared: Path, address: str | None = None):
        self.name = name
        setup = f"""
            ip link set lo up
            hostname {name}
            mount -t tmpfs -o mode=1777 none /tmp
            mount --bind {shared}/hosts /etc/hosts
            echo ready
            sleep infinity & wait  # not exec: bash, as the first process, collects those that lost their parents
        """
        self.holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "--ipc", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child",
             "--mount-proc", "bash", "-euc", setup], stdout=subprocess.PIPE, text=True)
        try:
            assert next_line(self.holder.stdout) == "ready\n", f"{name} could not be set up"
            children = Path(f"/proc/{self.holder.pid}/task/{self.holder.pid}/children").read_text()
            self.first = int(children.split()[0])
        except BaseException:
            self.stop()
            raise

    def inside(self, *argv, uid: int = 0, gid: int = 0) -> list[str]:
        """The command line that runs `argv` on this machine."""
        enter = ["nsenter", "-t", str(self.first), "-n", "-u", "-i", "-m", "-p"]
        become = ["setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups"] if uid else []
        return [*enter, *become, *argv]

    def run(self, *argv, **more):
        return subprocess.run(self.inside(*argv), check=True, text=True, stdout=subprocess.PIPE, **more).stdout

    def processes(self) -> list[int]:
        """Of all users, by their pids outside."""
        own = os.readlink(f"/proc/{self.first}/ns/pid")
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "ns/pid") == own:
                    found.append(int(entry.name))
            except OSError:
                pass
        return found

    def stop(self):
        self.holder.kill()
        self.holder.wait(60)


class Slurm:
    def __init__(self, shared: Path, user, more: str, contained: bool):
        self.base = shared
        self.user = user
        self.contained = contained
        self.machines = {}
        self.daemons = {}
        names = [LOGIN, *NODES]
        (shared / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"10.37.0.{number} {name}\n" for number, name in enumerate(names, 1)))
        self.configuration = shared / "slurm.conf"
        self.configuration.write_text(CONFIGURATION.format(
            base=shared, nodes=f"n[1-{len(NODES)}]", cpus=CPUS, memory=MEMORY, gpus=GPUS, more=more,
            containment=BY_CONTROL_GROUPS if contained else BY_PROCESSES))
        if contained:
            (shared / "cgroup.conf").write_text(CONTROL_GROUPS)
            (shared / "job_container.conf").write_text(PRIVATE_TMP)
        # Slurm counts these files as GPUs and gives their numbers to jobs; there are no real devices.
        for number in range(GPUS):
            os.mknod(shared / f"gpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        (shared / "gres.conf").write_text(f"NodeName=n[1-{len(NODES)}] Name=gpu File={shared}/gpu[0-{GPUS - 1}]\n")

    def begin(self):
        """Starts the machines and Slurm's daemons. When this fails, `stop` ends those that were started."""
        for name in (LOGIN, *NODES):
            self.machines[name] = Machine(name, self.base)
        self._connect()
        self._start_munge()
        for directory in ("state", *(f"spool.{node}" for node in NODES)):
            (self.base / directory).mkdir()
        self._start(LOGIN, "slurmctld", "-D", "-f", str(self.configuration))
        for node in NODES:
            if self.contained:
                self.machines[node].run("mount", "-t", "tmpfs", "none", "/mnt")
            self.start_node(node)
        self.wait_for_nodes()

    def _connect(self):
        """Connects the machines: a bridge on the login machine, with a veth pair to each node."""
        login = self.machines[LOGIN]
        login.run("ip", "link", "add", "net0", "type", "bridge")
        login.run("ip", "addr", "add", "10.37.0.1/24", "dev", "net0")
        login.run("ip", "link", "set", "net0", "up")
        for number, node in enumerate(NODES, 2):
            # Enters only the network namespace of the login machine: pids of other machines are unknown in its pid namespace.
            subprocess.run(["nsenter", "-t", str(login.first), "-n", "ip", "link", "add", node, "type", "veth", "peer",
                            "name", "eth0", "netns", str(self.machines[node].first)], check=True)
            login.run("ip", "link", "set", node, "master", "net0", "up")
            self.machines[node].run("ip", "addr", "add", f"10.37.0.{number}/24", "dev", "eth0")
            self.machines[node].run("ip", "link", "set", "eth0", "up")

    def _start_munge(self):
        place = self.base / "munge"
        place.mkdir(mode=0o755)
        key = place / "key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        self._start(LOGIN, "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={place}/socket",
                    f"--pid-file={place}/pid", f"--log-file={place}/log", f"--seed-file={place}/seed", name="munged")
        self._eventually(lambda: (place / "socket").exists(), "munged")

    def _start(self, machine: str, *argv, name=None):
        name = name or f"{argv[0]}-{machine}"
        with open(self.base / f"{name}.out", "w") as output:
            self.daemons[name] = subprocess.Popen(
                self.machines[machine].inside(*argv), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SLURM_CONF": str(self.configuration)})

    def start_node(self, node: str):
        self._start(node, "slurmd", "-D", "-N", node, "-f", str(self.configuration))

    def kill_node_daemon(self, node: str):
        """Kills slurmd alone; the steps that it started continue."""
        pid = int((self.base / f"slurmd.{node}.pid").read_text())
        self.machines[node].run("kill", "-9", str(pid))
        self.daemons.pop(f"slurmd-{node}").wait(60)

    def wait_for_nodes(self):
        def idle():
            states = self.command("sinfo", "-h", "-N", "-o", "%N %t", check=False).stdout.split()
            return len(states) == 2 * len(NODES) and all(state == "idle" for state in states[1::2])
        self._eventually(idle, "the nodes")

    def _eventually(self, condition, what, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{what} did not come up:\n{self.logs()}"
            time.sleep(0.1)

    def logs(self) -> str:
        return "\n".join(f"{file.name}:\n{file.read_text()[-3000:]}" for file in sorted(self.base.glob("*.log")))

    def environment(self) -> dict[str, str]:
        # Threads of many ranks on few processors would mostly wait for one another.
        return {"SLURM_CONF": str(self.configuration), "HOME": self.user.pw_dir, "USER": self.user.pw_name,
                "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}

    def command(self, *argv, check=True, cwd="/", env=None, timeout=300, machine=LOGIN):
        """Runs a command as the user, by default on the login machine."""
        inside = self.machines[machine].inside("env", f"--chdir={cwd}", *map(str, argv), uid=self.user.pw_uid, gid=self.user.pw_gid)
        done = subprocess.run(inside, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout, env={**self.environment(), **(env or {})})
        if check:
            assert done.returncode == 0, f"{argv} gave {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done

    def start(self, *argv, cwd="/", env=None, **more):
        inside = self.machines[LOGIN].inside("env", f"--chdir={cwd}", *map(str, argv), uid=self.user.pw_uid, gid=self.user.pw_gid)
        return subprocess.Popen(inside, text=True, env={**self.environment(), **(env or {})}, **more)

    def sbatch(self, script: str, *options, cwd) -> "Job":
        """Submits a job script, given as text or as a path. Its output goes to `cwd`/slurm-ID.out."""
        if "\n" in script:
            file = Path(tempfile.mkstemp(dir=cwd, suffix=".sh")[1])
            file.write_text(script)
            file.chmod(0o755)
            script = str(file)
        done = self.command("sbatch", "--parsable", *options, script, cwd=cwd)
        return Job(self, int(done.stdout.strip().split(";")[0]), Path(cwd))

    def stop(self):
        for machine in self.machines.values():
            machine.stop()
        for daemon in self.daemons.values():
            daemon.wait(60)
        shutil.rmtree(self.base, ignore_errors=True)


class Job:
    def __init__(self, slurm: Slurm, number: int, directory: Path):
        self.slurm, self.number, self.directory = slurm, number, directory

    def state(self) -> str:
        shown = self.slurm.command("scontrol", "show", "job", str(self.number)).stdout
        return re.search(r"JobState=(\w+)", shown)[1]

    def wait(self, state="COMPLETED", seconds=600) -> str:
        """Waits until the job has ended in `state`, and returns its output."""
        deadline = time.monotonic() + seconds
        while (now := self.state()) in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED"):
            assert time.monotonic() < deadline, f"job {self.number} is still {now}\n{self.output()}\n{self.slurm.logs()}"
            time.sleep(0.2)
        assert now == state, f"job {self.number} is {now}\n{self.output()}"
        return self.output()

    def output(self) -> str:
        """What the job printed, without what srun says if a step has to wait for the one before it."""
        file = self.directory / f"slurm-{self.number}.out"
        waits = r"^srun: (Job .*step creation (temporarily|still) disabled.*|Step created for .*)\n"
        return re.sub(waits, "", file.read_text(), flags=re.MULTILINE) if file.exists() else ""

    def cancel(self, *options):
        self.slurm.command("scancel", *options, str(self.number))


@contextmanager
def on_one_cpu():
    """Runs the body on one CPU. Recent kernels number namespaces per CPU and refuse to bind-mount a namespace, as Slurm does for each
    job, inside one with a higher number. On one CPU the numbers always increase."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextmanager
def cluster(user, more: str = "", contained: bool = False):
    """A cluster for `user`, a passwd entry. Its files are in the user's home, because machines do not share /tmp. `more` is added to
    slurm.conf. With `contained`, jobs have control groups and a private /tmp."""
    shared = Path(tempfile.mkdtemp(prefix="slurm-", dir=user.pw_dir))
    shared.chmod(0o755)
    started = Slurm(shared, user, more, contained)
    try:
        with on_one_cpu() if contained else nullcontext():
            started.begin()
        yield started
    finally:
        started.stop()
