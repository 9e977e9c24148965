"""MPI of the host and of the environment, with mpi4py's wheel, on two nodes of a real Slurm."""

import re
from pathlib import Path

import pytest

from conftest import SOURCE
from on_cluster import place, pytestmark, slurm  # noqa: F401 (fixtures)

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
OPEN_MPI = {"MPI4PY_LIBMPI": f"{LIBRARIES}/libmpi.so.40"}
MPICH = {"LD_LIBRARY_PATH": "{place}/mpich/lib", "MPI4PY_MPIABI": "mpich"}
ON_NODES = r"\[rank (\d) of (\d) on (\w+)\] Final loss ([0-9.]+)"


@pytest.fixture(scope="module")
def env(torch_env):
    return torch_env


@pytest.fixture(scope="module")
def with_mpich(make, place):
    """MPICH from PyPI, inside the environment."""
    return make(place / "with-mpich", "numpy\nmpi4py\nmpich\n")


@pytest.fixture(scope="module")
def script(user, place) -> Path:
    return user.write(place / "mpi_ranks.py", (SOURCE / "examples/cluster/mpi_ranks.py").read_text())


@pytest.fixture(scope="module")
def alone(user, env, script):
    """The loss of a single process that no launcher started."""
    ((_, size, _, loss),) = re.findall(ON_NODES, user.run(f"{env}/bin/python", str(script), "3", env=OPEN_MPI).stdout)
    assert size == "1" and float(loss) > 0.01
    return loss


@pytest.fixture(scope="module", autouse=True)
def host_mpich(user, place):
    """MPICH from PyPI, outside the environment. Debian's 4.0.2 hangs in MPI_Finalize on a busy machine, also for a plain venv: one
    rank waits for connections of UCX to the others, which wait for it in PMI and serve no connections."""
    user.run("/usr/bin/python3", "-m", "venv", str(place / "mpich"))
    user.run(f"{place}/mpich/bin/pip", "install", "-q", "mpich")


def run(slurm, work, command, settings):
    exports = "".join(f"export {name}={value.format(place=work.parent)}\n" for name, value in settings.items())
    command = command.format(place=work.parent)
    return slurm.sbatch(f"#!/bin/bash\n{exports}{command}\n", "-N2", "--ntasks-per-node=2", cwd=work).wait()


@pytest.mark.parametrize("start, settings", [
    ("mpirun.openmpi -n 4 --map-by ppr:2:node", OPEN_MPI),
    ("{place}/mpich/bin/mpiexec -n 4 -ppn 2", MPICH),
    ("srun --mpi=pmi2", MPICH),
    ("srun --mpi=pmix", OPEN_MPI),
], ids=["Open MPI", "MPICH", "MPICH by srun", "Open MPI by srun"])
def test_of_the_host(slurm, env, script, work, alone, start, settings):
    output = run(slurm, work, f"{start} {env}/bin/python {script} 3", settings)
    ranks = sorted(re.findall(ON_NODES, output))
    assert ranks == [(str(rank), "4", f"n{rank // 2 + 1}", alone) for rank in range(4)], output


def test_of_the_environment(slurm, with_mpich, script, work, alone):
    output = run(slurm, work, f"srun --mpi=pmi2 {with_mpich}/bin/python {script} 3", {})
    assert sorted(re.findall(ON_NODES, output)) == [(str(rank), "4", f"n{rank // 2 + 1}", alone) for rank in range(4)], output


def test_launcher_of_the_environment(slurm, with_mpich, script, work, alone):
    output = run(slurm, work, f"{with_mpich}/bin/mpiexec -launcher slurm -n 4 -ppn 2 {with_mpich}/bin/python {script} 3", {})
    assert sorted(re.findall(ON_NODES, output)) == [(str(rank), "4", f"n{rank // 2 + 1}", alone) for rank in range(4)], output


@pytest.mark.parametrize("start, settings", [
    ("mpirun.openmpi -n 4 --map-by ppr:2:node", OPEN_MPI),
    ("{place}/mpich/bin/mpiexec -n 4 -ppn 2", MPICH),
], ids=["Open MPI", "MPICH"])
def test_ranks_are_those_of_mpi(slurm, env, work, start, settings):
    show = "import os; print(*(os.environ[n] for n in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')))"
    lines = sorted(run(slurm, work, f"{start} {env}/bin/containerize-rank python -c \"{show}\"", settings).splitlines())
    ports = {line.split()[-1] for line in lines}
    assert len(ports) == 1
    assert lines == [f"{rank} 4 {rank % 2} 2 n1 {ports.copy().pop()}" for rank in range(4)]
