"""Programs whose root is a base image: another distribution, with the parts of the host that they need."""

import json
import os
import shutil
import signal
import subprocess

import pytest
from conftest import eventually, next_line, resend_is_possible


@pytest.fixture(scope="session")
def based(make, place, base):
    """An installation on that base. Tests only read it."""
    return make(place / "based", "six==1.16.0\nPygments\n", "--base", str(base))


def sh(user, prefix, script, **more):
    return user.run(f"{prefix}/bin/_debug_exec", "sh", "-c", script, **more)


def test_programs_are_those_of_the_base(user, based):
    told = json.loads(user.run(f"{based}/bin/python", "-c",
                               "import sys, json, six, platform; print(json.dumps([sys.version_info[:2], sys.executable, sys.prefix, six.__file__, platform.libc_ver()[1]]))").stdout)
    assert told[0] == [3, 13]
    assert told[1:4] == [f"{based}/bin/python", str(based), f"{based}/lib/python3.13/site-packages/six.py"]
    assert tuple(map(int, told[4].split("."))) >= (2, 41)
    assert "trixie" in sh(user, based, "cat /etc/os-release").stdout
    assert "Pygments version" in user.run(f"{based}/bin/pygmentize", "-V").stdout


def test_the_hosts_data_is_there_and_its_system_is_not(user, based, work):
    user.write(work / "data", "mine")
    seen = sh(user, based, f"cat {work}/data; pwd; ls -d /proc/self /sys/class /dev/null /tmp /run /var/tmp; id -un; test -e /usr/bin/strace || echo bare; "
                           "cat /etc/resolv.conf > /dev/null && echo resolves", cwd=work)
    lines = seen.stdout.splitlines()
    assert lines[0] == f"mine{work}"
    assert lines[-3:] == [user.entry.pw_name, "bare", "resolves"]
    written = work / "written"
    sh(user, based, f"echo new > {written}; touch /usr/nothing 2>/dev/null || echo read-only > {work}/answer")
    assert written.read_text() == "new\n" and (work / "answer").read_text() == "read-only\n"
    assert written.stat().st_uid == user.uid


def test_environment(user, based):
    def variable(name, **env):
        return sh(user, based, f"echo ${name}", env=env).stdout.strip()

    # Otherwise the base's programs would load the host's libraries.
    assert variable("LD_LIBRARY_PATH", LD_LIBRARY_PATH="/usr/lib/x86_64-linux-gnu") == ""
    assert variable("PATH", PATH="/my/bin:/usr/bin").startswith(f"{based}/bin:")
    assert "/my/bin" in variable("PATH", PATH="/my/bin:/usr/bin")
    assert variable("VIRTUAL_ENV") == str(based)


def test_settings_of_the_host_hide_links_of_the_base(user, based):
    # Debian's /etc/localtime is a link to a file that also has other names, which the mount must not hide.
    seen = sh(user, based, "cut -d' ' -f5 /proc/self/mountinfo | grep -c zoneinfo; test -L /etc/localtime || echo file; python -c \"import zoneinfo, datetime;"
                           " print(datetime.datetime(2026, 1, 1, tzinfo=zoneinfo.ZoneInfo('UTC')).utcoffset())\"", check=False)
    assert seen.stdout.splitlines()[:2] == ["0", "file"]


def test_a_venv_on_top_and_scripts(user, based, work):
    user.run(f"{based}/bin/python", "-m", "venv", str(work / "venv"))
    told = user.run(str(work / "venv/bin/python"), "-c", "import sys, six; print(sys.version_info[1], sys.prefix)").stdout.split()
    assert told == ["13", str(work / "venv")]
    active = {"VIRTUAL_ENV": str(work / "venv"), "PATH": f"{work}/venv/bin:/usr/bin:/bin"}
    path = user.run(str(work / "venv/bin/python"), "-c", "import os; print(os.environ['PATH'])", env=active).stdout
    assert path.startswith(f"{work}/venv/bin:")
    script = user.write(work / "script", f"#!{based}/bin/python\nimport sys; print(sys.version_info[1])\n", 0o755)
    assert user.run(str(script)).stdout == "13\n"


@pytest.mark.parametrize("code", [0, 3, 255])
def test_exit_codes_and_signals(user, based, code):
    assert user.run(f"{based}/bin/python", "-c", f"raise SystemExit({code})", check=False).returncode == code
    assert user.run(f"{based}/bin/python", "-c", "import os; os.kill(os.getpid(), 9)", check=False).returncode == -9


def test_installations_of_one_base_share_a_session(user, sessions, make, only_python, place, based, base):
    second = make(place / "second", only_python, "--base", str(base))
    sessions.kill_all()
    user.run(f"{based}/bin/python", "-c", "pass")
    user.run(f"{second}/bin/python", "-c", "pass")
    assert len(sessions.supervisors()) == 1
    assert len(sessions.servers()) == 3  # one for the base, and one for each installation
    # Each can call the other by its path.
    called = user.run(f"{based}/bin/python", "-c", f"import subprocess; subprocess.run(['{second}/bin/python', '-c', 'import sys; print(sys.prefix)'], check=True)")
    assert called.stdout == f"{second}\n"
    assert len(sessions.supervisors()) == 1


def test_a_killed_server_of_the_base_is_replaced(user, sessions, based, work):
    """Before Linux 6.9 programs lose their files, and the next launch starts a new session."""
    sessions.kill_all()
    running = user.start(f"{based}/bin/python", "-c", "import sys; print('up', flush=True); sys.stdin.read(); import ensurepip, email, tomllib; print('done')",
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert next_line(running.stdout).strip() in ("up", b"up")
    killed = sessions.servers()
    assert len(killed) == 2
    for server in killed:
        os.kill(server, signal.SIGKILL)
    if resend_is_possible():
        eventually(lambda: len(set(sessions.servers()) - set(killed)) == 2)
        assert running.communicate(timeout=60)[0] == "done\n" and running.returncode == 0
    else:
        assert running.communicate(timeout=60)[0] == "" and running.returncode != 0
    assert "trixie" in sh(user, based, "cat /etc/os-release").stdout


def test_a_session_with_a_base_ends_and_leaves_nothing(user, sessions, based):
    sessions.kill_all()
    user.run(f"{based}/bin/python", "-c", "pass", env={"CONTAINERIZE_SESSION_IDLE": "1"})
    assert sessions.processes()
    eventually(lambda: not sessions.processes())
    assert not [name for name in os.listdir(sessions.state) if name.startswith(("v", "in-"))]
    # The same after its supervisor was killed.
    running = user.start(f"{based}/bin/python", "-c", "print('up', flush=True); input(); import email.parser", stdin=subprocess.PIPE)
    assert next_line(running.stdout) == "up\n" and len(sessions.servers()) == 2
    os.kill(sessions.supervisors()[0], signal.SIGKILL)
    assert running.communicate("\n", timeout=60) == ("", "") and running.returncode == 0
    eventually(lambda: not sessions.processes())


def test_between_the_host_and_bases(user, sessions, small, based):
    # From the host's root into the base, and from the base to a program by its wrapper's path.
    code = f"import subprocess, sys; print(sys.version_info[1], flush=True); subprocess.run(['{based}/bin/python', '-c', 'import sys; print(sys.version_info[1])'], check=True)"
    assert user.run(f"{small}/bin/python", "-c", code).stdout.splitlines()[1] == "13"
    nested = sh(user, based, f"{based}/bin/python -c 'import sys; print(sys.prefix)'")
    assert nested.stdout == f"{based}\n"


# ---- Binds


def test_binds(user, make, where, work, base):
    source = user.directory(work)
    user.write(source / "file", "there")
    user.write(work / "single", "one")
    env = make(work / "env", where, "--base", str(base), "--bind", f"{source}:/opt/data/deep", "--bind", f"{source}:/opt/fixed:ro",
               "--bind", f"{work}/single:/usr/share/single", "--bind", f"{work}/missing:/opt/missing")
    assert sh(user, env, "cat /opt/data/deep/file /usr/share/single; ls /opt").stdout.split("\n")[0] == "thereone" + "data"
    sh(user, env, "echo new > /opt/data/deep/other")
    assert (source / "other").read_text() == "new\n"
    refused = sh(user, env, "echo new > /opt/fixed/other2", check=False)
    assert refused.returncode != 0 and "Read-only file system" in refused.stderr
    # Files of the image beside the target stay visible.
    assert "doc" in sh(user, env, "ls /usr/share").stdout.split()


def test_binds_at_launch(user, based, work):
    (work / "source").mkdir()
    user.write(work / "source/file", "there")
    for name in ("CONTAINERIZE_BIND", "APPTAINER_BIND", "SINGULARITY_BINDPATH", "CW_EXTRA_BIND_MOUNTS"):
        assert sh(user, based, "cat /mnt2/file", env={name: f"{work}/source:/mnt2"}).stdout == "there", name
    assert sh(user, based, "test -e /mnt2", check=False).returncode == 1
    required = sh(user, based, "true", env={"CONTAINERIZE_BIND": f"{work}/nothing:/mnt2:required"}, check=False)
    assert required.returncode == 1
    assert f"{work}/nothing: the source of a required bind is missing" in required.stderr
    # Binds that only another tool understands are ignored.
    assert sh(user, based, "echo on", env={"APPTAINER_BIND": f"{work}/x.sqfs:/mnt2:image-src=/"}).stdout == "on\n"
    bad = sh(user, based, "true", env={"CONTAINERIZE_BIND": "relative:/mnt2"}, check=False)
    assert bad.returncode == 1
    assert "invalid bind: 'relative:/mnt2'" in bad.stderr and "CONTAINERIZE_BIND" in bad.stderr


def test_binds_without_a_base(user, small, work):
    (work / "source").mkdir()
    user.write(work / "source/file", "there")
    seen = sh(user, small, "cat /brand/new/file; test -e /usr/bin/env && echo host", env={"CONTAINERIZE_BIND": f"{work}/source:/brand/new"})
    assert seen.stdout == "therehost\n"
    assert not os.path.exists("/brand")
    # Covering the parent directory to create the target would make it read-only for all.
    refused = sh(user, small, "true", env={"CONTAINERIZE_BIND": f"{work}/source:{work}/missing"}, check=False)
    assert refused.returncode == 1 and f"{work}/missing: the target of the bind does not exist" in refused.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount what lies in a bind")
def test_read_only_binds_are_so_all_the_way_down(user, based, small, work):
    source = user.directory(work)
    (source / "in it").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", str(source / "in it")], check=True)
    try:
        for env in (based, small):
            told = sh(user, env, "touch /mnt2/x; touch '/mnt2/in it/x'; echo x > '/mnt3/in it/x'; cat '/mnt2/in it/x'",
                      env={"CONTAINERIZE_BIND": f"{source}:/mnt2:ro,{source}:/mnt3"}, check=False)
            assert told.stdout == "x\n" and told.stderr.count("Read-only file system") == 2, told
            (source / "in it/x").unlink()
        # A mount in a directory that the user cannot enter does not prevent programs from starting.
        (source / "closed/deep").mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(source / "closed/deep")], check=True)
        (source / "closed").chmod(0o700)
        told = sh(user, small, "touch /mnt2/x; echo on", env={"CONTAINERIZE_BIND": f"{source}:/mnt2:ro"})
        assert told.stdout == "on\n" and "Read-only" in told.stderr
    finally:
        for name in ("in it", "closed/deep"):
            subprocess.run(["umount", "--lazy", str(source / name)], check=False)


def test_binds_that_meet(user, based, work):
    """The later one wins."""
    for name in ("two", "two/sub"):
        (work / name).mkdir()
        os.chown(work / name, user.uid, -1)
    told = sh(user, based, f"touch {work}/two/new; touch {work}/two/sub/new && echo written",
              env={"CONTAINERIZE_BIND": f"{work}/two:{work}/two:ro,{work}/two/sub"}, check=False)
    assert told.stdout == "written\n" and "Read-only" in told.stderr, told


def test_builds_have_the_binds(user, tool, make, where, work, base):
    source = user.directory(work)
    user.write(source / "file", "there")
    script = user.write(work / "script.sh", "cat /mnt2/file > $CONTAINERIZE_PREFIX/bin/seen\n")
    for number, more in enumerate(([], ["--base", str(base)])):
        env = make(work / f"env{number}", where, *more, "--bind", f"{source}:/mnt2", "--bind", f"{work}/none:/mnt3:required", "--post-install", str(script))
        assert (source / "file").unlink() is None
        user.write(source / "file", "changed")
        user.run(str(tool), "update", "--post-install", str(script), str(env))
        user.write(source / "file", "there")
        (work / "none").mkdir()
        assert sh(user, env, f"cat {env}/bin/seen").stdout == "changed"
        (work / "none").rmdir()
    # A build can write to its prefix even if that is bound read-only for programs.
    make(work / "env2", where, "--bind", f"{work}:{work}:ro")


@pytest.mark.parametrize("bind, why", [("/a:/b:/c:/d", "more than three parts"), ("/a:b", "the target must be an absolute path"), ("/a:/", "the target must not be the root directory"),
                                       ("/a:/b:frob", "unknown option 'frob'")])
def test_bad_binds(user, tool, work, bind, why):
    spec = user.write(work / "requirements.txt", "six\n")
    done = user.run(str(tool), "new", "--prefix", str(work / "env"), "--bind", bind, str(spec), check=False)
    assert done.returncode == 2 and why in done.stderr
    assert not (work / "env").exists()


# ---- Isolation


def test_isolated(user, make, only_python, work, base):
    home = user.directory(work)
    user.write(home / "secret", "mine")
    env = make(work / "env", only_python, "--base", str(base), "--isolate", "--bind", f"{home}:/data:ro")
    script = (f"test -e {home}/secret || echo hidden; cat /data/secret; echo; ls -A /tmp | wc -l; ls /home | wc -l; echo x > /dev/null && echo null; "
              "head -c 4 /dev/zero | wc -c; ls /dev | grep -c tty; echo x > $HOME/file && cat $HOME/file; id -un; ls /run | wc -l; test -d /proc/self/fd && echo proc")
    done = sh(user, env, script, env={"HOME": str(home)}, cwd="/")
    # /tmp contains only the path to the installation.
    assert done.stdout.splitlines() == ["hidden", "mine", "1", "0", "null", "4", "1", "x", user.entry.pw_name, "0", "proc"]
    assert not (home / "file").exists()
    # A working directory that is not visible inside is replaced by /.
    elsewhere = user.directory(work)
    user.write(elsewhere / "secret", "mine")
    lost = sh(user, env, "pwd; cat secret", env={"HOME": str(home)}, cwd=elsewhere, check=False)
    assert lost.stdout == "/\n" and "No such file" in lost.stderr
    assert f"the working directory {elsewhere} cannot be entered here, so the program starts in /" in lost.stderr
    assert user.run(f"{env}/bin/python", "-c", "import sys; print(sys.prefix)", cwd="/").stdout == f"{env}\n"


def test_host_profiles(user, tool, make, only_python, work, base):
    """A profile takes files from the host, and a library that the base lacks with its dependencies."""
    profile = user.write(work / "site.yaml", f"binds: [{work}:/opt/site, /does/not/exist]\nlibraries:\n- libarchive.so.13\n- libnothing.so.1\n")
    load = "import ctypes; print(ctypes.CDLL('libarchive.so.13').archive_version_number() > 3000000)"
    env = make(work / "env", only_python, "--base", str(base), "--host-profile", f"slurm,{profile}")
    assert user.run(f"{env}/bin/python", "-c", load).stdout == "True\n"
    assert "libarchive.so.13" in sh(user, env, "ls /opt/site /.containerize/gpu/lib").stdout
    assert "libarchive" in json.loads((env / "containerize.json").read_text())["host_libraries"][-2]
    without = make(work / "without", only_python, "--base", str(base))
    assert user.run(f"{without}/bin/python", "-c", load, check=False).returncode == 1
    spec = user.write(work / "requirements.txt", "six\n")
    for name, text, why in [("nonesuch", None, "there is no host profile 'nonesuch'"), ("bad.yaml", "libraries: [../x]", "bad.yaml:1"), ("odd.yaml", "bind: []", "no setting `bind:`")]:
        given = str(user.write(work / name, text)) if text else name
        done = user.run(str(tool), "new", "--prefix", str(work / "bad"), "--base", str(base), "--host-profile", given, str(spec), check=False)
        assert done.returncode == 2 and why in done.stderr, done.stderr


# ---- Other kinds of bases


def test_a_directory_as_base(user, make, work, trixie):
    root = work / "root"
    subprocess.run(["cp", "-a", str(trixie), str(root)], check=True)
    for changeable in ("etc", "opt"):  # only the mount keeps the user from writing there
        os.chown(root / changeable, user.uid, -1)
    env = make(work / "env", "six==1.16.0\n", "--base", str(root), "--bind", f"{work}:/opt/my/data")
    assert user.run(f"{env}/bin/python", "-c", "import sys, six; print(sys.version_info[1])").stdout == "13\n"
    user.write(work / "file", "there")
    assert sh(user, env, "cat /opt/my/data/file; touch /etc/x 2>/dev/null || echo read-only").stdout == "thereread-only\n"
    assert not (root / "etc/x").exists() and list((root / "opt").iterdir()) == []


def test_an_oci_layout_as_base(user, make, work, trixie):
    layout = work / "layout"
    tar = work / "root.tar"
    subprocess.run(["tar", "-C", str(trixie), "-cf", str(tar), "."], check=True)
    umoci = lambda *words: subprocess.run(["umoci", *words], check=True, stdout=subprocess.DEVNULL)  # noqa: E731
    umoci("init", "--layout", str(layout))
    umoci("new", "--image", f"{layout}:t")
    umoci("raw", "add-layer", "--image", f"{layout}:t", str(tar))
    umoci("config", "--image", f"{layout}:t", "--config.env", "PATH=/opt/special:/usr/bin:/bin", "--config.env", "GREETING=hello world")
    subprocess.run(["chown", "-R", str(user.uid), str(layout)], check=True)
    store = {"CONTAINERIZE_BASES": str(work / "bases")}
    env = make(work / "env", "six==1.16.0\n", "--base", f"oci:{layout}:t", env=store)
    shutil.rmtree(layout)
    told = sh(user, env, "echo $GREETING; echo $PATH; python -c 'import sys; print(sys.version_info[1])'").stdout.splitlines()
    assert told[0] == "hello world" and told[2] == "13"
    assert told[1].startswith(f"{env}/bin:/opt/special:/usr/bin:/bin")
    manifest = json.loads((env / "containerize.json").read_text())
    assert manifest["base"]["digest"].startswith("sha256:")
    # The message names the missing base and says what to do.
    shutil.rmtree(work / "bases")
    gone = user.run(f"{env}/bin/python", "-c", "pass", check=False, env={"CONTAINERIZE_BIND": "/etc:/other"})
    assert gone.returncode == 1 and "cannot open the base" in gone.stderr and "containerize base pull" in gone.stderr


@pytest.mark.parametrize("given, why", [("/does/not/exist.sqfs", "/does/not/exist.sqfs"), ("docker://127.0.0.1:1/none", "127.0.0.1:1"), ("frob", "frob")])
def test_bad_bases(user, tool, work, given, why):
    spec = user.write(work / "requirements.txt", "six\n")
    done = user.run(str(tool), "new", "--prefix", str(work / "env"), "--base", given, str(spec), check=False)
    assert done.returncode in (1, 2) and why in done.stderr, done.stderr
    assert not (work / "env").exists()


def test_conda_packages_on_a_base(user, tool, work, base, channels):
    spec = user.write(work / "env.yml", f"channels:\n- file://{channels}/main\ndependencies:\n- python\n")
    user.run(str(tool), "new", "--no-config", "--base", str(base), "--prefix", str(work / "env"), str(spec), env={"CONTAINERIZE_CACHE": str(work / "cache")})
    assert "trixie" in user.run(f"{work}/env/bin/python", "-c", "print(open('/etc/os-release').read())").stdout


def test_conda_solves_for_the_bases_c_library(user, tool, work, base, channels):
    spec = user.write(work / "env.yml", f"channels:\n- file://{channels}/main\ndependencies:\n- __glibc >=2.40\n- python\n")
    command = [str(tool), "new", "--dry-run", "--no-config", "--prefix", str(work / "env"), str(spec)]
    cache = {"CONTAINERIZE_CACHE": str(work / "cache")}
    assert "python" in user.run(*command, "--base", str(base), env=cache).stdout
    here = user.run(*command, env=cache, check=False)
    assert here.returncode == 2 and "__glibc" in here.stderr
    assert user.run(*command, "--base", str(base), env={**cache, "CONDA_OVERRIDE_GLIBC": "2.17"}, check=False).returncode == 2


# ---- Changes


def test_updates_and_rollback(user, tool, make, work, base):
    env = make(work / "env", "six==1.16.0\n", "--base", str(base))
    user.run(str(tool), "update", str(env), "--", "pip", "install", "-q", "idna")
    assert user.run(f"{env}/bin/python", "-c", "import idna, sys; print(sys.version_info[1])").stdout == "13\n"
    user.run(str(tool), "rollback", str(env))
    assert user.run(f"{env}/bin/python", "-c", "import idna", check=False).returncode == 1
    user.run(str(tool), "update", str(env), "--", "pip", "install", "-q", "idna")
    user.run(str(tool), "squash", str(env))
    assert user.run(f"{env}/bin/python", "-c", "import idna, sys; print(sys.version_info[1])").stdout == "13\n"


def test_replacing_a_base_by_the_hosts_root(user, make, where, work, base):
    env = make(work / "env", where, "--base", str(base))
    assert (env / "libexec/root").exists()
    make(env, where, "--force")
    assert not (env / "libexec/root").exists()
    assert "bookworm" in sh(user, env, "cat /etc/os-release").stdout


# ---- Programs of containers


@pytest.mark.parametrize("by", ["wrap-container", "containerize"])
def test_wrap_container(user, tool, work, trixie, base, by):
    command = [str(tool.parent / "wrap-container")] if by == "wrap-container" else [str(tool), "wrap-container"]
    prefix = work / "wrapped"
    done = user.run(*command, "-w", "/usr/bin/env,/usr/bin/python3,/usr/sbin", "--prefix", str(prefix), str(base if by == "containerize" else trixie))
    assert done.returncode == 0
    names = os.listdir(prefix / "bin")
    assert {"env", "python3", "ldconfig"} <= set(names) and "bash" not in names
    told = user.run(f"{prefix}/bin/python3", "-c", "import sys; print(sys.version_info[1], sys.argv[1:])", "a b").stdout
    assert told == "13 ['a b']\n"
    assert user.run(f"{prefix}/bin/env", "sh", "-c", "cat /etc/os-release").stdout.count("trixie") > 0


@pytest.mark.parametrize("paths, why", [("/nothing/there", "the container has no such path"), ("relative", "the path is not absolute"),
                                        ("/etc/os-release", "this is not a program")])
def test_bad_paths_in_containers(user, tool, work, base, paths, why):
    done = user.run(str(tool), "wrap-container", "-w", paths, "--prefix", str(work / "env"), str(base), check=False)
    assert done.returncode == 2 and why in done.stderr
    assert not (work / "env").exists()
