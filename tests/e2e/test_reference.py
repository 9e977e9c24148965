"""What is made from the program's commands: manual pages, completions, and pages of the documentation."""

import re
import shlex
import subprocess

import pytest
from conftest import BUILD, SOURCE
from test_activate import Terminal

PROGRAMS = ("containerize", "conda-containerize", "pip-containerize", "wrap-container", "wrap-install")
ENGINES = {"auto", "native", "apptainer", "singularity"}

# What completes a line.
LINES = {
    "containerize ne": {"new"},
    "containerize cache ": {"dir", "info", "list", "verify", "clean"},
    "containerize cache info --j": {"--json"},
    "containerize new --off": {"--offline"},
    "containerize new --engine ": ENGINES,
    "containerize new --prefix p --engine nat": {"native"},
    "containerize new --base h": {"host"},
    "containerize stage --to r": {"ram"},
    "containerize job --kind mpi-": {"mpi-torchrun"},
    "containerize inspect pla": {"place/"},
    "containerize config check pla": {"place/", "places.yml"},
    "containerize exec --with-r": {"--with-requirements"},
    "containerize log place --js": {"--json"},
    "containerize squash --jobs ": set(),
    "conda-containerize n": {"new"},
    "pip-containerize new --py": {"--pyver"},
    "wrap-install --ma": {"--mask"},
    "wrap-container pla": {"place/", "places.yml"},
    "tykky dea": {"deactivate"},
}


@pytest.fixture()
def here(user, work):
    (work / "place").mkdir()
    user.write(work / "places.yml", "")
    return work


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What `cmake --install` installs."""
    prefix = tmp_path_factory.mktemp("installed")
    subprocess.run(["cmake", "--install", str(BUILD), "--prefix", str(prefix)], check=True, stdout=subprocess.DEVNULL)
    for directory in (prefix, *prefix.parents[:2]):
        directory.chmod(0o755)
    return prefix / "share"


def test_bash_completes(user, installed, here):
    script = installed / "bash-completion/completions/containerize"
    for line, expected in LINES.items():
        words = [*line.split(" ")]
        ask = (f". {script}; COMP_WORDS=({' '.join(map(shlex.quote, words))}); COMP_CWORD={len(words) - 1}; __containerize_complete; "
               # As readline does: names of files if there is nothing else, and slashes after directories.
               f"((${{#COMPREPLY[@]}})) || [[ {shlex.quote(words[-1])} != pla ]] || COMPREPLY=($(compgen -f pla)); "
               'for word in "${COMPREPLY[@]}"; do if [[ -d $word ]]; then word+=/; fi; echo "$word"; done')
        done = user.run("bash", "--norc", "-uc", ask, cwd=here)
        assert set(done.stdout.split()) == expected and done.stderr == "", line
    equals = "COMP_WORDS=(containerize new --engine = na); COMP_CWORD=4; __containerize_complete; echo ${COMPREPLY[@]}"
    assert user.run("bash", "--norc", "-uc", f". {script}; {equals}").stdout == "native\n"
    after_mark = "COMP_WORDS=(containerize run place -- printf --en); COMP_CWORD=5; __containerize_complete; echo ${COMPREPLY[@]-}"
    assert user.run("bash", "--norc", "-uc", f". {script}; {after_mark}").stdout == "\n"


def test_fish_completes(user, installed, here):
    script = installed / "fish/vendor_completions.d/containerize.fish"
    for line, expected in LINES.items():
        if line.startswith("tykky"):
            continue  # there are no functions for fish
        done = user.run("fish", "--no-config", "-c", f"source {script}; complete -C {shlex.quote(line)}", cwd=here)
        assert {row.split("\t")[0] for row in done.stdout.splitlines()} == expected and done.stderr == "", line


def test_zsh_completes(user, installed, here):
    keys = "insert() { BUFFER=\"print -r -- '<$BUFFER>'\"; zle accept-line }; zle -N insert; bindkey '^X' insert"
    setup = f"fpath=({installed}/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D; unsetopt beep list_beep auto_list prompt_sp"
    with Terminal(user, ["/usr/bin/zsh", "-f", "-i"], {}, cwd=here) as terminal:
        terminal.type(f"PS1='re''ady> '; {setup}; {keys}\n")
        for line, expected in LINES.items():
            if len(expected) != 1:
                continue  # zsh inserts only what is unambiguous
            terminal.until("ready> ")
            terminal.type(f"{line}\t\x18")
            completed = re.search("\n<(.*)>\n", terminal.until("\n<.*>\n")).group(1)
            whole = line.rpartition(" ")[0] + " " + next(iter(expected))
            assert completed.rstrip(" =") == whole, line


@pytest.mark.parametrize("program", PROGRAMS)
def test_shells_find_the_completions(installed, program):
    assert "__containerize_complete" in (installed / "bash-completion/completions" / program).read_text()
    assert f"complete -c {program} " in (installed / f"fish/vendor_completions.d/{program}.fish").read_text()
    assert program in (installed / "zsh/site-functions/_containerize").read_text().splitlines()[0].split()


def test_manual_pages(user, tool, installed):
    pages = {page.stem for page in (installed / "man/man1").iterdir()}
    commands = re.findall(r"^  ([a-z][\w-]+)  ", user.run(str(tool), "--help").stdout, re.MULTILINE)
    assert pages == {*PROGRAMS, *(f"containerize-{command}" for command in commands)}
    for page in (installed / "man/man1").iterdir():
        done = user.run("man", "--warnings", "-l", str(page), env={"MANWIDTH": "100"})
        assert done.stderr == "", page
        strict = user.run("groff", "-man", "-ww", "-z", "-Tutf8", str(page))
        assert strict.stderr == "", page
    new = user.run("man", "-l", str(installed / "man/man1/containerize-new.1"), env={"MANWIDTH": "100"}).stdout
    assert "--compression KIND" in new and "containerize new [OPTIONS] SPEC" in new
    assert "CONTAINERIZE_CACHE" in user.run("man", "-l", str(installed / "man/man1/containerize.1")).stdout


def test_pages_of_the_documentation():
    pages = {page.name: page.read_text() for page in (BUILD / "docs/reference").iterdir()}
    assert set(pages) == {"commands.md", "environment.md", "configuration-keys.md", "exit-codes.md"}
    linked = {**pages, "configuration.md": (SOURCE / "docs/reference/configuration.md").read_text()}
    for target in re.findall(r"\]\((\S+?)\)", "".join(pages.values())):
        page, _, anchor = target.partition("#")
        headings = re.findall("^#+ (.*)$", linked[page or "commands.md"], re.MULTILINE)
        assert not anchor or anchor in {heading.lower().replace(" ", "-") for heading in headings}, target
    for text in pages.values():  # tables have as many columns in each row as in the first
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1, table
