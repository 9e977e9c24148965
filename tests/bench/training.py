#!/usr/bin/env python3
"""The same training script with wrappers and in a plain container, from the start of the command to its end.

Usage (as root, to enter another root directory):
    tests/bench/training.py ENV BASE PLACE [--runs N] [--epochs N]

ENV is an installation with torch and its own Python (--bundle-python), BASE an image made by `containerize base bootstrap -o`, PLACE
a directory that the user containerize-test can write to. The plain container is one squashfs made of both, run by `apptainer exec`;
wrapped programs run on the same host, Debian unstable. The three trainings of examples/ddp are one process, two ranks of one
torchrun, and two torchruns with one rank each, as srun would start them on two nodes. The ways take turns. The page cache is warm,
but none of our sessions is running: wrapped programs start one each time.
"""

import argparse
import pwd
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

SOURCE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/lib"))
import machine  # noqa: E402

USER = "containerize-test"
EXAMPLES = SOURCE / "examples/ddp"
# %s is what precedes each command. Each runs in a directory of its own.
CASES = {
    "one process": "%s python {scripts}/single_gpu.py {epochs} {epochs}",
    "two ranks": "%s torchrun --standalone --nproc_per_node=2 {scripts}/multi_gpu.py {epochs} {epochs}",
    "two torchruns": "for node in 0 1; do %s torchrun --nnodes=2 --nproc_per_node=1 --node_rank=$node --rdzv_id=1 --rdzv_backend=c10d "
                     "--rdzv_endpoint=127.0.0.1:29512 {scripts}/multinode.py {epochs} {epochs} & pids=\"$pids $!\"; done; "
                     "for pid in $pids; do wait $pid || exit 1; done",
}


def make_container(env: Path, base: Path, place: Path) -> Path:
    """One image with the files of the base, and those of the environment at its prefix."""
    image, tree = place / "container.sqfs", place / "container"
    if not image.exists():
        for source, target in ((base, tree), (env / "env.sqfs", tree / env.relative_to("/"))):
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["unsquashfs", "-quiet", "-no-progress", "-force", "-dest", str(target), str(source)], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["mksquashfs", str(tree), str(image), "-quiet", "-no-progress", "-comp", "zstd", "-Xcompression-level", "3", "-all-root"],
                       check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", str(tree)], check=True)
    return image


def measure(host: machine.Machine, script: str, work: Path) -> tuple[float, str]:
    """Returns the seconds, and the final losses that were printed."""
    subprocess.run(["rm", "-rf", str(work)], check=True)
    work.mkdir()
    entry = pwd.getpwnam(USER)
    subprocess.run(["chown", f"{entry.pw_uid}:{entry.pw_gid}", str(work)], check=True)
    start = time.perf_counter()
    done = host.run("/bin/sh", "-c", script, cwd=work, env={"OMP_NUM_THREADS": "1", "HOME": str(work)})
    seconds = time.perf_counter() - start
    return seconds, " ".join(sorted(line.split("Final loss ")[1] for line in done.stdout.splitlines() if "Final loss" in line))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("env", type=Path)
    parser.add_argument("base", type=Path)
    parser.add_argument("place", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=50)
    options = parser.parse_args()
    container = make_container(options.env, options.base, options.place)
    user = SimpleNamespace(entry=pwd.getpwnam(USER), environment={"PATH": f"{options.env}/bin:/usr/bin:/bin"})
    host = machine.Machine(machine.make_root(Path("/var/cache/containerize-tests")), user, [Path("/tmp"), options.env, options.place, EXAMPLES])
    ways = {"plain container": f"apptainer exec --env PATH={options.env}/bin:/usr/bin:/bin -B {options.place} -B {EXAMPLES} {container}", "wrapped": ""}
    print("| | plain container, s | wrapped, s | ratio (median of pairs) | of them the least and the most |\n|---|---|---|---|---|")
    for case, template in CASES.items():
        results = {way: [] for way in ways}
        for run in range(options.runs + 1):
            losses = set()
            for way, before in ways.items():
                script = (template % before).format(scripts=EXAMPLES, epochs=options.epochs)
                seconds, loss = measure(host, script, options.place / "work")
                losses.add(loss)
                if run > 0:  # the first run fills the caches
                    results[way].append(seconds)
            assert len(losses) == 1 and losses != {""}, f"{case}: the losses differ: {losses}"
        ratios = sorted(ours / plain for plain, ours in zip(*results.values()))
        plain, ours = (statistics.median(seconds) for seconds in results.values())
        print(f"| {case} | {plain:.2f} | {ours:.2f} | {statistics.median(ratios):.2f} | {ratios[0]:.2f}, {ratios[-1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
