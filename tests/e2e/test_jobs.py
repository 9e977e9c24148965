"""Training on a cluster: `containerize launch`, job scripts from every template, and the programs that installations bring for jobs. They
run on a real Slurm with two nodes, with torch on CPUs. The losses must equal those of a plain venv."""

import os
import re
from pathlib import Path

import pytest

from conftest import SOURCE
from on_cluster import place, pytestmark, slurm  # noqa: F401 (fixtures)
from slurm import NODES  # on_cluster adds its directory to sys.path

EPOCHS = ("4", "2")


@pytest.fixture(scope="module")
def env(torch_env):
    return torch_env


@pytest.fixture(scope="module")
def venv(user, place, env, uv):
    """A plain venv with the same packages."""
    user.run("/usr/bin/python3", "-m", "venv", "--without-pip", place / "venv")
    user.run("uv", "pip", "install", "-q", "--python", place / "venv", "-r", env / "share/packages.txt", timeout=1200,
             env={**uv, "UV_FIND_LINKS": os.environ.get("PIP_FIND_LINKS")})
    return place / "venv"


@pytest.fixture(scope="module")
def examples(user, place) -> Path:
    target = place / "examples"
    target.mkdir()
    for file in [*(SOURCE / "examples/ddp").glob("*.py"), *(SOURCE / "examples/cluster").glob("*.py")]:
        user.write(target / file.name, file.read_text())
    return target


def losses(output: str) -> dict[int, float]:
    """Maps ranks to their final losses."""
    return {int(rank): float(loss) for rank, loss in re.findall(r"\[(?:GPU|rank )(\d+)[^\]]*\] Final loss ([0-9.]+)", output)}


@pytest.fixture(scope="module")
def of_venv(user, venv, examples, place):
    """of_venv(SCRIPT, PROCESSES) trains with the venv on this machine and returns the losses by rank."""
    known = {}

    def train(script: str, processes: int):
        if (script, processes) not in known:
            work = user.directory(place)
            start = [f"{venv}/bin/torchrun", "--standalone", f"--nproc_per_node={processes}"]
            known[script, processes] = losses(user.run(*start, f"{examples}/{script}", *EPOCHS, cwd=work).stdout)
            assert len(known[script, processes]) == processes
        return known[script, processes]

    return train


@pytest.fixture()
def job(slurm, tool, env, work):
    """job(OPTION, ..., program=WORDS) submits the script that `containerize job` prints, and returns the job's output."""

    def run(*options, program, edit=lambda text: text):
        script = slurm.command(tool, "job", "--env", env, *options, "--", *program).stdout
        # Removes partitions that this cluster does not have.
        script = re.sub(r"^#SBATCH --partition=.*\n", "", script, flags=re.MULTILINE)
        return slurm.sbatch(edit(script), cwd=work).wait()

    return run


def same(found: dict[int, float], expected: dict[int, float]):
    assert found and found == pytest.approx(expected, rel=1e-4)


def test_single(job, examples, work, user, venv, place):
    found = losses(job("--gpus", "1", program=[examples / "single_gpu.py", *EPOCHS]))
    plain = user.run(f"{venv}/bin/python", f"{examples}/single_gpu.py", *EPOCHS, cwd=user.directory(place)).stdout
    same(found, losses(plain))
    assert (work / "snapshot.pt").stat().st_size > 0


def test_standalone(job, examples, of_venv, work):
    same(losses(job("--gpus", "2", program=[examples / "multi_gpu.py", *EPOCHS])), of_venv("multi_gpu.py", 2))
    assert (work / "snapshot.pt").stat().st_size > 0


@pytest.mark.parametrize("kind", ["torchrun", "srun", "mpi-torchrun", "mpi"])
def test_two_nodes(job, examples, of_venv, work, kind):
    output = job("--nodes", "2", "--gpus", "2", "--kind", kind, program=[examples / "multinode.py", *EPOCHS])
    same(losses(output), of_venv("multinode.py", 4))
    # Consecutive ranks are on the same node.
    assert [re.search(rf"\[GPU{rank}\] of 4 on (\w+)", output)[1] for rank in range(4)] == ["n1", "n1", "n2", "n2"]
    assert (work / "snapshot.pt").stat().st_size > 0


def test_launch(slurm, tool, env, examples, of_venv, work):
    script = f"#!/bin/bash\nexport PATH={env}/bin:$PATH\n{tool} launch -- {examples}/multinode.py {' '.join(EPOCHS)}\n"
    output = slurm.sbatch(script, "-N2", "--gpus-per-node=2", cwd=work).wait()
    same(losses(output), of_venv("multinode.py", 4))


def test_launch_shows_what_it_would_do(slurm, tool, env, work):
    script = f"#!/bin/bash\n{tool} launch --env {env} --dry-run -- 'my train.py' --lr 1\n"
    job = slurm.sbatch(script, "-N2", "--gpus-per-node=2", cwd=work)
    start, *nodes = job.wait().splitlines()
    assert start == (f"srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=1 "
                     f"{env}/bin/containerize-rank --torchrun -- 'my train.py' --lr 1")
    for number, name in enumerate(NODES):
        assert nodes[2 * number] == f"# on {name}, if it is the job's first step:"
        words = nodes[2 * number + 1].split(" ", 1)
        assert words[0] == f"{env}/bin/torchrun"
        host = "true" if number == 0 else "false"
        assert re.fullmatch(rf"--nproc-per-node=2 --nnodes=2 --rdzv-id={job.number}\.0 --rdzv-backend=c10d --rdzv-endpoint=n1:\d+ "
                            rf"--rdzv-conf=is_host={host} --local-addr={name} 'my train.py' --lr 1", words[1])


def test_launch_without_a_job(user, tool, env, examples, of_venv, work):
    done = user.run(str(tool), "launch", "--env", str(env), "--nproc-per-node", "2", "--", f"{examples}/multi_gpu.py", *EPOCHS, cwd=work)
    same(losses(done.stdout), of_venv("multi_gpu.py", 2))


def test_two_jobs_on_a_node_at_once(slurm, tool, env, examples, of_venv, work, user):
    """The ranks of each job find those of the same job."""
    jobs = []
    for name in ("one", "two"):
        directory = user.directory(work)
        script = f"#!/bin/bash\n{tool} launch --env {env} -- {examples}/multinode.py {' '.join(EPOCHS)}\n"
        jobs.append(slurm.sbatch(script, "-N2", "--gpus-per-node=1", cwd=directory))
    for one in jobs:
        same(losses(one.wait()), of_venv("multinode.py", 2))


@pytest.mark.parametrize("kind,more", [("lightning", []), ("lightning-node", ["--one-per-node"])])
def test_lightning(job, examples, kind, more):
    output = job("--nodes", "2", "--gpus", "2", "--kind", kind,
                 program=[examples / "lightning_ddp.py", "3", "--nodes", "2", "--devices", "2", *more])
    found = losses(output)
    assert sorted(found) == [0, 1, 2, 3] and len(set(found.values())) == 1 and found[0] < 0.1


def test_intel_launcher(job, examples, of_venv, user, work):
    """Uses MPICH's mpiexec, from which Intel MPI's is derived; only the number of devices matters."""
    (work / "bin").mkdir()
    # A script, not a link: mpiexec looks for its other programs beside itself.
    user.write(work / "bin/mpiexec", '#!/bin/sh\nexec /usr/bin/mpiexec.mpich "$@"\n', mode=0o755)
    output = job("--site", "dawn", "--nodes", "2", "--gpus", "1", "--kind", "xpu", program=[examples / "multinode.py", *EPOCHS],
                 edit=lambda text: text.replace("export PATH=", f"export PATH={work}/bin:"))
    same(losses(output), of_venv("multinode.py", 4))


def test_bandwidth(job, examples):
    output = job("--nodes", "2", "--gpus", "1", program=[examples / "all_reduce.py", "--largest", "4", "--rounds", "2"])
    assert "rank 1 of 2 on n2, cpu by gloo" in output
    assert len(re.findall(r"^ +[14] MiB +[0-9.]+ ms +[0-9.]+ GB/s$", output, re.MULTILINE)) == 2


def test_digits(slurm, tool, env, examples, work):
    script = f"#!/bin/bash\n{tool} launch --env {env} -- {examples}/digits.py 5 --digits 4000\n"
    output = slurm.sbatch(script, "-N2", "--gpus-per-node=1", cwd=work).wait()
    assert float(re.search(r"^epoch 4: ([0-9.]+)% of 1000 digits read$", output, re.MULTILINE)[1]) > 90 and (work / "digits.pt").exists()


def test_variables_of_a_rank(slurm, env, work):
    show = "echo $SLURMD_NODENAME $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $NODE_RANK $MASTER_ADDR $MASTER_PORT"
    script = f"#!/bin/bash\nsrun {env}/bin/containerize-rank sh -c '{show}'\nsrun {env}/bin/containerize-rank sh -c 'echo $MASTER_PORT'\n"
    output = slurm.sbatch(script, "-N2", "--ntasks-per-node=2", cwd=work).wait()
    lines = sorted(output.splitlines())
    ports = {line.split()[-1] for line in lines}
    assert len(ports) == 2, f"one for each step: {output}"
    (first,) = {line.split()[-1] for line in lines if line.startswith("n")}
    assert lines[4:] == [f"n{node + 1} {2 * node + local}/4 {local}/2 {node} n1 {first}" for node in (0, 1) for local in (0, 1)]


def test_what_was_set_stays(slurm, env, work):
    script = f"""#!/bin/bash
export MASTER_ADDR=elsewhere MASTER_PORT=4242
srun {env}/bin/containerize-rank sh -c 'echo $MASTER_ADDR:$MASTER_PORT'
{env}/bin/containerize-rank --master
"""
    assert slurm.sbatch(script, "-N1", cwd=work).wait() == "elsewhere:4242\nelsewhere\n"


def test_settings_of_a_site(slurm, env, work):
    script = f"""#!/bin/bash
export FI_MR_CACHE_MONITOR=mine
srun {env}/bin/containerize-rank --site lumi sh -c 'echo $NCCL_SOCKET_IFNAME $FI_MR_CACHE_MONITOR; stat -c %a $MIOPEN_USER_DB_PATH'
rm -r /tmp/containerize-cache-*
"""
    assert slurm.sbatch(script, "-N1", cwd=work).wait() == "hsn0,hsn1,hsn2,hsn3 mine\n700\n"


@pytest.mark.parametrize("words, message", [
    (["--site", "mars", "true"], "mars: there is no site profile of this name"),
    (["--moon", "true"], "--moon: unknown option"),
    ([], "no command is given"),
    (["--torchrun", "x.py"], "--torchrun must be started on each node of the job"),
])
def test_refusals(slurm, env, words, message):
    done = slurm.command(f"{env}/bin/containerize-rank", *words, check=False, env={"SLURM_JOB_ID": "1", "SLURM_JOB_NODELIST": "n[1-2]"})
    assert done.returncode == 2 and message in done.stderr


@pytest.mark.parametrize("words, message", [
    (["job"], "no program is given"),
    (["job", "--kind", "moon", "--", "x.py"], "moon: unknown kind of job"),
    (["job", "--site", "mars", "--", "x.py"], "mars: there is no site profile of this name"),
    (["launch"], "no program is given"),
])
def test_refusals_of_commands(user, tool, env, words, message):
    done = user.run(str(tool), *words[:1], "--env", str(env), *words[1:], check=False)
    assert done.returncode == 2 and message in done.stderr
