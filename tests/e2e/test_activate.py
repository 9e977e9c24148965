"""Activation: the functions in real shells, their errors, prompts and completions."""

import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import termios
import time
from pathlib import Path

import pytest

# Without the user's and the machine's startup files.
SHELLS = {
    "bash": ["/bin/bash", "--norc", "--noprofile"],
    "zsh": ["/usr/bin/zsh", "-f"],
    "ksh93": ["/usr/bin/ksh93"],
    "mksh": ["/usr/bin/mksh"],
    "dash": ["/usr/bin/dash"],
}
# These shells do not tell a sourced file its own path.
UNAWARE = ("mksh", "dash")


class Shell:
    """One kind of shell, with the functions sourced before each script."""

    def __init__(self, name, user, tool, home):
        self.name, self.user, self.tool, self.home = name, user, tool, home
        self.functions = tool.parent.parent / "share/containerize/shell/containerize.sh"

    def environment(self, env=None):
        aware = {} if self.name not in UNAWARE else {"CONTAINERIZE_ROOT": str(self.tool.parent.parent)}
        return {"HOME": str(self.home), "ENV": None, **aware, **(env or {})}

    def run(self, script, *options, env=None, before="", check=True, **more):
        more.setdefault("cwd", self.home)
        text = f"{before}\n. {shlex.quote(str(self.functions))}\n{script}\n"
        return self.user.run(*SHELLS[self.name], *options, "-c", text, env=self.environment(env), check=check, **more)

    def lines(self, script, *options, **more):
        done = self.run(script, *options, **more)
        assert done.stderr == ""
        return done.stdout.splitlines()

    def terminal(self, env=None, **more):
        more.setdefault("cwd", self.home)
        return Terminal(self.user, [*SHELLS[self.name], "-i"], self.environment(env), **more)


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self, user, argv, env, **more):
        self.master, slave = pty.openpty()

        def control():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

        os.fchown(slave, user.uid, -1)
        more = user.options({"TERM": "dumb", **env}, **more, stdin=slave, stdout=slave, stderr=slave)
        self.process = subprocess.Popen(argv, preexec_fn=control, **more)
        os.close(slave)
        self.seen = ""

    def type(self, text):
        os.write(self.master, text.encode())

    def until(self, pattern, seconds=60):
        """Returns everything on the terminal up to and including the pattern."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < deadline, f"{pattern!r} did not come: {self.seen!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536).decode(errors="replace").replace("\r", "")
        before, self.seen = self.seen[: found.end()], self.seen[found.end():]
        return before

    def close(self):
        os.close(self.master)
        self.process.kill()
        self.process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@pytest.fixture(params=SHELLS)
def shell(request, user, tool, work):
    return Shell(request.param, user, tool, work)


@pytest.fixture()
def fake(user):
    """fake(DIR) makes a directory that looks like an installation with one program."""

    def make(path: Path, mark="containerize.json"):
        (path / "bin").mkdir(parents=True)
        (path / mark).write_text("{}\n")
        (path / "bin/tool").write_text('#!/bin/sh\nprintf "%s\\n" "${0%/bin/tool}"\n')
        (path / "bin/tool").chmod(0o755)
        return path

    return make


STATE = 'echo "$PATH"; echo "${CONTAINERIZE_ACTIVE-none}"; echo "${TYKKY_PREFIX-none}"'


@pytest.mark.parametrize("command", ["containerize", "tykky"])
def test_there_and_back(shell, fake, work, command):
    demo = fake(work / "envs/demo")
    lines = shell.lines(f"{STATE}; {command} activate envs/demo; {STATE}; tool; sh -c tool; sh -c 'echo $CONTAINERIZE_ACTIVE'; {command} deactivate; {STATE}")
    path = lines[0]
    assert path == f"/usr/bin:/bin:{shell.tool.parent}"
    assert lines == [path, "none", "none", f"{demo}/bin:{path}", str(demo), str(demo), str(demo), str(demo), str(demo), path, "none", "none"]


def test_a_real_installation(shell, small, work):
    script = f"containerize activate {small}; python -c 'import six, sys; print(sys.prefix)'; containerize deactivate; command -v python || echo gone"
    assert shell.lines(script) == [str(small), "gone"]


@pytest.mark.parametrize("argument", ["{path}", "{path}/", "./{name}", "../{parent}/{name}", "{name}/../{name}"])
def test_directories(shell, fake, work, argument):
    name = "it's a \"[b]*\" $(touch x) `y` \\n %d !"
    fake(work / name)
    argument = argument.format(path=work / name, name=name, parent=work.name)
    lines = shell.lines(f'p=$PATH; containerize activate "$THERE"; tool; printf "%s\\n" "$CONTAINERIZE_ACTIVE"; containerize deactivate; [ "$PATH" = "$p" ] && echo same',
                        env={"THERE": argument})
    assert lines == [str(work / name), str(work / name), "same"]
    assert not (work / "x").exists()


@pytest.mark.parametrize("argument", [".", "..", "../envs"])
def test_where_one_is(shell, fake, work, argument):
    fake(work / "envs")
    cwd = work / "envs/bin" if argument == ".." else work / "envs"
    assert shell.lines(f"containerize activate {argument}; tool", cwd=cwd) == [str(work / "envs")]


def test_real_paths(shell, fake, work):
    fake(work / "envs/demo-2")
    (work / "envs/demo").symlink_to("demo-2")
    assert shell.lines("containerize activate demo; tool", env={"CONTAINERIZE_PATH": str(work / "envs")}) == [str(work / "envs/demo-2")]


def test_of_tykky(shell, fake, work):
    fake(work / "old", mark="common.sh")
    assert shell.lines("tykky activate old; tool") == [str(work / "old")]


def test_another_replaces_the_first(shell, fake, work):
    one, two = fake(work / "one"), fake(work / "two")
    lines = shell.lines(f"p=$PATH; containerize activate one; containerize activate one; containerize activate two; {STATE}; containerize deactivate; [ \"$PATH\" = \"$p\" ] && echo same")
    assert lines[0].startswith(f"{two}/bin:/usr/bin:") and str(one) not in lines[0]
    assert lines[1:] == [str(two), str(two), "same"]


@pytest.mark.parametrize("before", ["/usr/bin:/bin", "/usr/bin::/bin", ":/usr/bin:/bin:", "/usr/bin:/bin:/a b:*:~", "/usr/bin:/bin:{demo}/bin", "{demo}/bin:/usr/bin:/bin",
                                    "/usr/bin:/bin:/usr/bin"])
def test_path_comes_back_exactly(shell, fake, work, before):
    demo = fake(work / "demo")
    before = before.format(demo=demo) + f":{shell.tool.parent}"
    lines = shell.lines('containerize activate ./demo; echo "$PATH"; containerize deactivate; echo "$PATH"', env={"PATH": before})
    assert lines == [f"{demo}/bin:{before}", before]


@pytest.mark.parametrize("change, left", [("PATH=/x:$PATH:/y", "/x:{path}:/y"), ("PATH=/usr/bin:/bin", "/usr/bin:/bin"), ("PATH=/usr/bin:/bin:/x:$CONTAINERIZE_ACTIVE/bin", "/usr/bin:/bin:/x"),
                                          ("PATH=/usr/bin:/bin:$CONTAINERIZE_ACTIVE/bin2:$CONTAINERIZE_ACTIVE/bin", "/usr/bin:/bin:{demo}/bin2")])
def test_only_its_own_part_of_path_goes(shell, fake, work, change, left):
    demo = fake(work / "demo")
    lines = shell.lines(f'echo "$PATH"; containerize activate ./demo; {change}; containerize deactivate; echo "$PATH"')
    assert lines[1] == left.format(path=lines[0], demo=demo)


def test_a_shell_in_a_shell_can_deactivate(shell, fake, work):
    fake(work / "demo")
    lines = shell.lines(f"echo \"$PATH\"; containerize activate demo; {shlex.join(SHELLS[shell.name])} -c '. \"$0\"; containerize deactivate; {STATE}' {shlex.quote(str(shell.functions))}")
    assert lines[1:] == [lines[0], "none", "none"]


def test_programs_found_before_are_forgotten(shell, fake, work, user):
    (work / "mine").mkdir()
    user.write(work / "mine/tool", "#!/bin/sh\necho mine\n", 0o755)
    fake(work / "demo")
    assert shell.lines("tool; containerize activate demo; tool; containerize deactivate; tool", env={"PATH": f"{work}/mine:/usr/bin:/bin"}) == ["mine", str(work / "demo"), "mine"]


# ---- Search


@pytest.mark.parametrize("env, found", [
    ({}, "home/.containerize/demo"),
    ({"CONTAINERIZE_PATH": "/no:{work}/b b"}, "b b/demo"),
    ({"TYKKY_PATH": "{work}/c"}, "c/demo"),
    ({"TYKKY_PATH": "{work}/c", "CONTAINERIZE_PATH": ""}, "c/demo"),
    ({"CONTAINERIZE_PATH": "::{work}/none:"}, None),
])
def test_search(shell, fake, work, env, found):
    for name in ("home/.containerize", "b b", "c"):
        fake(work / name / "demo")
    (work / "home/empty").mkdir()
    env = {name: value.format(work=work) for name, value in env.items()}
    done = shell.run("containerize activate demo; echo $?; tool", env={"HOME": str(work / "home"), **env}, cwd=work / "home/empty", check=False)
    if found:
        assert (done.stdout.splitlines(), done.stderr) == (["0", str(work / found)], "")
    else:
        assert done.stdout == "1\n"
        assert done.stderr.splitlines()[0].startswith(f"ERROR: no installation demo in the working directory or in {env['CONTAINERIZE_PATH']}: give its path")


def test_the_old_place_of_tykky(shell, fake, work):
    fake(work / ".tykky/demo")
    assert shell.lines("tykky activate demo; tool") == [str(work / ".tykky/demo")]


def test_the_first_of_several(shell, fake, work):
    for name in "abc":
        fake(work / name / "demo")
    (work / "again").symlink_to("a")
    env = {"CONTAINERIZE_PATH": f"{work}/a:{work}/again:{work}/b", "TYKKY_PATH": f"{work}/c"}
    done = shell.run("containerize activate demo; tool", env=env)
    assert done.stdout == f"{work}/a/demo\n"
    assert done.stderr == f"WARNING: using the first demo, {work}/a/demo, not {work}/b/demo, {work}/c/demo\n"
    assert shell.lines("containerize activate demo; tool", env={"CONTAINERIZE_PATH": f"{work}/a:{work}/again"}) == [f"{work}/a/demo"]


def test_the_working_directory_wins(shell, fake, work):
    fake(work / "envs/demo")
    fake(work / "here/demo")
    fake(work / "here/only")
    (work / "here/broken").mkdir()
    fake(work / "envs/broken")
    env = {"CONTAINERIZE_PATH": str(work / "envs")}
    done = shell.run("containerize activate demo; tool", env=env, cwd=work / "here")
    assert done.stdout == f"{work}/here/demo\n"
    assert done.stderr == f"WARNING: using {work}/here/demo in the working directory, not {work}/envs/demo\n"
    assert shell.lines("containerize activate only; tool", env=env, cwd=work / "here") == [f"{work}/here/only"]
    assert shell.lines("containerize activate demo; tool", env=env, cwd=work / "envs") == [f"{work}/envs/demo"]
    assert shell.lines("containerize activate broken; tool", env=env, cwd=work / "here") == [f"{work}/envs/broken"], "what is no installation does not count"


# ---- Errors


@pytest.mark.parametrize("command, error", [
    ("containerize activate", "give one installation: containerize activate NAME|DIR"),
    ("containerize activate ''", "give one installation: containerize activate NAME|DIR"),
    ("tykky activate demo other", "give one installation: tykky activate NAME|DIR"),
    ("containerize activate --loud demo", "unknown option --loud; usage: containerize activate NAME|DIR"),
    ("containerize activate nothing", "no installation nothing in the working directory or in {work}/.containerize:{work}/.tykky: give its path, or add the directory that contains it to CONTAINERIZE_PATH"),
    ("containerize activate ./nothing", "the directory ./nothing does not exist"),
    ("containerize activate ./file", "the directory ./file does not exist"),
    ("containerize activate plain", "./plain is not an installation: it has no containerize.json or no bin/"),
    ("containerize activate 'pl*'", "no installation pl* in the working directory or in {work}/.containerize:{work}/.tykky: give its path, or add the directory that contains it to CONTAINERIZE_PATH"),
    ("containerize activate {work}/plain", "{work}/plain is not an installation: it has no containerize.json or no bin/"),
    ("containerize activate halves/json", "halves/json is not an installation: it has no containerize.json or no bin/"),
    ("containerize activate halves/bin", "halves/bin is not an installation: it has no containerize.json or no bin/"),
    ("containerize activate 'a:b'", "PATH cannot contain {work}/a:b: it has a colon in its name"),
    ("containerize deactivate demo", "containerize deactivate takes no argument"),
    ("tykky deactivate --all", "tykky deactivate takes no argument"),
])
def test_errors_change_nothing(shell, fake, work, user, command, error):
    fake(work / "demo")
    fake(work / "a:b")
    (work / "plain").mkdir()
    (work / "halves/bin/bin").mkdir(parents=True)
    (work / "halves/json").mkdir(parents=True)
    user.write(work / "halves/json/containerize.json", "{}")
    user.write(work / "file", "")
    done = shell.run(f"containerize activate demo; {STATE}; {command.format(work=work)}; echo $?; {STATE}", check=False)
    lines = done.stdout.splitlines()
    assert done.stderr == f"ERROR: {error.format(work=work)}\n"
    assert lines[3] == "1" and lines[:3] == lines[4:]


def test_nothing_to_deactivate(shell):
    done = shell.run(f"{STATE}; containerize deactivate; echo $?; {STATE}")
    lines = done.stdout.splitlines()
    assert done.stderr == "ERROR: no installation is active\n"
    assert lines[3] == "1" and lines[:3] == lines[4:]


def test_usage(shell):
    usage = ["Usage: {0} activate NAME|DIR   put an installation on PATH", "       {0} deactivate          remove it from PATH again"]
    of_tykky, ours = ([line.format(name) for line in usage] for name in ("tykky", "containerize"))
    assert shell.lines("tykky; tykky --help; tykky activate -h") == of_tykky * 3
    assert shell.lines("containerize activate --help; containerize deactivate --help") == ours * 2
    done = shell.run("tykky new; echo $?")
    assert done.stdout == "1\n"
    assert done.stderr.splitlines() == ["ERROR: tykky has no command new here; create installations with `containerize new`", *of_tykky]


# ---- As a guest in somebody's shell


def test_everything_else_goes_to_the_program(shell):
    done = shell.run("containerize --version; containerize inspect '/no such'; echo $?", check=False)
    assert done.stdout.splitlines()[0].startswith("containerize 0.") and done.stdout.splitlines()[-1] == "2"
    assert "/no such" in done.stderr and done.stderr.startswith("containerize: ")


@pytest.mark.parametrize("options", ["set -eu", "set -o nounset; set -o errexit; set -o noglob; set -o noclobber", "set -o noglob; IFS=01/:; set -a"])
def test_options_of_the_shell(shell, fake, work, options):
    demo = fake(work / "de 01mo")
    script = (f'. {shlex.quote(str(shell.functions))}; before="$PATH|$-|$IFS"; containerize activate "de 01mo"; tool; containerize deactivate; tykky activate ./de*mo || :; '
              f'containerize activate none 2>/dev/null || echo "failed $?"; [ "$before" = "$PATH|$-|$IFS" ] && echo same; containerize --version | head -n 1')
    done = shell.run(script, before=options, env={"PS1": None, "LANG": None})
    lines = done.stdout.splitlines()
    assert lines[0] == str(demo) and "failed 1" in lines and lines[-1].startswith("containerize 0.")
    if "noglob" in options:
        assert "the directory ./de*mo does not exist" in done.stderr and "same" in lines


def test_options_of_zsh(user, tool, fake, work):
    shell = Shell("zsh", user, tool, work)
    demo = fake(work / "demo")
    options = "setopt warn_create_global ksh_arrays sh_word_split glob_subst extended_glob null_glob err_return prompt_subst no_unset typeset_silent"
    script = "setopt > before; containerize activate demo; tool; containerize deactivate; setopt > after; cmp before after && echo same"
    assert shell.lines(script, before=options) == [str(demo), "same"]
    assert shell.lines(f"emulate sh -c '. {shell.functions}'; containerize activate demo; tool") == [str(demo)]


def test_a_failure_ends_a_strict_script(shell):
    done = shell.run("containerize activate none; echo went on", before="set -e", check=False)
    assert done.returncode == 1 and done.stdout == ""


def test_sourcing_leaves_a_good_status_and_no_names(shell, fake, work):
    here, named = fake(work / "demo"), fake(work / "envs/named")
    listed = "set" if shell.name != "bash" else "set -o posix; set"
    script = (f'echo $?; {listed} > before; . {shlex.quote(str(shell.functions))}; containerize activate ./demo; tool; containerize activate nothing; tykky activate named; tool; '
              f'containerize deactivate; {listed} > after')
    done = shell.run(script, env={"CONTAINERIZE_PATH": f"{work}/envs"}, check=False)
    assert done.stdout.splitlines() == ["0", str(here), str(named)]

    def names(file):
        return {line.split("=")[0] for line in (work / file).read_text().splitlines() if re.match(r"\w+=", line)}

    assert "PATH" in names("before") & names("after")
    assert names("after") - names("before") - {"_", "PIPESTATUS", "BASH_LINENO", "status", "OLDPWD", "KSH_MATCH", "_AST_FEATURES"} == set()


def test_twice_is_once(shell):
    assert shell.lines(f'one=$PATH; . {shlex.quote(str(shell.functions))}; [ "$PATH" = "$one" ] && echo same') == ["same"]


def test_aliases_of_the_name(shell, fake, work):
    demo = fake(work / "demo")
    before = "alias containerize=/no/such tykky=/no/such"
    if shell.name == "bash":
        before += "; shopt -s expand_aliases"
    # On separate lines, because a shell expands aliases when it reads a line.
    assert shell.lines("containerize activate demo\ntool\ntykky deactivate", before=before) == [str(demo)]


@pytest.mark.parametrize("way", ["direct", "relative", "link", "copy", "function"])
def test_finds_its_place(shell, user, work, way):
    place = shell.functions
    more = {}
    if way == "link":
        place = work / "profile.d link.sh"
        place.symlink_to(shell.functions)
    elif way == "copy":
        place = work / "copy.sh"
        shutil.copy(shell.functions, place)
        more["env"] = {"CONTAINERIZE_ROOT": str(shell.tool.parent.parent)}
    elif way == "relative":
        place = "./containerize.sh"
        more["cwd"] = shell.functions.parent
    line = f". {shlex.quote(str(place))}"
    if way == "function":
        line = f"load() {{ {line}; }}; load"
    done = user.run(*SHELLS[shell.name], "-c", f'set -u; {line}; cd /; echo "$PATH"; containerize --version', **{"cwd": work, **more, "env": shell.environment(more.get("env"))})
    assert done.stderr == "" and done.stdout.startswith(f"/usr/bin:/bin:{shell.tool.parent}\ncontainerize 0.")


def test_a_program_on_path_is_kept(shell, user, work):
    (work / "bin").mkdir()
    user.write(work / "bin/containerize", "#!/bin/sh\necho other\n", 0o755)
    path = f"{work}/bin:/usr/bin:/bin"
    assert shell.lines('echo "$PATH"; containerize new', env={"PATH": path, "CONTAINERIZE_ROOT": None}) == [path, "other"]


# ---- Prompts


def prompt_lines(shell, script, ps1, interactive=True, env=None):
    """What an interactive shell prints. It gets a terminal, because some shells complain without one."""
    output = shell.home / "printed"
    text = f"PS1={shlex.quote(ps1)}; . {shlex.quote(str(shell.functions))}\n{{ {script}\n}} >{shlex.quote(str(output))} 2>&1\n"
    options = ["-i"] if interactive else []
    argv = [*SHELLS[shell.name], *options, "-c", text]
    terminal = Terminal(shell.user, argv, shell.environment(env), cwd=shell.home)
    deadline = time.monotonic() + 60
    while terminal.process.poll() is None:
        if select.select([terminal.master], [], [], 0.05)[0]:
            try:
                os.read(terminal.master, 65536)
            except OSError:
                break
        assert time.monotonic() < deadline
    terminal.close()
    return output.read_text().splitlines()


def test_prompt(shell, fake, work):
    fake(work / "my env")
    script = 'containerize activate "my env"; echo "$PS1|"; containerize deactivate; echo "$PS1|"'
    ps1 = "%~ \\w [$x] `y`> "
    assert prompt_lines(shell, script, ps1) == [f"(my env) {ps1}|", f"{ps1}|"]
    assert prompt_lines(shell, 'containerize activate ./"my env"/; echo "$PS1|"', "> ") == ["(my env) > |"]


@pytest.mark.parametrize("env", [{"CONTAINERIZE_CHANGE_PS1": "0"}, {"TYKKY_CHANGE_PS1": "0"}])
def test_prompt_stays_if_told(shell, fake, work, env):
    fake(work / "demo")
    assert prompt_lines(shell, 'containerize activate demo; echo "$PS1|"; containerize deactivate; echo "$PS1|"', "> ", env=env) == ["> |", "> |"]


def test_prompt_of_scripts_stays(shell, fake, work):
    fake(work / "demo")
    assert prompt_lines(shell, 'containerize activate demo; echo "$PS1|"', "> ", interactive=False) == ["> |"]


@pytest.mark.parametrize("change, after", [("PS1='(venv) '$PS1", "(venv) > |"), ("PS1='new> '", "new> |"), ("containerize activate other", "> |"), ("containerize activate demo", "> |"),
                                           ("CONTAINERIZE_CHANGE_PS1=0", "> |")])
def test_prompts_of_others(shell, fake, work, change, after):
    fake(work / "demo")
    fake(work / "other")
    assert prompt_lines(shell, f'containerize activate demo; {change}; containerize deactivate; echo "$PS1|"', "> ") == [after]


def test_prompt_marks_of_mksh(user, tool, fake, work):
    fake(work / "demo")
    script = 'containerize activate demo; echo "$PS1|"; containerize deactivate; echo "$PS1|"'
    shell = Shell("mksh", user, tool, work)
    printed = prompt_lines(shell, f"PS1=$(printf '\\001\\r> '); {script}", "x")
    assert (work / "printed").read_bytes() == b"\001\r(demo) > |\n\001\r> |\n", printed


@pytest.mark.parametrize("name", ["$(touch x)", "`touch x`", "%n", "!!", "\\u$x"])
def test_prompt_means_nothing_to_the_shell(shell, fake, work, name):
    fake(work / name)
    shown = re.sub(r"[$`%!\\]", "_", name)
    with shell.terminal(env={"THERE": f"./{name}"}) as terminal:
        terminal.type(f"PS1='re''ady> '; . {shlex.quote(str(shell.functions))}\n")
        terminal.until("ready> ")
        terminal.type('containerize activate "$THERE"\n')
        terminal.until(rf"\n.*{re.escape(f'({shown}) ready> ')}")
        terminal.type("tool\n")
        terminal.until(re.escape(f"\n{work}/{name}\n"))
        terminal.until("ready> ")
        terminal.type("containerize deactivate\n")
        assert "(" not in terminal.until("ready> ").rpartition("\n")[2]
    assert not (work / "x").exists()


# ---- Completion

@pytest.fixture()
def places(fake, work, user):
    for name in ("envs/demo", "envs/de mo2", "envs/$(touch x)", "envs/other", "here/local", "here/sub/inner", "deep/er/still/one", "tilde/.hidden/h"):
        fake(work / name)
    for name in ("here/plain", "envs/notone", "empty/a", "empty/b"):
        (work / name).mkdir(parents=True)
    user.write(work / "here/file", "")
    return work


def completed(user, tool, places, *words, path="envs"):
    """What the bash completion function answers when it is called as readline calls it."""
    shell = Shell("bash", user, tool, places)
    completion = tool.parent.parent / "share/bash-completion/completions/containerize"
    words = " ".join(map(shlex.quote, words))
    script = (f". {shlex.quote(str(completion))}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); __containerize_complete; "
              "((${#COMPREPLY[@]} == 0)) || printf '%s\\n' \"${COMPREPLY[@]}\"")
    lines = shell.lines(script, cwd=places / "here", env={"CONTAINERIZE_PATH": str(places / path)}, before="set -u; shopt -s failglob; IFS=e")
    return sorted(lines)


def test_completion_of_bash(user, tool, places):
    def ask(*words):
        return completed(user, tool, places, *words)

    help_text = user.run(str(tool), "--help").stdout
    assert ask("containerize", "") == sorted(re.findall(r"^  ([a-z][\w-]+)  ", help_text, re.MULTILINE))
    assert ask("containerize", "de") == ["deactivate", "dev"]
    assert ask("tykky", "") == ["activate", "deactivate"]
    for command in ("containerize", "tykky", "/opt/bin/containerize"):
        assert ask(command, "activate", "") == ["$(touch x)", "de mo2", "demo", "local", "other", "sub"]
    assert ask("containerize", "activate", "de") == ["de mo2", "demo"]
    assert ask("containerize", "activate", "de\\ m") == ["de mo2"]
    assert ask("containerize", "activate", "'de m") == ["de mo2"]
    assert ask("containerize", "activate", '"de m') == ["de mo2"]
    assert ask("containerize", "activate", "sub/") == ["sub/inner"]
    assert ask("containerize", "activate", "../e") == ["../envs"]
    assert ask("containerize", "activate", "../deep/") == ["../deep/er"], "nothing there, so one has to go on"
    assert ask("containerize", "activate", f"{places}/empty/") == [f"{places}/empty/a", f"{places}/empty/b"]
    assert ask("containerize", "activate", "~/til") == ["~/tilde"]
    assert ask("containerize", "activate", "~/tilde/.") in (["~/tilde/.hidden"], ["~/tilde/.", "~/tilde/..", "~/tilde/.hidden"])
    assert ask("containerize", "activate", "demo", "") == []
    assert ask("containerize", "deactivate", "") == []
    assert ask("containerize", "run", "") == ["local", "plain", "sub"]
    assert not (places / "here/x").exists()


def test_completion_on_a_terminal_with_bash(user, tool, places):
    shell = Shell("bash", user, tool, places)
    with shell.terminal(env={"CONTAINERIZE_PATH": str(places / "envs")}, cwd=places / "here") as terminal:
        terminal.type(f"PS1='re''ady> '; . {shlex.quote(str(shell.functions))}; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'\n")
        terminal.until("ready> ")
        for typed, tool_of in (("containerize act\tdemo\n", "envs/demo"), ("containerize activate oth\t\n", "envs/other"), ("tykky activate de\\ \t\n", "envs/de mo2"),
                               ("tykky activate su\tin\t\n", "here/sub/inner"), ("containerize activate ~/til\t.h\t\t\n", "tilde/.hidden/h")):
            terminal.type(typed)
            terminal.until(r"\n(\([^\n]*\) )ready> ")
            terminal.type("tool; tykky deac\t\n")
            terminal.until(re.escape(f"\n{places}/{tool_of}\n"))
            terminal.until(r"ready> ")
        terminal.type("containerize new fi\t\n")
        terminal.until("new file")
    assert not (places / "here/x").exists()


@pytest.mark.parametrize("order", ["before", "after"])
def test_completion_on_a_terminal_with_zsh(user, tool, places, order):
    shell = Shell("zsh", user, tool, places)
    with shell.terminal(env={"CONTAINERIZE_PATH": str(places / "envs")}, cwd=places / "here") as terminal:
        start, functions = "autoload -Uz compinit; compinit -u -D", f". {shlex.quote(str(shell.functions))}"
        both = [start, functions] if order == "before" else [functions, start]
        terminal.type(f"PS1='re''ady> '; {'; '.join(both)}; unsetopt zle_bracketed_paste beep prompt_sp\n")
        terminal.until("ready> ")
        for typed, tool_of in (("containerize act\tdemo\n", "envs/demo"), ("containerize activate oth\t\n", "envs/other"), ("tykky activate de\\ \t\n", "envs/de mo2"),
                               ("tykky activate su\tin\t\n", "here/sub/inner"), ("tykky activate \\$\t\n", "envs/$(touch x)"), ("containerize activate ../dee\ter\tst\tone\t\n", "deep/er/still/one")):
            terminal.type(typed)
            terminal.until(r"\n(\([^\n]*\) )ready> ")
            terminal.type("tool; tykky deac\t\n")
            terminal.until(re.escape(f"\n{places}/{tool_of}\n"))
            terminal.until(r"ready> ")
        terminal.type("containerize \t")
        listed = terminal.until("(?s)update.*squash|squash.*update")
        assert "rollback" in listed
    assert not (places / "here/x").exists()


# ---- The program


def test_the_program_explains(user, tool, work):
    functions = tool.parent.parent / "share/containerize/shell/containerize.sh"
    for arguments in (["activate"], ["activate", "demo"], ["deactivate"], ["activate", "--loud", "a", "b"]):
        done = user.run(str(tool), *arguments, check=False)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.startswith(f"containerize: `{arguments[0]}` must be a function of your shell: ")
        assert done.stderr.splitlines()[-1] == f"  . {functions}"
    assert functions.is_file()
    line = done.stderr.splitlines()[-1]
    assert user.run("bash", "-c", f"{line}\ntype -t containerize").stdout == "function\n"
