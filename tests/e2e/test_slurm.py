"""Sessions on a cluster: a real Slurm with two nodes, and what steps, jobs and their ends mean for sessions."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from conftest import eventually
from on_cluster import contained, place, pytestmark, slurm  # noqa: F401 (fixtures)
from slurm import LOGIN, NODES  # on_cluster adds its directory to sys.path

# Prints its rank, waits until the file named by its first argument exists, and then imports six.
WAITING = """\
import os, sys, time
print("at", os.environ.get("SLURM_PROCID"), flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
import six
print("done", six.__version__, flush=True)
"""


@pytest.fixture(scope="module")
def env(user, small, place):
    return user.copy(small, place / "env", place / "env")


@pytest.fixture(scope="module")
def timed_out(slurm, env, place, user):
    """A job that exceeds its time limit, which cannot be less than a minute. It is submitted first and checked last."""
    directory = user.directory(place)
    script = f"#!/bin/bash\nsrun {env}/bin/python -c 'import time; time.sleep(1000)'\n"
    return slurm.sbatch(script, "-N1", "-wn2", "--time=1", cwd=directory)


@pytest.fixture()
def wait(user, work):
    return user.write(work / "wait.py", WAITING)


class Node:
    """What the user has on one machine of the cluster."""

    def __init__(self, slurm, name, sessions):
        self.machine, self.sessions = slurm.machines[name], sessions
        self.temporary = Path(f"/proc/{self.machine.first}/root/tmp")

    def supervisors(self):
        return sorted(set(self.sessions.supervisors()) & set(self.machine.processes()))

    def supervisors_of(self, job):
        """The name of a session contains the job and its step."""
        found = []
        for pid in self.supervisors():
            with suppress(OSError, IndexError):  # it has ended
                if f"slurm-{job.number}." in Path(f"/proc/{pid}/cmdline").read_text().split("\0")[2]:
                    found.append(pid)
        return found

    def states_of(self, job):
        """The directories of the sessions of a job's steps."""
        return list(self.temporary.glob(f"containerize-{self.sessions.user.uid}/*slurm-{job.number}.[0-9]*"))

    def servers(self):
        return sorted(set(self.sessions.servers()) & set(self.machine.processes()))

    def left(self) -> list[str]:
        """Processes, files in /tmp and sessions. The directory of the sessions and its lock may stay."""
        processes = []
        for pid in self.machine.processes():
            try:
                if Path(f"/proc/{pid}").stat().st_uid == self.sessions.user.uid:
                    processes.append(Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " "))
            except OSError:
                pass
        # Sessions that end remove theirs meanwhile, which os.walk() bears.
        files = [os.path.relpath(os.path.join(directory, name), self.temporary)
                 for directory, directories, names in os.walk(self.temporary) for name in directories + names]
        state = f"containerize-{self.sessions.user.uid}"
        return processes + [file for file in files if file not in (state, f"{state}/start.lock")]


@pytest.fixture()
def nodes(slurm, sessions):
    """n1 and n2."""
    return [Node(slurm, name, sessions) for name in NODES]


def nothing_left(*nodes):
    # The long timeout is not a promise of the program: the machine may be busy.
    eventually(lambda: not any(node.left() for node in nodes), 180)


def count(job, text: str, number: int):
    """Waits until the job has printed the text `number` times."""
    eventually(lambda: job.output().count(text) >= number, 300)


def test_one_session_for_all_tasks_of_a_node(slurm, env, nodes, wait, work, timed_out):
    script = f"#!/bin/bash\nsrun {env}/bin/python {wait} {work}/go\n"
    job = slurm.sbatch(script, "-N1", "-wn1", "-n64", cwd=work)
    count(job, "at", 64)
    assert len(nodes[0].supervisors()) == len(nodes[0].servers()) == 1
    (work / "go").touch()
    assert job.wait().count("done 1.16.0") == 64
    nothing_left(nodes[0])


def test_a_session_on_each_node(slurm, env, nodes, wait, work):
    job = slurm.sbatch(f"#!/bin/bash\nsrun {env}/bin/python {wait} {work}/go\n", "-N2", "--ntasks-per-node=2", cwd=work)
    count(job, "at", 4)
    assert [len(node.supervisors_of(job)) for node in nodes] == [len(node.states_of(job)) for node in nodes] == [1, 1]
    (work / "go").touch()
    job.wait()
    # On n2 runs the job that exceeds its time limit, too.
    eventually(lambda: not any(node.supervisors_of(job) or node.states_of(job) for node in nodes), 180)
    nothing_left(nodes[0])


def test_steps_at_once(slurm, env, nodes, wait, work):
    """Each step has its own session. When one ends, the others and the programs of the batch script continue."""
    script = f"""#!/bin/bash
{env}/bin/python {wait} {work}/last &
srun --overlap {env}/bin/python {wait} {work}/first &
first=$!
srun --overlap {env}/bin/python {wait} {work}/last &
wait $first
echo first is over
wait
"""
    job = slurm.sbatch(script, "-wn1", cwd=work)
    count(job, "at", 3)
    assert len(nodes[0].supervisors()) == 3
    (work / "first").touch()
    count(job, "first is over", 1)
    eventually(lambda: len(nodes[0].supervisors()) == 2, 180)
    (work / "last").touch()
    assert job.wait().count("done 1.16.0") == 3
    nothing_left(nodes[0])


def control_groups(job):
    return [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/slurm_n*/uid_*/job_{job.number}")]


def private_tmp(job, node):
    return list(Path(f"/proc/{node.machine.first}/root/mnt").glob(f"n*/{job.number}"))


def nothing_of(job, *nodes):
    """Waits until there are no processes, files or control groups left, and no private /tmp of the job."""
    nothing_left(*nodes)
    eventually(lambda: not control_groups(job) and not any(private_tmp(job, node) for node in nodes), 180)


def test_control_groups_and_a_tmp_for_each_job(contained, env, sessions, wait, work):
    """Two jobs on a node: the sessions of each are in its own control group, and their state is in its own /tmp."""
    node = Node(contained, "n1", sessions)
    script = f"#!/bin/bash\ntouch /tmp/of-$SLURM_JOB_ID\nsrun {env}/bin/python {wait} {work}/go\nls /tmp\n"
    jobs = [contained.sbatch(script, "-wn1", "-n4", "--mem=500", cwd=work) for _ in range(2)]
    for job in jobs:
        count(job, "at", 4)
    assert len(node.supervisors()) == len(node.servers()) == 2
    for job in jobs:
        assert control_groups(job) and private_tmp(job, node)
        (pid,) = node.supervisors_of(job)
        assert f"/job_{job.number}/step_0" in Path(f"/proc/{pid}/cgroup").read_text()
    assert not any(node.temporary.iterdir())
    (work / "go").touch()
    for job in jobs:
        output = job.wait()
        assert output.count("done 1.16.0") == 4 and f"of-{job.number}" in output and output.count("of-") == 1
        nothing_of(job, node)


def test_the_memory_of_a_job(contained, env, sessions, work):
    """A server's cache counts as memory of the job, yet a whole installation can be read with little. A job that uses more is killed."""
    node = Node(contained, "n1", sessions)
    read = f"find {env} -type f -exec cat {{}} + | wc -c"
    job = contained.sbatch(f"#!/bin/bash\nsrun {env}/bin/_debug_exec sh -c '{read}'\n", "-wn1", "--mem=64", cwd=work)
    assert int(job.wait()) > 10_000_000
    nothing_of(job, node)
    greedy = contained.sbatch(f"#!/bin/bash\nsrun {env}/bin/python -c 'print(len(b\"x\" * 400_000_000))'\n", "-wn1", "--mem=100", cwd=work)
    output = greedy.wait("FAILED")
    assert "400000000" not in output and "oom-kill event" in output
    nothing_of(greedy, node)


@pytest.mark.parametrize("options", [[], ["--signal=KILL"]])
def test_cancelled_in_a_control_group(contained, env, sessions, wait, work, options):
    nodes = [Node(contained, name, sessions) for name in NODES]
    job = contained.sbatch(f"#!/bin/bash\nsrun {env}/bin/python {wait} {work}/never\n", "-N2", "--mem=500", cwd=work)
    count(job, "at", 2)
    assert control_groups(job) and all(private_tmp(job, node) for node in nodes)
    job.cancel(*options)
    nothing_of(job, *nodes)


def test_a_program_without_the_variables_of_its_job(slurm, env, nodes, work):
    script = f"#!/bin/bash\nsrun env -i {env}/bin/python -c 'import six; print(six.__version__)'\n"
    assert slurm.sbatch(script, "-wn1", cwd=work).wait() == "1.16.0\n"
    nothing_left(nodes[0])


def test_two_jobs_on_a_node(slurm, env, nodes, wait, work):
    script = f"#!/bin/bash\nsrun {env}/bin/python {wait} {work}/$SLURM_ARRAY_TASK_ID\n"
    array = slurm.sbatch(script, "-wn1", "--array=1-2", f"--output={work}/out.%a", cwd=work)
    eventually(lambda: all("at 0" in (work / f"out.{task}").read_text() for task in (1, 2) if (work / f"out.{task}").exists())
               and len(list(work.glob("out.*"))) == 2, 180)
    assert len(nodes[0].supervisors()) == 2
    (work / "1").touch()
    eventually(lambda: len(nodes[0].supervisors()) == 1, 180)
    (work / "2").touch()
    eventually(lambda: "done 1.16.0" in (work / "out.2").read_text(), 180)
    assert array.number in map(int, slurm.command("squeue", "-h", "-t", "all", "-o", "%A").stdout.split())
    nothing_left(nodes[0])


def test_heterogeneous_job(slurm, env, nodes, work):
    script = f"""#!/bin/bash
srun --het-group=0,1 {env}/bin/python -c 'import os, six; print(os.environ["SLURMD_NODENAME"], six.__version__)'
"""
    done = slurm.command("sbatch", "--parsable", "--wait", "-N1", "-n2", "-wn1", ":", "-N1", "-n1", "-wn2",
                         slurm_script(work, script), cwd=work)
    output = (work / f"slurm-{done.stdout.strip()}.out").read_text()
    assert sorted(output.splitlines()) == ["n1 1.16.0", "n1 1.16.0", "n2 1.16.0"]
    nothing_left(nodes[0])


def slurm_script(work, text) -> str:
    file = work / "job.sh"
    file.write_text(text)
    file.chmod(0o755)
    return str(file)


def test_shell_of_an_allocation(slurm, env, nodes, work, sessions):
    """salloc runs on the login machine, so the session there ends with the allocation."""
    login = Node(slurm, LOGIN, sessions)
    shell = f"{env}/bin/python -c 'import six; print(six.__version__)'; srun {env}/bin/python -c 'import six; print(six.__version__)'"
    done = slurm.command("salloc", "-wn1", "sh", "-c", shell, cwd=work)
    assert done.stdout == "1.16.0\n1.16.0\n"
    nothing_left(login, nodes[0])


@pytest.mark.parametrize("options", [[], ["--signal=KILL"]], ids=["asked", "killed"])
def test_cancelled(slurm, env, nodes, wait, work, options):
    script = f"#!/bin/bash\n{env}/bin/python {wait} {work}/never &\nsrun {env}/bin/python {wait} {work}/never\n"
    job = slurm.sbatch(script, "-N1", "-wn1", "-n4", cwd=work)
    count(job, "at", 5)
    job.cancel(*options)
    nothing_left(nodes[0])


def test_the_grace_of_a_cancelled_job(slurm, env, nodes, work, user):
    """A program that saves its work on SIGTERM can still import modules that were not read before."""
    saving = user.write(work / "save.py", """\
import signal, sys, time
def save(*_):
    time.sleep(1)
    import six, sqlite3, xml.dom.minidom
    print("saved with", six.__version__, flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("at work", flush=True)
while True:
    time.sleep(0.1)
""")
    job = slurm.sbatch(f"#!/bin/bash\nsrun {env}/bin/python {saving}\n", "-wn1", cwd=work)
    count(job, "at work", 1)
    job.cancel()
    count(job, "saved with 1.16.0", 1)
    nothing_left(nodes[0])


def test_death_of_the_daemon_of_a_node(slurm, env, nodes, wait, work):
    """Running steps do not need slurmd, only slurmstepd."""
    job = slurm.sbatch(f"#!/bin/bash\nsrun {env}/bin/python {wait} {work}/go\n", "-wn1", "-n2", cwd=work)
    count(job, "at", 2)
    slurm.kill_node_daemon("n1")
    (work / "go").touch()
    count(job, "done 1.16.0", 2)
    slurm.start_node("n1")
    job.wait()
    nothing_left(nodes[0])


def test_update_during_a_job(slurm, small, place, tool, user, nodes, wait, work):
    """Running programs keep the old state; the next step sees the new one."""
    changed = user.copy(small, place / "changed", place / "changed")
    script = f"""#!/bin/bash
srun --overlap {changed}/bin/python {wait} {work}/go &
while [ ! -e {work}/updated ]; do sleep 0.1; done
srun --overlap {changed}/bin/python -c 'import six; print("new", six.__version__)'
touch {work}/go
wait
"""
    job = slurm.sbatch(script, "-wn1", cwd=work)
    count(job, "at", 1)
    user.run(str(tool), "update", str(changed), "--", "python", "-m", "pip", "install", "six==1.15.0")
    (work / "updated").touch()
    output = job.wait()
    assert "new 1.15.0" in output and "done 1.16.0" in output
    nothing_left(nodes[0])


def test_many_short_steps(slurm, env, nodes, work):
    before = open_files(slurm)
    script = f"""#!/bin/bash
for step in $(seq 500); do
    srun {env}/bin/python -c pass || echo failed
done
echo remains:
ls /tmp/containerize-$UID
"""
    job = slurm.sbatch(script, "-wn1", cwd=work)
    # On a busy node srun prints that it has to wait.
    said, remains = job.wait(seconds=1500).split("remains:\n")
    assert "failed" not in said
    remains = remains.splitlines()
    # The last session may still be ending; the other steps have left nothing.
    assert "start.lock" in remains and len(remains) <= 3
    nothing_left(nodes[0])
    assert open_files(slurm) <= before + 10


def open_files(slurm) -> int:
    """Of all processes on the first node."""
    found = 0
    for pid in slurm.machines["n1"].processes():
        with suppress(OSError):  # it has ended
            found += len(os.listdir(f"/proc/{pid}/fd"))
    return found


def test_time_limit(timed_out, nodes, slurm):
    """Runs last, because reaching the limit takes a minute."""
    timed_out.wait("TIMEOUT", seconds=180)
    nothing_left(*nodes)


def log_of(node, job) -> str:
    """The log of the session that the job's step has on that node; the session must be running."""
    (state,) = node.states_of(job)
    return (state / "log").read_text()


@pytest.mark.parametrize("where", ["local", "ram"])
def test_copies_for_a_job(slurm, env, tool, nodes, wait, work, where):
    """sbcast copies the image to two nodes. The original is then overwritten, so sessions must read the copies."""
    image = env / "env.sqfs"
    whole = image.read_bytes()
    script = f"""#!/bin/bash
{tool} stage --to {where} {env} || exit
ls -A /tmp
touch {work}/staged; while [ ! -e {work}/go ]; do sleep 0.1; done
srun --ntasks-per-node=1 {env}/bin/python {wait} {work}/end
"""
    job = slurm.sbatch(script, "-N2", cwd=work)
    eventually(lambda: (work / "staged").exists(), 300)
    try:
        image.write_bytes(whole[:96] + bytes(len(whole) - 96))  # sessions check the superblock of the original
        (work / "go").touch()
        count(job, "at", 2)
        for node in nodes:
            assert "using the copy of" in log_of(node, job)
    finally:
        image.write_bytes(whole)
    (work / "end").touch()
    output = job.wait()
    assert output.startswith(f"Staged: 2 of 2 nodes have a copy of {env} ("), output
    assert "sbcast" not in output and "containerize-image" not in output, output
    assert output.count("done 1.16.0") == 2
    nothing_left(*nodes)


def test_a_copy_for_one_node(slurm, env, tool, nodes, wait, work):
    """A step that asks for no copy uses none."""
    script = f"""#!/bin/bash
{tool} stage {env} || exit
CONTAINERIZE_STAGE=off srun {env}/bin/python {wait} {work}/end
"""
    job = slurm.sbatch(script, "-wn1", cwd=work)
    count(job, "at", 1)
    assert "using the copy of" not in log_of(nodes[0], job)
    (work / "end").touch()
    assert job.wait().startswith("Staged: 1 of 1 nodes have a copy")
    nothing_left(nodes[0])


def holders(node):
    """The processes that hold copies on the node."""
    found = []
    for pid in node.machine.processes():
        with suppress(OSError):  # it has ended
            if Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1:3] == ["stage", "--node"]:
                found.append(pid)
    return found


def test_a_copy_that_is_lost_later(slurm, env, tool, nodes, work):
    """One node's copy ends, as when the system kills its process for lack of memory. The other node keeps its own."""
    script = f"""#!/bin/bash
{tool} stage {env} || exit
touch {work}/staged; while [ ! -e {work}/lost ]; do sleep 0.1; done
srun -wn2 -N1 {env}/bin/python -c 'import six' && touch {work}/used
while [ ! -e {work}/end ]; do sleep 0.1; done
"""
    job = slurm.sbatch(script, "-N2", cwd=work)
    eventually(lambda: (work / "staged").exists(), 300)
    (lost,), kept = holders(nodes[0]), holders(nodes[1])
    os.kill(lost, signal.SIGKILL)
    eventually(lambda: not holders(nodes[0]), 180)
    (work / "lost").touch()
    eventually(lambda: (work / "used").exists(), 300)
    assert len(kept) == 1 and holders(nodes[1]) == kept
    (work / "end").touch()
    job.wait()
    nothing_left(*nodes)


def test_copies_that_are_not_what_was_built(slurm, env, tool, nodes, work):
    image = env / "env.sqfs"
    whole = image.read_bytes()
    try:
        image.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        script = f"#!/bin/bash\n{tool} stage {env}\necho code $?\n"
        output = slurm.sbatch(script, "-N2", cwd=work).wait()
    finally:
        image.write_bytes(whole)
    for node in ("n1", "n2"):
        assert f"{node}: the copy of the image differs from the image that was built" in output, output
    assert "no node of the job has a copy" in output and output.endswith("code 1\n"), output
    nothing_left(*nodes)


def test_messages_that_look_like_reports(slurm, env, tool, nodes, user, work):
    """Slurm passes on what its prolog of a task prints. It says nothing about copies, even if srun is asked to label all lines."""
    prolog = user.write(work / "prolog", "#!/bin/sh\nprintf 'print held\\nprint failed\\n'\n", 0o755)
    image = env / "env.sqfs"
    whole = image.read_bytes()
    script = f"#!/bin/bash\nexport SLURM_TASK_PROLOG={prolog} SLURM_LABELIO=1\n{tool} stage {env}\necho code $?\n"
    output = slurm.sbatch(script, "-N2", cwd=work).wait()
    assert f"Staged: 2 of 2 nodes have a copy of {env} (" in output and output.endswith("code 0\n"), output
    assert output.count("held\n") == output.count("failed\n") == 2, output
    nothing_left(*nodes)
    try:
        image.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        output = slurm.sbatch(script, "-N2", cwd=work).wait()
    finally:
        image.write_bytes(whole)
    assert "no node of the job has a copy" in output and output.endswith("code 1\n"), output
    nothing_left(*nodes)


def test_staging_is_for_jobs(tool, user, env):
    done = user.run(str(tool), "stage", str(env), check=False)
    assert done.returncode == 2 and "this is not a Slurm job" in done.stderr and "CONTAINERIZE_STAGE" in done.stderr
