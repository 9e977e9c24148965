"""Compares our solver with another one, py-rattler's, on the tests' own channel and on real records."""

import asyncio
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from conftest import CACHE, SOURCE, made_once

sys.path.insert(0, str(SOURCE / "tests/lib"))
import conda_channel

RATTLER = "py-rattler==0.28.0"
MACHINE = {"LINUX": "6.1", "GLIBC": "2.36", "ARCHSPEC": "x86_64_v3", "CUDA": ""}


@pytest.fixture(scope="module", autouse=True)
def rattler():
    def make(target):
        subprocess.run(["/usr/bin/python3", "-m", "pip", "install", "-q", "--target", target, RATTLER], check=True)

    place = made_once(CACHE / RATTLER.replace("==", "-"), make)
    sys.path.insert(0, str(place))
    import rattler

    return rattler


def conda_name(spec):
    return re.match(r"[^ =<>!~\[]+", spec)[0].lower()


class Oracle:
    def __init__(self, rattler, channel):
        self.rattler, self.channel = rattler, f"file://{channel}"
        self.machine = [("__unix", "0", "0"), ("__linux", MACHINE["LINUX"], "0"), ("__glibc", MACHINE["GLIBC"], "0"), ("__archspec", "1", MACHINE["ARCHSPEC"])]

    def virtual(self):
        r = self.rattler
        return [r.GenericVirtualPackage(r.PackageName(name), r.Version(version), r.BuildString(build)) for name, version, build in self.machine]

    def solve(self, specs):
        try:
            records = asyncio.run(self.rattler.solve([self.rattler.Channel(self.channel)], specs, platforms=["linux-64", "noarch"], virtual_packages=self.virtual()))
        except Exception as problem:
            assert type(problem).__name__ == "SolverError", problem
            return None
        return {record.name.normalized: (str(record.version), str(record.build)) for record in records}

    def faults(self, records, specs):
        """The errors of a solution, judged by rattler's match specs."""
        r = self.rattler
        wrong = []
        by_name = {}
        for record in records.values():
            by_name[record["name"]] = r.PackageRecord(record["name"], record["version"], r.BuildString(record["build"]), record["build_number"], record["subdir"])
        machine = {name: r.PackageRecord(name, version, r.BuildString(build), 0, "noarch") for name, version, build in self.machine}
        everything = {**machine, **by_name}

        def satisfied(text):
            spec = r.MatchSpec(text)
            found = everything.get(conda_name(text))
            return found is not None and spec.matches(found)

        wrong += [f"asked for {text}" for text in specs if not satisfied(text)]
        for record in records.values():
            wrong += [f"{record['name']} needs {text}" for text in record["depends"] if not satisfied(text)]
            for text in record["constrains"]:
                if conda_name(text) in everything and not satisfied(text):
                    wrong.append(f"{record['name']} permits only {text}")
        return wrong


class Ours:
    def __init__(self, user, tool, channel):
        self.user, self.tool, self.channel = user, tool, channel
        self.work = user.directory()

    def solve(self, specs):
        lines = "".join(f"- {json.dumps(spec)}\n" for spec in specs)
        spec = self.user.write(self.work / "env.yml", f"channels:\n- file://{self.channel}\ndependencies:\n{lines}")
        done = self.user.run(self.tool, "new", "--no-config", "--dry-run", "--json", spec, check=False,
                             env={"CONTAINERIZE_CACHE": str(self.work / "cache"), **{f"CONDA_OVERRIDE_{name}": value for name, value in MACHINE.items()}})
        assert done.returncode in (0, 2), done.stderr
        return {record["name"]: record for record in json.loads(done.stdout)} if done.returncode == 0 else None


def requests_over(channel, count, seed):
    """Random requests for names and versions that the channel has."""
    chance = random.Random(seed)
    versions = {}
    for file in Path(channel).glob("*/repodata.json"):
        data = json.loads(file.read_text())
        for record in [*data.get("packages", {}).values(), *data.get("packages.conda", {}).values()]:
            versions.setdefault(record["name"], []).append(record["version"])
    names = sorted(versions)
    made = []
    while len(made) < count:
        specs = []
        for name in chance.sample(names, min(chance.randint(1, 3), len(names))):
            version = chance.choice(versions[name])
            form = chance.choice(["{n}", "{n}", "{n} >={v}", "{n} <={v}", "{n}=={v}", "{n} {v}.*", "{n} !={v}"])
            specs.append(form.format(n=name, v=version))
        if any(spec.split()[0].split("=")[0] == "python" for spec in specs):
            specs.append("pip")
        made.append(specs)
    return made


def compare(rattler, user, tool, channel, requests):
    oracle, ours = Oracle(rattler, channel), Ours(user, tool, channel)
    equal, different, unsolvable = 0, [], 0
    for specs in requests:
        theirs, mine = oracle.solve(specs), ours.solve(specs)
        assert (theirs is None) == (mine is None), (specs, theirs, mine)
        if mine is None:
            unsolvable += 1
            continue
        assert oracle.faults(mine, specs) == [], specs
        if {name: (record["version"], record["build"]) for name, record in mine.items()} == theirs:
            equal += 1
        else:
            different.append((specs, theirs, mine))
    return equal, different, unsolvable


def test_the_tests_own_channel(rattler, user, tool):
    place = conda_channel.make(CACHE / "conda")
    equal, different, unsolvable = compare(rattler, user, tool, place / "main", requests_over(place / "main", 60, 1))
    assert different == []
    assert equal >= 40, (equal, unsolvable)


HAND_WRITTEN = [
    ["python=3.12", "pip", "numpy"], ["python 3.11.*", "pip", "pandas"], ["numpy<2", "python", "pip"], ["zlib"], ["openssl"], ["ca-certificates"],
    ["python>=3.10,<3.13", "pip", "requests"], ["git"], ["cmake"], ["ninja", "cmake"], ["pytest"], ["ruff"], ["rust"],
]


def test_real_records(rattler, user, tool, work):
    """Where neither choice is better, the solvers may differ; then the test checks that ours is valid."""
    channel = work / "channel"
    for packed in (SOURCE / "tests/data/repodata/conda-forge-from-locks").glob("*/repodata.json.zst"):
        (channel / packed.parent.name).mkdir(parents=True)
        with packed.open("rb") as source, (channel / packed.parent.name / packed.stem).open("wb") as target:
            zstandard.ZstdDecompressor().copy_stream(source, target)
    requests = HAND_WRITTEN + requests_over(channel, 90, 2)
    equal, different, unsolvable = compare(rattler, user, tool, channel, requests)
    print(f"{equal} equal, {len(different)} valid but different, {unsolvable} unsolvable for both")
    assert equal + len(different) >= 60
    assert equal >= 0.7 * (equal + len(different))
    # They may differ only in packages that were not requested.
    worse = []
    for specs, theirs, mine in different:
        for name in {conda_name(spec) for spec in specs}:
            if rattler.Version(mine[name]["version"]) < rattler.Version(theirs[name][0]):
                worse.append((specs, name, mine[name]["version"], theirs[name][0]))
    assert worse == []
