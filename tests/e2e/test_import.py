"""Importing installations with tykky's layout: they become ours without being built again."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SOURCE, next_line

sys.path.insert(0, str(SOURCE / "tests/lib"))
from oci_image import MACHINE, sif_file  # noqa: E402


class Tykky:
    """Makes the files that tykky makes: an image of a tree that was installed for a path inside its container."""

    def __init__(self, user, directory, inside, mode, environment):
        self.user, self.directory, self.inside, self.mode = user, directory, inside, mode
        self.environment = environment  # path of the environment, relative to the image's root
        self.tree = directory.parent / f"{directory.name}-tree"
        self.image = directory / "img.sqfs"
        for path in (directory, self.tree):
            path.mkdir()
            os.chown(path, user.uid, user.uid)

    def build(self, *command, root=Path("/"), **more):
        """Runs a command with the tree at the path that it has in the container."""
        roots = [option for path in sorted(root.iterdir()) for option in
                 (["--symlink", os.readlink(path), f"/{path.name}"] if path.is_symlink() else ["--dev-bind", path, f"/{path.name}"])]
        return self.user.run("bwrap", *roots, "--bind", self.tree, self.inside, *command, timeout=600, **more)

    def finish(self, user_script="", wrapper_paths=(), settings=None, library_paths="", compression="zstd -Xcompression-level 1", container="/appl/shared/container.sif"):
        settings = {"mode": self.mode, "installation_path": self.inside, "installation_prefix": str(self.directory), "env_name": "env1",
                    "sqfs_image": "img.sqfs", "container_image": "container.sif", "container_src": "docker://debian:12", "composable": True,
                    "isolate": False, "wrapper_paths": [f"{self.inside}/{path}" if not path.startswith("/") else path for path in wrapper_paths],
                    **(settings or {})}
        (self.tree / "previous_input/0").mkdir(parents=True)
        (self.tree / "previous_input/0/asked.txt").write_text("what was asked for\n")
        subprocess.run(["mksquashfs", self.tree, self.image, "-noappend", "-quiet", "-no-progress", "-comp", *compression.split()], check=True,
                       stdout=subprocess.DEVNULL)
        for name in ("bin", "_bin", "share/previous_input/0"):
            (self.directory / name).mkdir(parents=True)
        (self.directory / "share/conf.yaml").write_text(json.dumps(settings, indent=1))  # JSON is also YAML
        (self.directory / "share/VERSION.yml").write_text("tag: \ncommit: 0123abc\n")
        shutil.copy(self.tree / "previous_input/0/asked.txt", self.directory / "share/previous_input/0")
        (self.directory / "container.sif").symlink_to(container)
        for directory in {f"{self.environment}/bin".removeprefix("./"), *wrapper_paths}:
            for program in (self.tree / directory).iterdir() if (self.tree / directory).is_dir() else []:
                (self.directory / "_bin" / program.name).symlink_to(f"{self.inside}/{directory}/{program.name}")
                self.user.write(self.directory / "bin" / program.name, "#!/bin/bash\nDIR=$(dirname $0)\nsource $DIR/../common.sh\n", 0o755)
        root = f"export env_root={self.inside}/{self.environment}/\n" if self.mode != "wrapdisk" else ""
        # In tykky's order: first the container's settings, last the user's script.
        (self.directory / "common.sh").write_text(
            f'#!/bin/bash\nSQFS_IMAGE=img.sqfs\n_C_DIR="$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)"\nCONTAINER_IMAGE=container.sif\n'
            f'INSTALLATION_PATH={self.inside}\nexport SINGULARITYENV_PATH="$OLD_PATH"\n'
            'export SINGULARITYENV_LD_LIBRARY_PATH="$SINGULARITYENV_LD_LIBRARY_PATH:$LD_LIBRARY_PATH"\nexport _CW_IS_ISOLATED=no\n'
            'export SINGULARITY_BIND="/home,$DIR/../$SQFS_IMAGE:$INSTALLATION_PATH:image-src=/"\n'
            + (f'SINGULARITYENV_LD_LIBRARY_PATH="{library_paths}:$SINGULARITYENV_LD_LIBRARY_PATH"\n' if library_paths else "")
            + "_tmp_arr=($(echo $SINGULARITYENV_LD_LIBRARY_PATH | /usr/bin/tr ':' '\\n' ))\n"
            "SINGULARITYENV_LD_LIBRARY_PATH=$(echo \"${_tmp_arr[@]}\" | /usr/bin/tr ' ' ':')\n"
            f"export install_root={self.inside}\n{root}{user_script}")
        for path in [self.directory, *self.directory.rglob("*")]:
            os.chown(path, self.user.uid, self.user.uid, follow_symlinks=False)
        shutil.rmtree(self.tree)
        return self

    def digests(self):
        return {str(path.relative_to(self.directory)): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in self.directory.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def fresh_session(sessions):
    """Copies of one tykky installation cannot be used at the same time, because their programs contain the same path."""
    sessions.kill_all()


@pytest.fixture()
def importer(user, tool):
    def run(tykky, prefix, *options, check=True):
        return user.run(str(tool), "import-tykky", tykky, prefix, *options, check=check, timeout=600)

    return run


@pytest.fixture(scope="module")
def of_conda(user, tool, place, channels):
    """A conda environment inside tykky's own copy of conda."""
    work = user.directory(place)
    tykky = Tykky(user, work / "conda", "/CSC_TYKKY_qweRTyu", "conda", "miniforge/envs/env1")
    environment = tykky.tree / tykky.environment
    spec = user.write(work / "env.yml", f"channels:\n  - file://{channels}/main\n  - nodefaults\ndependencies:\n  - python=3.11\n  - pip\n  - where\n  - active\n")
    user.run("mkdir", "-p", environment.parent, tykky.tree / "tools/bin")
    tykky.build(str(tool), "new", "--prefix", f"{tykky.inside}/{tykky.environment}", spec, env={"CONTAINERIZE_CACHE": str(work / "cache")})
    environment.rename(work / "made")
    user.run("unsquashfs", "-q", "-n", "-d", environment, work / "made/env.sqfs")
    # Replaces the files that only containerize adds with those that only tykky adds.
    for path in [environment / "share/containerize", *environment.rglob("_containerize*")]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    user.write(environment / "bin/list-packages", 'echo "\npython 3.11\n"\n', 0o755)
    user.write(tykky.tree / "tools/bin/tool", f"#!{tykky.inside}/{tykky.environment}/bin/python\nimport sys\nprint(sys.argv[1:], sys.prefix)\n", 0o755)
    (tykky.tree / "opt").mkdir()
    user.write(tykky.tree / "opt/single", "#!/bin/sh\necho single $0\n", 0o755)
    user.write(tykky.tree / "opt/another", "#!/bin/sh\n", 0o755)
    script = "export MY_SETTING=from-script\nexport MY_PATH=/opt/mine:$MY_PATH\nexport SINGULARITYENV_INSIDE=yes\nfalse\n"
    return tykky.finish(script, ["tools/bin", "/usr/local/other", "opt/single"], library_paths=f"{tykky.inside}/lib")


@pytest.fixture(scope="module")
def of_pip(user, tool, place):
    work = user.directory(place)
    tykky = Tykky(user, work / "pip", "/CSC_TYKKY_venv123", "venv", "env1")
    tykky.build("python3", "-m", "venv", f"{tykky.inside}/env1")
    tykky.build(f"{tykky.inside}/env1/bin/pip", "install", "-q", "pygments==2.17.2", "six==1.16.0")
    return tykky.finish(compression="gzip")  # the default of mksquashfs, which tykky uses


@pytest.fixture(scope="module")
def of_slim(user, place, trixie, base):
    """An environment made with --slim: its Python is the one of the container."""
    work = user.directory(place)
    container = sif_file(work / "shared.sif", base.read_bytes(), MACHINE[platform.machine()])
    tykky = Tykky(user, work / "slim", "/CSC_TYKKY_slim12", "venv", "env1")
    tykky.build("python3", "-m", "venv", f"{tykky.inside}/env1", root=trixie)
    user.write(tykky.tree / "env1/lib/python3.13/site-packages/mine.py", "value = 7\n")
    user.write(tykky.tree / "env1/bin/mine", f"#!{tykky.inside}/env1/bin/python\nimport mine, sys\nprint(mine.value, *sys.version_info[:2])\n", 0o755)
    return tykky.finish(settings={"isolate": True, "container_src": "docker://python:3.13-slim"}, container=container)


def python(user, prefix, code, *argv, **more):
    return user.run(prefix / "bin/python", "-c", code, *argv, **more).stdout.strip()


def test_environment_of_conda(user, tool, importer, of_conda, work):
    before = of_conda.digests()
    done = importer(of_conda.directory, work / "env")
    assert "/usr/local/other" in done.stderr and "Next:" in done.stdout
    prefix, inner = work / "env", f"{of_conda.inside}/{of_conda.environment}"
    manifest = json.loads((prefix / "containerize.json").read_text())
    assert manifest["image"]["sha256"] == before["img.sqfs"] == hashlib.sha256((prefix / "env.sqfs").read_bytes()).hexdigest()
    assert of_conda.digests() == before and len(manifest["layers"]) == 1 and manifest["layers"][0]["size"] < 100_000
    assert manifest["base"] == "host" and manifest["build"]["tykky"]["container"] == "docker://debian:12"

    show = "import sys, os; print(sys.executable, sys.prefix, os.path.realpath(sys.executable))"
    assert python(user, prefix, show).split()[:2] == [f"{prefix}/bin/python", str(prefix)]
    assert user.run(prefix / "bin/pip", "list").stdout.count("\n") > 2
    assert user.run(prefix / "bin/pip", "--version").stdout.split()[3].startswith(inner), "its script names the path that it was installed for"
    assert user.run(prefix / "bin/where").stdout.split()[0] == f"{inner}/share/where"
    assert user.run(prefix / "bin/tool", "a b").stdout.strip() == f"['a b'] {inner}"
    assert user.run(prefix / "bin/single").stdout.startswith("single ") and not (prefix / "bin/another").exists()
    assert user.run(prefix / "tools/bin/tool").stdout.strip() == f"[] {inner}"
    assert "python 3.11" in user.run(prefix / "bin/list-packages").stdout
    assert not Path(of_conda.inside).exists(), "nothing of it is to be seen outside"
    assert "where" in (prefix / "share/packages.txt").read_text()
    assert (prefix / "share/inputs/asked.txt").read_text() == "what was asked for\n"


def test_packages_of_conda_come_and_go(user, tool, importer, of_conda, work, channels):
    """Updates with an environment file change packages at their place in tykky's image, and files contain that path."""
    prefix, inner = work / "env", f"{of_conda.inside}/{of_conda.environment}"
    importer(of_conda.directory, prefix)
    spec = user.write(work / "more.yml", f"channels:\n  - file://{channels}/main\n  - nodefaults\ndependencies:\n  - numpy=1.24\n  - linked\n  - twins\n")
    settings = {"CONTAINERIZE_CACHE": str(work / "cache")}
    user.run(str(tool), "update", prefix, spec, env=settings, timeout=600)
    assert python(user, prefix, "import numpy; print(numpy.__version__)") == "1.24.0"
    assert user.run(prefix / "bin/where").stdout.split()[0] == f"{inner}/share/where"
    shown = user.run(prefix / "bin/_debug_exec", "sh", "-c", f"cat {inner}/share/twin {prefix}/share/linked.txt; ls {prefix}/conda-meta; readlink {prefix}/share {prefix}/bin").stdout
    assert f"twins of {inner}\n" in shown and "made by linked 1.0\n" in shown and "numpy-1.24.0-py311_0.json" in shown
    assert shown.splitlines()[-2:] == [f"{of_conda.environment}/share", f"{of_conda.environment}/bin"]
    assert {"numpy", "where", "twins"} <= {line.split()[0].split("=")[0] for line in (prefix / "share/packages.txt").read_text().splitlines() if line}
    user.write(spec, spec.read_text().replace("  - numpy=1.24\n", "  - numpy=1.25\n"))
    user.run(str(tool), "update", prefix, spec, env=settings, timeout=600)
    assert python(user, prefix, "import numpy; print(numpy.__version__)") == "1.25.0"
    user.run(str(tool), "rollback", prefix, "1")
    assert user.run(prefix / "bin/python", "-c", "import numpy", check=False).returncode != 0


def test_variables_of_tykky_are_kept(user, importer, of_conda, work):
    importer(of_conda.directory, work / "env")
    show = "import os, json; print(json.dumps(dict(os.environ)))"
    given = {"MY_PATH": "/callers", "LD_LIBRARY_PATH": "/callers/lib"}
    variables = json.loads(python(user, work / "env", show, env=given))
    assert variables["MY_SETTING"] == "from-script" and variables["INSIDE"] == "yes"
    assert variables["MY_PATH"] == "/opt/mine:/callers"
    assert variables["LD_LIBRARY_PATH"] == f"{of_conda.inside}/lib:/callers/lib"
    assert variables["env_root"] == f"{of_conda.inside}/{of_conda.environment}/" and variables["install_root"] == of_conda.inside
    assert variables["CONDA_PREFIX"] == str(work / "env") and variables["DATA_HOME"] == f"{work}/env/share/data"
    assert variables["PATH"] == f"{work}/env/bin:/usr/bin:/bin"
    assert not any(name.startswith(("SINGULARITY", "APPTAINER", "_CW_", "OLD_PATH", "DIR")) for name in variables)


def test_environment_of_pip(user, tool, importer, of_pip, work):
    prefix = work / "env"
    importer(of_pip.directory, prefix)
    assert python(user, prefix, "import sys, six, pygments; print(sys.executable, sys.prefix != sys.base_prefix)") == f"{prefix}/bin/python True"
    listed = user.run(prefix / "bin/pip", "list").stdout
    assert "Pygments" in listed and "six" in listed
    assert user.run(prefix / "bin/pygmentize", "-V").stdout.startswith("Pygments version 2.17.2")
    assert user.run(prefix / "bin/list-packages").stdout == (prefix / "share/packages.txt").read_text()
    assert python(user, prefix, "import os; print(os.environ['VIRTUAL_ENV'])") == str(prefix)
    # A venv works on top of it.
    user.run(prefix / "bin/python", "-m", "venv", work / "venv")
    user.run(work / "venv/bin/pip", "install", "-q", "iniconfig==2.0.0")
    assert user.run(work / "venv/bin/python", "-c", "import six, iniconfig, sys; print(sys.prefix)").stdout.strip() == str(work / "venv")


def test_its_container_becomes_the_base(user, tool, importer, of_slim, work):
    prefix, container = work / "env", of_slim.directory / "container.sif"
    assert "in tykky's container" in importer(of_slim.directory, prefix).stderr
    about = json.loads(user.run(str(tool), "inspect", prefix, "--json").stdout)
    assert container.resolve() == Path(json.loads((prefix / "containerize.json").read_text())["base"]["file"]).resolve(), about
    assert python(user, prefix, "import sys, mine; print(*sys.version_info[:2], mine.value, sys.executable)") == f"3 13 7 {prefix}/bin/python"
    assert user.run(prefix / "bin/mine").stdout == "7 3 13\n"
    assert "trixie" in user.run(prefix / "bin/_debug_exec", "cat", "/etc/os-release").stdout
    user.run(str(tool), "update", prefix, "--", "sh", "-c", "echo value = 8 > $CONTAINERIZE_PREFIX/lib/python3.13/site-packages/mine.py")
    assert user.run(prefix / "bin/mine").stdout == "8 3 13\n"


def test_without_its_container_it_is_refused(user, importer, of_slim, work):
    copy = work / "copy"
    shutil.copytree(of_slim.directory, copy, symlinks=True)
    (copy / "container.sif").unlink()
    done = importer(copy, work / "env", check=False)
    assert done.returncode == 2 and "which is missing" in done.stderr and "docker://python:3.13-slim" in done.stderr
    assert not (work / "env").exists()


def test_it_can_be_changed_and_moved(user, tool, importer, of_pip, work, sessions):
    prefix = work / "env"
    importer(of_pip.directory, prefix)
    user.run(str(tool), "update", prefix, "--", "pip", "install", "-q", "six==1.15.0", "iniconfig==2.0.0")
    show = "import six; print(six.__version__)"
    assert python(user, prefix, show) == "1.15.0" and python(user, prefix, "import iniconfig, pygments; print('here')") == "here"
    user.run(str(tool), "squash", prefix)
    assert json.loads((prefix / "containerize.json").read_text())["layers"] == []
    assert python(user, prefix, show) == "1.15.0"
    assert user.run(prefix / "bin/pygmentize", "-V").stdout.startswith("Pygments version 2.17.2")
    prefix.rename(work / "moved")
    assert python(user, work / "moved", show) == "1.15.0"


def test_two_of_them_at_once(user, importer, of_conda, of_pip, work):
    """Both are mounted directly below "/", where the user cannot create directories, the second while programs of the first run."""
    importer(of_conda.directory, work / "one")
    importer(of_pip.directory, work / "two")
    nested = f"import subprocess, os; subprocess.run(['{work}/two/bin/pygmentize', '-V'], check=True); os.getcwd(); subprocess.run(['{work}/one/bin/where'], check=True)"
    shown = user.run(work / "one/bin/python", "-c", nested, cwd=work).stdout
    assert "Pygments version 2.17.2" in shown and f"{of_conda.inside}/{of_conda.environment}/share/where" in shown
    assert python(user, work / "two", "import os; print(os.getcwd())", cwd=work) == str(work)


def test_beside_one_of_ours(user, importer, small, of_pip, work, sessions):
    """A session with running programs cannot get a new root: they would lose their working directory. So launches get another session."""
    importer(of_pip.directory, work / "env")
    ask = "import os, sys\nfor line in sys.stdin: print(os.getcwd(), flush=True)"
    process = user.start(small / "bin/python", "-c", ask, cwd=work, stdin=subprocess.PIPE)
    process.stdin.write("\n")
    process.stdin.flush()
    assert next_line(process.stdout) == f"{work}\n"
    assert user.run(work / "env/bin/pygmentize", "-V").stdout.startswith("Pygments version")
    assert python(user, small, "import six; print(six.__version__)") == "1.16.0"
    assert process.communicate("\n", timeout=60)[0] == f"{work}\n"
    assert len(sessions.supervisors()) == 2
    # A launch from inside a session can use no other session.
    sessions.kill_all()
    code = f"import subprocess, sys; sys.exit(subprocess.run(['{work}/env/bin/pygmentize', '-V']).returncode)"
    assert user.run(small / "bin/python", "-c", code, cwd=work).stdout.startswith("Pygments version")


def test_wrapped_software(user, importer, work):
    tykky = Tykky(user, work / "wrapped", str(work / "appl/tool-1.2"), "wrapdisk", ".")
    for name, text in (("bin/show", f'#!/bin/sh\ncat {tykky.inside}/data.txt\n'), ("sbin/admin", "#!/bin/sh\necho admin\n")):
        (tykky.tree / name).parent.mkdir()
        user.write(tykky.tree / name, text, 0o755)
    user.write(tykky.tree / "data.txt", "data\n")
    tykky.finish(wrapper_paths=["bin", "sbin"], settings={"wrap_src": tykky.inside, "mask_wrap_install": True})
    importer(tykky.directory, work / "env")
    assert user.run(work / "env/bin/show").stdout == "data\n" and user.run(work / "env/bin/admin").stdout == "admin\n"


def test_refusals(user, tool, importer, of_pip, work):
    def damaged(name, change):
        copy = work / name
        shutil.copytree(of_pip.directory, copy, symlinks=True)
        change(copy)
        return copy

    def settings(**changed):
        def change(copy):
            file = copy / "share/conf.yaml"
            file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))
        return change

    def image_as_directory(copy):
        (copy / "img.sqfs").unlink()
        (copy / "img.sqfs").mkdir()

    def without_python(copy):
        """Its Python is the one of the container, as in an environment made with --slim."""
        tree = work / "tree"
        user.run("unsquashfs", "-q", "-n", "-d", tree, copy / "img.sqfs")
        (tree / "env1/bin/python3").unlink()
        (tree / "env1/bin/python3").symlink_to("/usr/local/bin/python3.99")
        subprocess.run(["mksquashfs", tree, copy / "img.sqfs", "-noappend", "-quiet", "-no-progress", "-comp", "zstd", "-Xcompression-level", "1"], check=True)

    for directory, message in [(work, "it has no share/conf.yaml"),
                               (damaged("1", lambda copy: (copy / "common.sh").unlink()), "it has no common.sh"),
                               (damaged("2", settings(mode="wrapcont", wrapper_paths=["/usr/bin", "/opt/tool"])), "-w /usr/bin,/opt/tool --prefix NEWPREFIX"),
                               (damaged("3", settings(mode="new-kind")), "installations of this mode cannot be imported"),
                               (damaged("4", settings(installation_path="/")), "an image cannot be mounted at this path"),
                               (damaged("4b", settings(installation_path="/etc/")), "an image cannot be mounted at this path"),
                               (damaged("5", settings(env_name="../..")), "invalid name of an environment"),
                               (damaged("6", settings(sqfs_image="no.sqfs")), "cannot open the image"),
                               (damaged("7", settings(env_name="other")), "the image contains no environment"),
                               (damaged("8", lambda copy: os.truncate(copy / "img.sqfs", 5000)), "img.sqfs"),
                               (damaged("8b", image_as_directory), "Build it again with `containerize new`"),
                               (damaged("9", without_python), "the environment's Python is in tykky's container, which is missing")]:
        done = importer(directory, work / "env", check=False)
        assert done.returncode == 2 and message in done.stderr, done.stderr
        assert not (work / "env").exists()
    done = importer(of_pip.directory, of_pip.directory / "new", check=False)
    assert done.returncode == 2 and "must not contain each other" in done.stderr
    importer(of_pip.directory, work / "env")
    done = importer(work / "env", work / "again", check=False)
    assert done.returncode == 2 and "It is already a containerize installation" in done.stderr
    done = importer(of_pip.directory, work / "env", check=False)
    assert done.returncode == 2 and "--force" in done.stderr
    importer(of_pip.directory, work / "env", "--force")
