"""The most important use: training with torchrun from an installation."""

import json
import os
import re
from pathlib import Path

import pytest

from conftest import SOURCE, free_port

TWO = ["--standalone", "--nproc_per_node=2"]

@pytest.fixture(scope="module")
def scripts(user, place) -> Path:
    """The examples, in a place where the user can read them."""
    target = place / "ddp"
    target.mkdir()
    for file in (SOURCE / "examples/ddp").glob("*.py"):
        user.write(target / file.name, file.read_text())
    return target


def losses(output: str) -> list[float]:
    return [float(number) for number in re.findall(r"Final loss ([0-9.]+) on cpu", output)]


def test_import(user, torch_env):
    assert user.run(f"{torch_env}/bin/python", "-c", "import torch; print(torch.ones(2, 2).sum().item())").stdout == "4.0\n"


def test_what_it_was_built_for(torch_env):
    (torch,) = json.loads((torch_env / "containerize.json").read_text())["build"]["accelerators"]
    assert torch["package"] == "torch" and torch["built_for"] == "cpu"


def test_pip_list(user, torch_env):
    assert re.search(r"^torch +2\.13\.0", user.run(f"{torch_env}/bin/pip", "list").stdout, re.MULTILINE)


def test_one_process(user, torch_env, scripts, work):
    done = user.run(f"{torch_env}/bin/python", f"{scripts}/single_gpu.py", "3", "2", cwd=work)
    assert "[GPU0] Epoch 0 | Batchsize: 32 | Steps: 64\n" in done.stdout
    assert (work / "snapshot.pt").stat().st_size > 0
    (loss,) = losses(done.stdout)
    assert loss < 0.01


def test_torchrun_with_two_processes(user, torch_env, scripts, work):
    torchrun = [f"{torch_env}/bin/torchrun", *TWO, f"{scripts}/multi_gpu.py"]
    done = user.run(*torchrun, "5", "2", cwd=work)
    for rank in (0, 1):
        assert f"[GPU{rank}] Epoch 4 | Batchsize: 32 | Steps: 32\n" in done.stdout
    assert "Epoch 3 | Snapshot saved at snapshot.pt" in done.stdout
    found = losses(done.stdout)
    assert len(found) == 2 and max(found) < 0.01
    # A second run resumes from the snapshot, which was written after epoch 4.
    again = user.run(*torchrun, "6", "1", cwd=work)
    assert "Resuming after epoch 4" in again.stdout
    assert "Epoch 3 |" not in again.stdout and "[GPU1] Epoch 5 |" in again.stdout


def test_same_losses_as_without_a_container(user, torch_env, scripts, work):
    """The unpacked tree of the installation, run without a container, gives the same losses."""
    bare = work / "bare"
    user.run("unsquashfs", "-q", "-n", "-d", str(bare), f"{torch_env}/env.sqfs")
    runs = []
    for python in (f"{torch_env}/bin/python", f"{bare}/bin/python"):
        here = user.directory(work)
        done = user.run(python, f"{scripts}/single_gpu.py", "2", "5", cwd=here, env={"OMP_NUM_THREADS": "1"})
        # torch's seed, which make_model() sets, determines the order of batches.
        runs.append(losses(done.stdout))
    assert len(runs[0]) == 1 and runs[0] == runs[1]


@pytest.fixture(scope="module")
def alone(user, torch_env, scripts, place):
    """The losses of two processes on this machine's root."""
    done = user.run(f"{torch_env}/bin/torchrun", *TWO, f"{scripts}/multi_gpu.py", "3", "5", cwd=user.directory(place), env={"OMP_NUM_THREADS": "1"})
    assert len(losses(done.stdout)) == 2
    return sorted(losses(done.stdout))


@pytest.fixture(scope="module")
def on_trixie(user, tool, place, base, channels):
    """The same packages on another distribution, with conda's Python 3.11, because the base has another version."""
    spec = user.write(place / "env.yml", f"channels: ['file://{channels}/main']\ndependencies:\n- python=3.11\n- pip\n- pip:\n  - torch==2.13.0\n  - numpy\n")
    user.run(tool, "new", "--no-config", "--no-constraints", "--base", base, "--prefix", place / "on-trixie", spec, env={"CONTAINERIZE_CACHE": str(place / "cache")}, timeout=1200)
    return place / "on-trixie"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make the root of another distribution")
@pytest.mark.parametrize("engine", ["native", "apptainer"])
def test_torchrun_on_another_distribution(user, machine, alone, on_trixie, scripts, work, engine):
    """Natively, and through Apptainer on a machine that has it, the losses are the same as on this machine's root."""
    threads = {"OMP_NUM_THREADS": "1"}
    run, how = (user.run, threads) if engine == "native" else (machine.run, {**threads, "CONTAINERIZE_ENGINE": "apptainer"})
    assert "trixie" in run(f"{on_trixie}/bin/python", "-c", "print(open('/etc/os-release').read())", env=how).stdout
    there = run(f"{on_trixie}/bin/torchrun", *TWO, f"{scripts}/multi_gpu.py", "3", "5", cwd=user.directory(work), env=how)
    assert sorted(losses(there.stdout)) == alone


def test_two_agents_as_on_two_nodes(user, torch_env, scripts, work):
    """What `srun torchrun` starts on two nodes: two agents that meet at one endpoint."""
    # Another program may take the port before torchrun does, but torchrun then fails and says so.
    torchrun = [
        f"{torch_env}/bin/torchrun",
        "--nnodes=2",
        "--nproc_per_node=1",
        "--rdzv_id=test",
        "--rdzv_backend=c10d",
        f"--rdzv_endpoint=127.0.0.1:{free_port()}",
        "--local_addr=127.0.0.1",
        f"{scripts}/multinode.py",
        "2",
        "1",
    ]
    agents = [user.start(*torchrun, cwd=user.directory(work)) for _ in range(2)]
    output = ""
    for agent in agents:
        out, err = agent.communicate(timeout=300)
        assert agent.returncode == 0, err
        output += out
    assert "[GPU0] of 2 on" in output and "[GPU1] of 2 on" in output
    assert len(losses(output)) == 2


def test_venv_on_top(user, torch_env, work):
    venv = work / "V"
    user.run(f"{torch_env}/bin/python", "-m", "venv", str(venv))
    user.run(f"{venv}/bin/pip", "install", "-q", "six==1.16.0")
    assert user.run(f"{venv}/bin/python", "-c", "import six, torch; print(torch.__version__)").stdout.startswith("2.13.0")
