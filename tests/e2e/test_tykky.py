"""tykky's command names, options and messages, and wrapping of existing software."""

import json
import os
import shutil

import pytest

from conftest import debian_package

NAMES = ["conda-containerize", "pip-containerize", "wrap-container", "wrap-install"]


@pytest.fixture()
def call(user, tool, work):
    """Runs one of the four commands. As with tykky, all output goes to standard output."""

    def run(name, *argv, check=True, env=None, **more):
        done = user.run(tool.parent / name, *argv, check=check, timeout=600, cwd=more.pop("cwd", work),
                        env={"CONTAINERIZE_CACHE": str(work / "cache"), **(env or {})}, **more)
        assert done.stderr == ""
        return done

    return run


@pytest.fixture()
def spec(user, work, channels):
    def write(dependencies):
        lines = "".join(f"  - {one}\n" for one in dependencies)
        return user.write(work / "env.yml", f"channels:\n  - file://{channels}/main\n  - nodefaults\ndependencies:\n{lines}")

    return write


@pytest.mark.parametrize("name", NAMES)
def test_help(call, name):
    for argv in ([], ["-h"], ["--help"]):
        done = call(name, *argv)
        assert "show this help message" in done.stdout and f"usage: {name}" in done.stdout
    if name.endswith("containerize"):
        for command in ("new", "update"):
            text = call(name, command, "--help").stdout
            for option in ("--post-install", "--pre-install", "--environ", "--wrapper-paths", "--nocache"):
                assert option in text
        assert call(name, "new", check=False).stdout.startswith(f"usage: {name} new")
        assert "advanced" in call(name, "--help").stdout
    assert call(name, "--frobnicate", check=False).returncode == 2


def test_conda_installation_and_updates(call, user, work, spec):
    user.write(work / "post.sh", "pip install -q iniconfig==2.0.0\necho $CW_MODE $env_root $install_root > $env_root/from-script\ntest -f env.yml\n")
    user.write(work / "req.txt", "six==1.16.0\n")
    done = call("conda-containerize", "new", "--mamba", spec(["python=3.11", "pip", "where"]), "-r", "req.txt", "--prefix", "made/env")
    prefix = work / "made/env"
    assert "[ INFO ] Installation directory made/env does not exist" in done.stdout
    assert f"[ INFO ] Next:  export PATH={prefix}/bin:$PATH" in done.stdout
    assert "DEBUG" not in done.stdout and "ERROR" not in done.stdout
    assert user.run(prefix / "bin/python", "-c", "import six, os; print(os.environ['CONDA_DEFAULT_ENV'])").stdout.strip() == str(prefix)
    call("conda-containerize", "update", prefix, "--post-install", "post.sh")
    assert user.run(prefix / "bin/python", "-c", "import iniconfig, sys; print(open(sys.prefix + '/from-script').read())").stdout.split() == ["conda", str(prefix), str(prefix)]
    call("conda-containerize", "update", "-r", user.write(work / "more.txt", "packaging==24.0\n"), prefix)
    assert user.run(prefix / "bin/python", "-c", "import packaging").returncode == 0
    # A build at the same path replaces the installation.
    call("conda-containerize", "new", spec(["where"]), "--prefix", prefix)
    assert user.run(prefix / "bin/where").returncode == 0 and not (prefix / "bin/python").exists()


def test_pip_installation_in_the_working_directory_with_the_packages_of_the_system(call, user, work):
    here = work / "here"
    here.mkdir()
    os.chown(here, user.uid, user.uid)
    user.write(work / "req.txt", "six==1.16.0\n")
    call("pip-containerize", "new", "--system-site-packages", "../req.txt", cwd=here)
    assert user.run(here / "bin/python", "-c", "import six, sys; sys.exit(sys.prefix == sys.base_prefix)").returncode == 0
    assert user.run(here / "bin/python", "-c", "import sys; print(any('dist-packages' in path for path in sys.path))").stdout == "True\n"
    call("pip-containerize", "update", here, "-r", user.write(work / "more.txt", "iniconfig==2.0.0\n"))
    assert user.run(here / "bin/python", "-c", "import six, iniconfig").returncode == 0
    done = call("pip-containerize", "new", "--prefix", work / "other", user.write(work / "typo.txt", "sixxxxxx-nonexistent\n"), check=False)
    assert done.returncode == 1 and "No matching distribution" in done.stdout and "[ ERROR ] " in done.stdout


def test_the_other_kind_is_told(call, user, work, spec):
    """Each command makes one kind of environment, and refuses the other."""
    req = user.write(work / "req.txt", "six==1.16.0\n")
    done = call("conda-containerize", "new", req, "--prefix", work / "env", check=False)
    assert done.returncode == 1 and "does not accept a pip requirements file" in done.stdout and "pip-containerize" in done.stdout
    done = call("pip-containerize", "new", spec(["where"]), "--prefix", work / "env", check=False)
    assert done.returncode == 1 and "does not accept a conda environment file" in done.stdout and "conda-containerize" in done.stdout
    assert not (work / "env").exists()
    for version, message in (("3.7", "Python 3.7 is too old"), ("/nonexistent", "this is not a Python that can be run")):
        done = call("pip-containerize", "new", "--pyver", version, req, "--prefix", work / "env", check=False)
        assert done.returncode == 1 and message in done.stdout and "--pyver" in done.stdout and "--python" not in done.stdout
        assert "`containerize new` has that option" not in done.stdout


def test_hints_name_options_that_there_are(call, user, work, spec):
    """A hint that names an option which tykky's commands lack says that `containerize new` has it."""
    terms = user.write(work / "defaults.yml", "channels: [defaults]\ndependencies: [python]\n")
    done = call("conda-containerize", "new", terms, "--prefix", work / "env", check=False)
    assert done.returncode == 1 and "--allow-defaults" in done.stdout and "`containerize new` has that option" in done.stdout, done.stdout
    done = call("conda-containerize", "new", spec(["where"]), "--prefix", work / "env", check=False, env={"CW_BUILD_TMPDIR": "/nonexistent"})
    assert done.returncode == 1 and "CW_BUILD_TMPDIR" in done.stdout and "--tmpdir" not in done.stdout and "has that option" not in done.stdout, done.stdout


def test_messages_and_variables(call, user, work, spec):
    (work / "closed").mkdir(mode=0o555)
    os.chown(work / "closed", user.uid, user.uid)
    for mode in (0o555, 0o666):
        (work / "closed").chmod(mode)
        done = call("conda-containerize", "new", spec(["where"]), "--prefix", work / "closed", check=False)
        assert done.returncode == 1 and "ERROR" in done.stdout and "not writable" in done.stdout
    done = call("conda-containerize", "new", spec(["no-such-package"]), "--prefix", work / "env", check=False)
    assert done.returncode == 1 and "[ ERROR ] " in done.stdout and "[ INFO ] " in done.stdout and "no-such-package" in done.stdout
    for level, expected in (("0", {"ERROR"}), ("3", {"ERROR", "INFO", "DEBUG"})):
        done = call("conda-containerize", "new", spec(["no-such-package"]), "--prefix", work / "env", check=False, env={"CW_LOG_LEVEL": level})
        assert {kind for kind in ("ERROR", "INFO", "DEBUG") if f"[ {kind} ] " in done.stdout} == expected
    (work / "build").mkdir()
    os.chown(work / "build", user.uid, user.uid)
    script = user.write(work / "bad.sh", "echo $CW_BUILD_TMPDIR\nfalse\necho never\n")
    done = call("conda-containerize", "new", spec(["where"]), "--prefix", work / "env", "--post-install", script, check=False,
                env={"CW_BUILD_TMPDIR": str(work / "build"), "CW_DEBUG_KEEP_FILES": "1"})
    kept = list((work / "build").iterdir())
    assert len(kept) == 1 and str(kept[0]) in done.stdout and "never" not in done.stdout
    assert not (work / "env").exists()
    call("conda-containerize", "new", spec(["where"]), "--prefix", work / "env", env={"CW_BUILD_TMPDIR": str(work / "build")})
    assert list((work / "build").iterdir()) == kept, "later builds leave them"
    condarc = user.write(work / "condarc", "channels: [frobnicate-nonexistent]\n")
    plain = user.write(work / "plain.yml", "dependencies: [where]\n")
    text = {enabled: call("conda-containerize", "new", plain, "--prefix", work / "env", check=False,
                          env={"CONDARC": str(condarc), **({"CW_ENABLE_CONDARC": "1"} if enabled else {})}).stdout for enabled in (True, False)}
    assert "frobnicate" in text[True] and "frobnicate" not in text[False]


def test_uv_is_there_for_scripts(call, user, work, spec):
    """uv comes from PyPI and is installed in the environment, because it is on nobody's PATH there."""
    post = user.write(work / "post.sh", "uv --version\nuv pip install --quiet iniconfig==2.0.0\n")
    requirements = user.write(work / "req.txt", "six==1.16.0\n")
    for name, given in (("conda-containerize", spec(["python=3.11", "pip"])), ("pip-containerize", requirements)):
        prefix = work / name
        call(name, "new", "--uv", given, "--prefix", prefix, "--post-install", post)
        assert user.run(prefix / "bin/python", "-c", "import iniconfig, sys; print(iniconfig.__file__.startswith(sys.prefix))").stdout == "True\n"
        assert user.run(prefix / "bin/uv", "--version").stdout.startswith("uv ")
        assert any(line.startswith(("uv ", "uv==")) for line in user.run(prefix / "bin/list-packages").stdout.splitlines())
    assert json.loads((work / "pip-containerize/containerize.json").read_text())["build"]["installer"] == "uv", "the rest comes by it, too"
    assert "--hash=sha256" in next(line for line in (work / "conda-containerize/share/containerize.lock").read_text().splitlines() if "uv==" in line)
    again = user.write(work / "again.sh", "uv pip install --quiet packaging==24.0\n")
    call("pip-containerize", "update", work / "pip-containerize", "--post-install", again)
    assert user.run(work / "pip-containerize/bin/python", "-c", "import packaging, six").returncode == 0


def test_activation_by_variables(call, user, work, spec):
    call("conda-containerize", "new", spec(["python=3.11", "active"]), "--prefix", work / "env")
    show = [work / "env/bin/python", "-c", "import os; print(os.environ.get('DATA_HOME'))"]
    assert user.run(*show).stdout.strip().endswith("/share/data")
    assert user.run(*show, env={"CW_NO_CONDA_ACTIVATE": "1"}).stdout == "None\n"
    other = {"VIRTUAL_ENV": "/some/venv"}
    assert user.run(*show, env=other).stdout == "None\n"
    assert user.run(*show, env={**other, "CW_FORCE_CONDA_ACTIVATE": "1"}).stdout.strip().endswith("/share/data")


def test_advanced(call, user, work, spec):
    spec(["python=3.11", "pip"])
    user.write(work / "line.sh", "export FROM_FILE=yes\n")
    user.write(work / "tool.yml", f"env_file: env.yml\ninstallation_prefix: {work}/env\nmamba: yes\npost_install:\n  - pip install -q six==1.16.0\n  - touch $env_root/second\n"
               "extra_envs:\n  - {type: set, name: MY_VALUE, value: '42'}\n  - file: line.sh\n")
    done = call("conda-containerize", "advanced", "tool.yml")
    assert "`mamba:`" in done.stdout
    shown = user.run(work / "env/bin/python", "-c", "import six, os, sys; print(os.environ['MY_VALUE'], os.environ['FROM_FILE'], os.path.exists(sys.prefix + '/second'))").stdout
    assert shown == "42 yes True\n"
    user.write(work / "bad.yml", "env_file: [1]\n")
    done = call("conda-containerize", "advanced", "bad.yml", check=False)
    assert done.returncode == 1 and "bad.yml:1" in done.stdout


# --- wrapped software ------------------------------------------------------------------------------------------------


@pytest.fixture()
def software(user, work):
    """Programs that contain their own path, as many do."""
    root = work / "appl/tool-1.2"
    for name in ("bin", "sbin", "lib"):
        (root / name).mkdir(parents=True)
    user.write(root / "lib/data.txt", "original\n")
    user.write(root / "bin/show", f"#!/bin/sh\ncat {root}/lib/data.txt\n", 0o755)
    user.write(root / "bin/own", '#!/bin/sh\ncat "$(dirname "$(dirname "$0")")/lib/data.txt"\n', 0o755)
    user.write(root / "sbin/admin", "#!/bin/sh\necho admin $0\n", 0o755)
    (root / "lib/out").symlink_to("/etc/hostname")
    (root / "lib/up").symlink_to("../../other")
    (root / "lib/in").symlink_to("data.txt")
    for path in [work / "appl", *(work / "appl").rglob("*")]:
        os.chown(path, user.uid, user.uid, follow_symlinks=False)
    return root


def test_wrap_install(call, user, work, software):
    done = call("wrap-install", software, "-w", f"bin,{software}/sbin", "--prefix", work / "wrapped")
    assert "lib/out points outside" in done.stdout and "lib/up points outside" in done.stdout and "lib/in" not in done.stdout
    prefix = work / "wrapped"
    (software / "lib/data.txt").write_text("changed\n")
    assert user.run(prefix / "bin/own").stdout == "original\n"
    assert user.run(prefix / "bin/show").stdout == "changed\n", "without --mask its own path is what is on disk"
    assert user.run(prefix / "sbin/admin").stdout == f"admin {prefix}/sbin/admin\n"
    assert user.run(prefix / "bin/admin").stdout == f"admin {prefix}/sbin/admin\n", "bin alone need be on PATH"
    shutil.rmtree(software)
    assert user.run(prefix / "bin/own").stdout == "original\n"


def test_single_programs_get_wrappers(call, user, tool, work, software, spec):
    call("wrap-install", software, "-w", "sbin/admin", "--prefix", work / "wrapped")
    assert user.run(work / "wrapped/bin/admin").stdout == f"admin {work}/wrapped/bin/admin\n"
    assert not (work / "wrapped/sbin").exists()
    post = user.write(work / "post.sh", "mkdir -p $env_root/opt; printf '#!/bin/sh\\necho made\\n' >$env_root/opt/made; chmod 755 $env_root/opt/made\n")
    call("conda-containerize", "new", spec(["where"]), "--prefix", work / "env", "--post-install", post, "-w", "opt/made")
    assert user.run(work / "env/bin/made").stdout == "made\n" and not (work / "env/opt").exists()
    again = user.write(work / "again.sh", "cp $env_root/opt/made $env_root/opt/more\n")
    call("conda-containerize", "update", work / "env", "--post-install", again, "-w", "opt/more")
    assert user.run(work / "env/bin/more").stdout == "made\n" and user.run(work / "env/bin/made").stdout == "made\n"


def test_wrap_install_with_mask(call, user, tool, sessions, work, software):
    user.write(work / "post.sh", f"echo $CW_MODE >> {software}/lib/data.txt\n")
    call("wrap-install", "--mask", software, "-w", "bin", "--prefix", work / "wrapped", "--post-install", "post.sh")
    assert (software / "lib/data.txt").read_text() == "original\n", "the disk is not written to"
    (software / "lib/data.txt").write_text("changed\n")
    for program in ("own", "show"):
        assert user.run(work / "wrapped/bin" / program).stdout == "original\nwrapdisk\n"
    assert user.run(software / "bin/show").stdout == "changed\n", "outside the disk's copy is as it was"
    shutil.rmtree(work / "appl")
    sessions.kill_all()  # the mount was removed with the directory
    assert user.run(work / "wrapped/bin/show").stdout == "original\nwrapdisk\n"
    user.run(tool, "update", work / "wrapped", "--", "sh", "-c", f"echo more >> {software}/lib/data.txt")
    assert user.run(work / "wrapped/bin/show").stdout == "original\nwrapdisk\nmore\n"


def test_wrap_a_debian_program(user, tool, work):
    """A tree as extracted from a Debian package."""
    tree = shutil.copytree(debian_package("hello"), work / "tree", symlinks=True)
    for path in [tree, *tree.rglob("*")]:
        os.chown(path, user.uid, user.uid, follow_symlinks=False)
    user.run(tool, "wrap-install", tree, "-w", "usr/bin", "--prefix", work / "hello")
    assert user.run(work / "hello/bin/hello").stdout == "Hello, world!\n"
    about = json.loads(user.run(tool, "inspect", work / "hello", "--json").stdout)
    assert about["build"]["source"] == str(tree)


def test_wrap_install_refusals(call, user, work, software):
    for argv, message in [([software, "--prefix", work / "x"], "-w/--wrapper-paths is missing"),
                          ([work / "nowhere", "-w", "bin", "--prefix", work / "x"], "cannot use the software's directory"),
                          ([software, "-w", "bin", "--prefix", software / "inside"], "must not contain each other"),
                          ([software / "lib/data.txt", "-w", "bin", "--prefix", work / "x"], "it is not a directory"),
                          ([software, "-w", "nosuch", "--prefix", work / "x"], "the software has no such directory or program")]:
        done = call("wrap-install", *argv, check=False)
        assert done.returncode == 1 and "[ ERROR ] " in done.stdout and message in done.stdout
    assert (software / "bin/show").exists()
