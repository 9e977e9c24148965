"""Manifests of pixi: their environments are solved and built without pixi."""

import json

from test_conda import python
from test_locks import build, work  # noqa: F401: fixtures


def manifest(build, text, workspace="", name="pixi.toml"):
    start = f'[workspace]\nname = "demo"\nchannels = ["file://{build.channels}/main"]\nplatforms = ["linux-64"]\n{workspace}'
    return build.user.write(build.work / name, start + text)


FEATURES = """
[dependencies]
python = "3.11.*"
[target.linux.dependencies]
where = "*"
[target.osx.dependencies]
missing = "*"
[constraints]
torchlike = "<2"
[activation.env]
MY_SETTING = "42"
[tasks]
start = "python -V"
[feature.torch.dependencies]
torchlike = "*"
[feature.test.pypi-dependencies]
six = "==1.16.0"
own = {path = "own"}
[feature.test.activation.env]
MY_SETTING = "43"
[environments]
test = ["test", "torch"]
torch = {features = ["torch"], no-default-feature = true}
"""


def test_an_environment_of_a_manifest_is_built_and_updated(build):
    build.user.run("mkdir", build.work / "own")
    build.user.write(build.work / "own/pyproject.toml", '[build-system]\nrequires = ["flit_core"]\nbuild-backend = "flit_core.buildapi"\n'
                     '[project]\nname = "own"\nversion = "1.0"\ndescription = "x"\n')
    build.user.write(build.work / "own/own.py", "")
    spec = manifest(build, FEATURES)
    build(spec)
    assert python(build, "import os, sys; print(sys.version_info[:2], os.environ['MY_SETTING'])") == "(3, 11) 42"
    assert (build.prefix / "share/inputs/pixi.toml").read_text() == spec.read_text()
    names = {record["name"] for record in json.loads((build.prefix / "share/containerize.lock").read_text())["conda"]}
    assert "where" in names and "torchlike" not in names  # the constraint requests nothing
    env = {"CONTAINERIZE_CACHE": str(build.work / "cache")}
    build.user.run(build.tool, "update", build.prefix, "--environment", "test", spec, env=env, timeout=300)
    assert python(build, "import os, own, six; print(six.__version__, os.environ['MY_SETTING'])") == "1.16.0 43"
    # The constraint keeps version 2 out.
    assert build.run("_debug_exec", "cat", build.prefix / "share/torchlike").stdout == "old"
def test_a_lock_of_an_environment(build):
    lock = build.work / "torch.lock"
    spec = manifest(build, FEATURES.replace("[constraints]", "[feature.torch.constraints]"))
    build.user.run(build.tool, "lock", "--environment", "torch", "-o", lock, spec, env={"CONTAINERIZE_CACHE": str(build.work / "cache")})
    written = json.loads(lock.read_text())
    assert [(record["name"], record["version"]) for record in written["conda"]] == [("torchlike", "1.13")]
    assert written["channels"] == [f"file://{build.channels}/main"]


def test_the_machine_of_a_manifest(build):
    cuda = manifest(build, '[dependencies]\ntorchlike = "*"\n[system-requirements]\ncuda = "12"\n')
    assert build.plan(manifest(build, '[dependencies]\ntorchlike = "*"\n', name="other.toml"))["torchlike"]["build"] == "cpu"
    without = build.refused(cuda, env={"CONDA_OVERRIDE_CUDA": ""})  # the user's word counts
    assert f"{cuda}:8: the environment needs another machine: __cuda=12: this one has no __cuda" in without
    assert build.plan(cuda)["torchlike"]["build"] == "cuda"  # this machine has no driver
    old = build.refused(cuda, "--cuda", "11.8")
    assert f"{cuda}:8: the environment needs another machine: __cuda=12: this one has __cuda=11.8=0" in old
    new = build.refused(manifest(build, '[dependencies]\nwhere = "*"\n[system-requirements]\nlibc = "99"\n'))
    assert "the environment needs another machine: __glibc=99: this one has __glibc=" in new


def test_what_a_manifest_cannot_have_is_refused(build):
    ours = manifest(build, '[dependencies]\nwhere = "*"\n')
    build.user.write(build.work / "pixi.lock", "")
    done = build(ours, "--environment", "prod", check=False)
    assert done.returncode == 2
    assert f"{ours}: this pixi manifest has no environment 'prod': it has default\nChoose one of these with --environment." in done.stderr
    assert f"For exactly those of the lock beside the manifest, give {build.work}/pixi.lock." in build.user.run(
        build.tool, "new", "--dry-run", ours, env={"CONTAINERIZE_CACHE": str(build.work / "cache")}).stderr
    newer = manifest(build, '[dependencies]\nwhere = "*"\n', workspace='exclude-newer = "2020-01-01"\n')
    assert f"{newer}:5: the `exclude-newer` of this file must be given as an option" in build.refused(newer)
    assert "Give --exclude-newer 2020-01-01." in build.refused(newer)
    source = manifest(build, '[dependencies]\nwhere = {git = "https://me:secret@example.org/x"}\n')
    error = build.refused(source)
    assert f"{source}:6: 'where' must be built from source, which containerize cannot do" in error and "secret" not in error


def test_a_project_with_tables_of_pixi_is_a_project_of_pip(build):
    project = build.user.write(build.work / "pyproject.toml", '[project]\nname = "x"\ndependencies = ["six==1.16.0"]\n'
                               '[tool.pixi.workspace]\nchannels = ["c"]\n[tool.pixi.dependencies]\nwhere = "*"\n')
    done = build(project)
    assert "[tool.pixi] is not used: only what [project] requires is installed." in done.stderr
    assert python(build, "import six; print(six.__version__)") == "1.16.0"
