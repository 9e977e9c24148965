"""Secrets: given in every possible way to servers that require them, and afterwards found nowhere."""

import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.parse
from pathlib import Path

import pytest
from conftest import BUILD, SOURCE

sys.path.insert(0, str(SOURCE / "tests/lib"))
import guarded_server  # noqa: E402
import python_wheels  # noqa: E402
from oci_image import Layout  # noqa: E402
from registry import Registry  # noqa: E402
from test_base import HERE  # noqa: E402

SECRETS = {name: f"{name}-Zq{number}vK+7/x" for number, name in enumerate(
    ("index", "extra", "links", "variable", "direct", "git", "netrc", "script", "typed", "word", "channel", "condarc",
     "private"))}
TOKENS = {name: f"{name}4f9e1c7b3d5a8e2f6b0c" for name in ("token", "bearer", "userless", "signature", "environment")}


def quoted(secret):
    return urllib.parse.quote(secret, safe="")


def forms(secret):
    """The spellings in which programs may write it."""
    plain = {secret, quoted(secret), quoted(secret).lower(), secret.replace("/", "\\/"), urllib.parse.quote(secret)}
    # Servers get user and password in Base64. A token without a password is sent as a user.
    encoded = {base64.b64encode(pair.encode()).decode() for pair in (f"me:{secret}", f"{secret}:")}
    return {form.encode() for form in plain | encoded}


ALL_FORMS = {form for secret in [*SECRETS.values(), *TOKENS.values()] for form in forms(secret)}
SEARCH = re.compile(b"|".join(re.escape(form) for form in sorted(ALL_FORMS)))


def assert_no_secret(what, data: bytes):
    found = SEARCH.search(data)
    assert not found, f"{what}: ...{data[max(0, found.start() - 100):found.end() + 20]!r}"


def wheel(directory: Path, name: str) -> Path:
    return python_wheels.wheel(directory, name, {f"{name}.py": "there = True\n"})


def index(root: Path, *names: str):
    """A package index like PyPI's, with these packages."""
    for name in names:
        page = root / name / "index.html"
        file = wheel(page.parent, name)
        page.write_text(f'<a href="{file.name}">{file.name}</a>')


def repository(bare: Path, name: str):
    """A git repository that a plain web server can serve. The project builds itself, without setuptools."""
    tree = bare.parent / f"{name}-tree"
    wheel(tree, name)
    (tree / "pyproject.toml").write_text('[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n')
    (tree / "backend.py").write_text(
        f"import shutil\ndef build_wheel(directory, *_):\n    shutil.copy('{name}-1.0-py3-none-any.whl', directory)\n"
        f"    return '{name}-1.0-py3-none-any.whl'\nbuild_editable = build_wheel\n")

    def git(*words):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", *words], check=True, stdout=subprocess.DEVNULL)

    git("-C", tree, "init", "-q")
    git("-C", tree, "add", "-A")
    git("-C", tree, "commit", "-qm", "x")
    git("clone", "-q", "--bare", tree, bare)
    git("-C", bare, "update-server-info")


def source(directory: Path, name: str, requires: str, backend: str):
    """A source distribution that builds itself, after installing its build requirements."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{name}-1.0.tar.gz"
    built = wheel(directory / "built", name).read_bytes()
    texts = {"PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
             "pyproject.toml": f'[build-system]\nrequires = [{requires}]\nbuild-backend = "backend"\nbackend-path = ["."]\n'.encode(),
             "backend.py": backend.encode(), f"{name}-1.0-py3-none-any.whl": built}
    with tarfile.open(file, "w:gz") as archive:
        for member, content in texts.items():
            info = tarfile.TarInfo(f"{name}-1.0/{member}")
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    (directory / "index.html").write_text(f'<a href="{file.name}">{file.name}</a>')


# The build backend records the command lines of all its ancestors.
BACKEND = """
import os, shutil
def build_wheel(directory, *_):
    with open(os.environ["SEEN"], "ab") as seen:
        pid = os.getpid()
        while pid > 1:
            seen.write(open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\\0", b" ") + b"\\n")
            pid = int(open(f"/proc/{pid}/stat").read().rsplit(")")[1].split()[1])
    shutil.copy("NAME-1.0-py3-none-any.whl", directory)
    return "NAME-1.0-py3-none-any.whl"
"""


def login(name):
    return f"me:{quoted(SECRETS[name])}@"


@pytest.fixture(scope="module")
def server(place, channels):
    root = place / "served"
    index(root / "index", "inindex")
    index(root / "extra", "inextra")
    index(root / "userless", "inuserless")
    index(root / "typed", "intyped")
    for name in ("links", "netrc", "variable"):
        (root / name).mkdir()
        wheel(root / name, f"in{name}")
        (root / name / "index.html").write_text(f'<a href="in{name}-1.0-py3-none-any.whl">x</a>')
    for name in ("signed", "direct"):
        wheel(root, f"in{name}")
    repository(root / "ingit.git", "ingit")
    repository(root / "ineditable.git", "ineditable")
    source(root / "source/insource", "insource", '"inneeded"', BACKEND.replace("NAME", "insource"))
    source(root / "source/inneeded", "inneeded", "", BACKEND.replace("NAME", "inneeded"))
    (root / "main").symlink_to(channels / "main")
    logins = {name: ("me", secret) for name, secret in SECRETS.items()}
    logins["userless"] = (TOKENS["userless"], "")
    guarded = guarded_server.Guarded(root, logins, TOKENS["bearer"], TOKENS["token"], TOKENS["signature"])
    # pip uses the login of a --find-links page only for the page itself.
    for name in ("links", "variable"):
        file = guarded.url(f"login/{name}/{name}/in{name}-1.0-py3-none-any.whl", login(name))
        (root / name / "index.html").write_text(f'<a href="{file}">x</a>')
    yield guarded
    guarded.close()


class Workplace:
    """A user's home, caches and build directory, all of which are searched, and everything that the commands print."""

    def __init__(self, user, work, tool):
        self.user, self.work, self.tool = user, work, tool
        self.own = {}  # files that the user wrote and that may contain secrets
        for name in ("home", "cache", "build", "out"):
            (work / name).mkdir()
            os.chown(work / name, user.uid, user.uid)
        self.environment = {"HOME": str(work / "home"), "CONTAINERIZE_CACHE": str(work / "cache"), "XDG_CONFIG_HOME": None,
                            "PIP_CACHE_DIR": None, "PIP_NO_CACHE_DIR": "1", "PIP_INDEX_URL": None, "PIP_CONFIG_FILE": "/dev/null",
                            "GIT_TERMINAL_PROMPT": "0", "MY_SERVICE_TOKEN": TOKENS["environment"]}
        self.prefix = work / "out/env"
        self.said = b""

    def write(self, name, text, mode=0o644):
        path = self.work / name
        for parent in reversed([one for one in path.parents if self.work in one.parents]):
            parent.mkdir(exist_ok=True)
            os.chown(parent, self.user.uid, self.user.uid)
        self.own[self.user.write(path, text, mode)] = True
        return path

    def run(self, command, *words, code=0, env=None, **more):
        log = self.work / "out" / f"log-{len(list((self.work / 'out').iterdir()))}"
        options = ["--verbose", "--log", log, "--tmpdir", self.work / "build"]
        mark = words.index("--") if "--" in words else len(words)
        done = self.user.run(self.tool, command, *words[:mark], *options, *words[mark:], check=False, text=False, timeout=600,
                             env={**self.environment, **(env or {})}, **more)
        assert done.returncode == code, done.stdout.decode() + done.stderr.decode()
        assert_no_secret("stdout", done.stdout)
        assert_no_secret("stderr", done.stderr)
        self.said = done.stdout + done.stderr
        return done.stderr.decode()

    def new(self, *words, **more):
        return self.run("new", "--prefix", self.prefix, *words, **more)

    def search(self):
        """Searches the content and the name of every file that any program has written."""
        unpacked = self.work / "out/unpacked"
        unpacked.mkdir()
        for number, image in enumerate([path for path in self.work.rglob("*.sqfs") if path.is_file()]):
            subprocess.run(["unsquashfs", "-q", "-n", "-no-xattrs", "-d", unpacked / str(number), image], check=True,
                           stdout=subprocess.DEVNULL)
        # Neither the files of other tests and of this one's own servers, nor the sources of the tests.
        sources = {SOURCE, BUILD, *SOURCE.parents, *BUILD.parents}
        temporary = [path for path in Path("/tmp").iterdir() if not path.name.startswith("containerize-e2e-") and path not in sources]
        files = [path for top in (self.work, *temporary) for path in (top, *top.rglob("*"))]
        assert_no_secret("names", "\n".join(map(str, files)).encode())
        files = [str(path) for path in files if path.is_file() and not path.is_symlink() and path not in self.own]
        with tempfile.NamedTemporaryFile(dir="/var/tmp") as patterns:
            patterns.write(b"\n".join(ALL_FORMS))
            patterns.flush()
            found = subprocess.run(["xargs", "-0", "grep", "-aoHF", "-f", patterns.name, "--"], input="\0".join(files).encode(), capture_output=True)
        # xargs says with 123 that grep found nothing.
        assert files and (found.stdout, found.stderr, found.returncode) == (b"", b"", 123), found
        shutil.rmtree(unpacked)


@pytest.fixture()
def workplace(user, work, tool):
    return Workplace(user, work, tool)


def requirements(server):
    return "\n".join([
        f"--index-url {server.url('login/index/index/', login('index'))}",
        f"--extra-index-url={server.url('login/extra/extra/', login('extra'))}",
        f"--extra-index-url {server.url('login/userless/userless/', TOKENS['userless'] + '@')}",
        f"--find-links {server.url('login/links/links/', login('links'))}",
        f"--find-links {server.url('login/netrc/netrc/', host='localhost')}",
        "--trusted-host localhost",
        "inindex",
        "inextra",
        "inuserless",
        "inlinks",
        "innetrc",
        "invariable",
        f"insigned @ {server.url('signed/insigned-1.0-py3-none-any.whl?sig=' + TOKENS['signature'])}",
        f"indirect @ {server.url('login/direct/indirect-1.0-py3-none-any.whl', login('direct'))}",
        f"ingit @ git+{server.url('login/git/ingit.git', login('git'))}",
        f"-e git+{server.url('login/git/ineditable.git', login('git'))}#egg=ineditable",
    ]) + "\n"


def pip_settings(workplace, server):
    workplace.write("home/.netrc", f"machine localhost login me password {SECRETS['netrc']}\n", 0o600)
    workplace.environment["PIP_FIND_LINKS"] = server.url("login/variable/variable/", login("variable"))


def script(workplace, server):
    """A build script that prints everything it knows."""
    return workplace.write("post.sh", f"""
set -x
ENDPOINT_PASSWORD='{SECRETS["script"]}'
echo "$PIP_FIND_LINKS $MY_SERVICE_TOKEN"
env
echo 'decoded: {SECRETS["index"]}'
cat ~/.netrc {workplace.work}/requirements.txt || true
test -z "$FAIL"
""")


def test_requirements_of_pip(workplace, server):
    pip_settings(workplace, server)
    file = workplace.write("requirements.txt", requirements(server))
    trace = workplace.work / "build/git-trace"
    workplace.new("--installer", "pip", "--post-install", script(workplace, server), file, env={"GIT_TRACE": str(trace), "GIT_TRACE_REDACT": "0"})
    assert f"remote-http origin {server.url('login/git/ingit.git')}" in trace.read_text()
    assert_no_secret("git's command lines", trace.read_bytes())
    assert {"login/index", "login/extra", "login/userless", "login/links", "login/netrc", "login/variable", "login/direct",
            "login/git", "signed"} <= server.given
    assert b"****" in workplace.said and b"decoded: ****" in workplace.said
    workplace.search()
    kept = (workplace.prefix / "share/inputs/requirements.txt").read_text()
    assert f"--index-url http://127.0.0.1:{server.port}/login/index/index/" in kept and "inextra\n" in kept
    assert "?sig=****" in kept
    checked = workplace.user.run(workplace.prefix / "bin/python", "-c", CHECK_RECORDS).stdout
    assert "ingit" in checked and "indirect" in checked


def test_building_again_from_the_copies(workplace, server, user):
    """The copies contain no logins, so pip uses ~/.netrc. With a wrong login there, pip reports a missing package."""
    options = ["--installer", "pip", "--force"]
    line = f"--index-url {server.url('login/index/index/', login('index'))}"
    workplace.new(*options, workplace.write("requirements.txt", f"{line}\ninindex\n"))
    kept = (workplace.prefix / "share/inputs/requirements.txt").read_text()
    again = workplace.write("again.txt", kept)
    netrc = f"machine 127.0.0.1 login me password {SECRETS['extra']}\n"
    workplace.write("home/.netrc", netrc, 0o600)
    said = workplace.new(*options, again, code=1)
    assert f"Check the login for 127.0.0.1:{server.port}, in the index URL or in ~/.netrc" in said
    workplace.write("home/.netrc", netrc.replace(SECRETS["extra"], SECRETS["index"]), 0o600)
    workplace.new(*options, again)


# pip's records of where packages came from still match its lists of files.
CHECK_RECORDS = """
import base64, hashlib, importlib.metadata, json
for one in importlib.metadata.distributions():
    for file in one.files or []:
        if file.name == "direct_url.json":
            content = file.locate().read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            assert file.hash.value == digest and file.size == len(content), file
            print(one.name)
"""


def test_a_build_that_fails(workplace, server):
    pip_settings(workplace, server)
    file = workplace.write("requirements.txt", requirements(server) + "nowhere-to-be-found\n")
    said = workplace.new("--installer", "pip", file, code=1)
    assert "nowhere-to-be-found" in said
    workplace.search()
    file = workplace.write("requirements.txt", f"x @ git+{server.url('login/git/missing.git', login('git'))}\n")
    said = workplace.new("--installer", "pip", file, code=1)
    assert "missing.git" in said and "fatal: " in said
    missing = server.url("signed/missing-1.0-py3-none-any.whl?sig=" + TOKENS["signature"])
    file = workplace.write("requirements.txt", f"x @ {missing}\n")
    workplace.new("--installer", "pip", file, code=1)
    file = workplace.write("requirements.txt", requirements(server))
    assert "the script failed" in workplace.new("--post-install", script(workplace, server), file, env={"FAIL": "1"}, code=1)
    # The message shows the line that cannot be parsed.
    file = workplace.write("requirements.txt", f"--no-such {server.url('x', login('index'))}\n")
    workplace.new(file, code=2)
    file = workplace.write("env.yml", f"channels: [{server.url('x', login('channel'))}\n")
    workplace.new(file, code=2)
    workplace.run("new", f"--index-url={server.url('x', login('typed'))}", code=2)
    workplace.search()


def test_the_log_of_a_failure_is_its_owners(workplace, user, where):
    post = workplace.write("post.sh", "echo what it said; false\n")
    words = [workplace.tool, "new", "--prefix", workplace.prefix, "--tmpdir", workplace.work / "build", "--post-install", post,
             workplace.write("env.yml", where)]
    said = user.run(*words, env=workplace.environment, check=False).stderr
    log = Path(re.search("The full log is (.*)", said).group(1))
    assert "what it said" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600 and log.parent.stat().st_mode & 0o777 == 0o700 and log.stat().st_uid == user.uid
    # Nothing is written to a directory of that name with other permissions.
    shutil.rmtree(log.parent)
    log.parent.mkdir(mode=0o777)
    log.parent.chmod(0o777)
    said = user.run(*words, env=workplace.environment, check=False).stderr
    assert "The full log" not in said and not list(log.parent.iterdir())


def test_updates(workplace, server):
    pip_settings(workplace, server)
    workplace.new("--installer", "pip", workplace.write("requirements.txt", "six==1.16.0\n"))
    typed = server.url("login/typed/typed/", login("typed"))
    workplace.run("update", workplace.prefix, "--", "pip", "install", "--no-cache-dir", "--extra-index-url", typed, "intyped")
    assert "login/typed" in server.given
    command = json.loads((workplace.prefix / "containerize.json").read_text())["build"]["command"]
    assert f"--extra-index-url 'http://****@127.0.0.1:{server.port}/login/typed/typed/' intyped" in command
    workplace.run("update", workplace.prefix, "-r", workplace.write("requirements.txt", requirements(server)))
    workplace.run("update", workplace.prefix, "--", "pip", "install", "-q", "--no-deps", "--force-reinstall",
                  f"insigned @ {server.url('signed/insigned-1.0-py3-none-any.whl?sig=' + TOKENS['signature'])}")
    workplace.run("update", workplace.prefix, "--", "sh", "-c", "exit 3", "--password", SECRETS["word"], code=1)
    states = workplace.user.run(workplace.tool, "log", workplace.prefix).stdout
    assert_no_secret("the list of states", states.encode())
    workplace.run("update", workplace.prefix, "-r", workplace.work / "requirements.txt", "--post-install", script(workplace, server))
    workplace.search()
    workplace.user.run(workplace.tool, "rollback", workplace.prefix)
    workplace.search()


def test_core_dumps(tool, user, small, where, work):
    """A process that has a secret leaves no core dump; programs that it starts keep the user's limit."""
    spec = user.write(work / "env.yml", where)
    post = user.write(work / "post.sh", f"ulimit -c > {work}/script; grep core /proc/$PPID/limits > {work}/build\n")
    with_secret = lambda line: user.run("bash", "-c", f"ulimit -S -c $(ulimit -H -c) && [ $(ulimit -c) != 0 ] && {line}", env={"MY_TOKEN": "s3cr3t-s3cr3t"})  # noqa: E731
    with_secret(f"{tool} new --prefix {work}/env --post-install {post} {spec}")
    # With a limit of 1 the kernel starts no core dump handler; with 0 it would (core(5)).
    assert (work / "build").read_text().split()[4] == "1"
    assert (work / "script").read_text() == with_secret("ulimit -c").stdout
    assert with_secret(f"{tool} run {small} -- bash -c 'ulimit -c'").stdout == with_secret("ulimit -c").stdout


def test_command_lines_of_processes(workplace, where):
    """Any user can read them. containerize's own shows no secret while the program that got it runs."""
    workplace.new(workplace.write("env.yml", where))
    seen = workplace.work / "out/seen"
    workplace.run("update", workplace.prefix, "--", "sh", "-c", f"cat /proc/$PPID/cmdline > {seen}; : $1", "sh", "--password",
                  SECRETS["word"])
    assert b"update" in seen.read_bytes()
    assert_no_secret("the command line", seen.read_bytes())


@pytest.mark.parametrize("way", ["file", "environment", "configuration"])
def test_command_lines_of_what_pip_starts(workplace, server, way):
    """To build a package, pip starts another pip and passes the indexes to it."""
    workplace.write("home/.netrc", f"machine localhost login me password {SECRETS['netrc']}\n", 0o600)
    address = server.url("login/index/source/", login("index"))
    links = f"--find-links {server.url('login/netrc/netrc/', host='localhost')}\n--trusted-host localhost\n"
    given = {"file": f"--index-url {address}\n"}.get(way, "")
    file = workplace.write("requirements.txt", f"{given}{links}insource\ninnetrc\n")
    more = {"environment": {"PIP_EXTRA_INDEX_URL": address, "PIP_NO_INDEX": None},
            "configuration": {"PIP_CONFIG_FILE": str(workplace.write("pip.conf", f"[global]\nindex-url = {address}\n"))}}.get(way, {})
    seen = workplace.work / "out/seen"
    workplace.new("--installer", "pip", file, env={"SEEN": str(seen), **more})
    assert b"inneeded" in seen.read_bytes() and server.url("login/index/source").encode() in seen.read_bytes()
    assert_no_secret("command lines", seen.read_bytes())
    workplace.search()


def environment_file(workplace, server, channel, more=""):
    return workplace.write("env.yml", f"channels:\n  - {channel}\n  - nodefaults\ndependencies:\n  - where\n{more}")


def test_channels_of_conda(workplace, server):
    for channel in (server.url("login/channel/main", login("channel")), server.url(f"t/{TOKENS['token']}/main")):
        workplace.new(environment_file(workplace, server, channel), "--force")
        workplace.search()
    # Logins stored by pixi: for a domain, and in a file that a variable names.
    workplace.write("home/logins.json", json.dumps({"*.localhost": {"BearerToken": TOKENS["bearer"]}}), 0o600)
    workplace.environment["RATTLER_AUTH_FILE"] = str(workplace.work / "home/logins.json")
    workplace.new(environment_file(workplace, server, server.url("bearer/main", host="localhost")), "--force")
    del workplace.environment["RATTLER_AUTH_FILE"]
    workplace.write("home/.rattler/credentials.json", json.dumps(
        {"127.0.0.1": {"BasicHTTP": {"username": "me", "password": SECRETS["private"]}}}), 0o600)
    workplace.new(environment_file(workplace, server, server.url("login/private/main")), "--force")
    workplace.write("home/.condarc", f"channel_alias: {server.url('login/condarc', login('condarc'))}\n")
    workplace.new(environment_file(workplace, server, "main"), "--force")
    workplace.write("home/.netrc", f"machine localhost login me password {SECRETS['netrc']}\n", 0o600)
    workplace.new(environment_file(workplace, server, server.url("login/netrc/main", host="localhost")), "--force")
    assert {"login/channel", "t", "bearer", "login/private", "login/condarc", "login/netrc"} <= server.given
    workplace.search()


def test_channels_that_refuse(workplace, server):
    wrong = server.url("login/channel/main", login("condarc"))
    assert "requires a login" in workplace.new(environment_file(workplace, server, wrong), code=1)
    missing = server.url(f"t/{TOKENS['token']}/no-such-channel")
    workplace.new(environment_file(workplace, server, missing), code=2)
    workplace.search()


def test_pip_within_conda(workplace, server):
    pip_settings(workplace, server)
    lines = "".join(f"    - {json.dumps(line)}\n" for line in requirements(server).splitlines())
    file = environment_file(workplace, server, server.url("login/channel/main", login("channel")),
                            f"  - python\n  - pip\n  - pip:\n{lines}")
    workplace.new(file, "--installer", "pip", "--post-install", script(workplace, server))
    workplace.run("update", workplace.prefix, file)
    workplace.search()
    lock = json.loads((workplace.prefix / "share/containerize.lock").read_text())
    assert any(line.startswith("--index-url http://127.0.0.1:") for line in lock["pip"])


def test_variables_in_requirements(workplace, server):
    """A token in the path of a URL comes from a variable. What is kept names the variable, so the lock can be built again."""
    feed = f"http://127.0.0.1:{server.port}/feed"
    workplace.environment |= {"FEED": TOKENS["token"], "CLONE": f"{feed}/{TOKENS['token']}/ineditable.git",
                              "PIP_VERBOSE": "2"}
    lines = [f"--index-url {feed}/${{FEED}}/index {feed}/${{FEED}}/ignored", "inindex", f"indirect @ {feed}/${{FEED}}/indirect-1.0-py3-none-any.whl",
             "ineditable @ git+${CLONE}"]
    listed = "".join(f"    - {json.dumps(line)}\n" for line in lines)
    file = environment_file(workplace, server, server.url("login/channel/main", login("channel")),
                            f"  - python\n  - pip\n  - pip:\n{listed}")
    words = ["--installer", "pip", "--force"]
    workplace.new(file, *words)
    lock = (workplace.prefix / "share/containerize.lock").read_text()
    kept = json.loads(lock)["pip"]
    assert lines[0] in kept and any(line.startswith(lines[2]) for line in kept) and any(line.startswith(lines[3]) for line in kept), kept
    workplace.search()
    workplace.write("home/.netrc", f"machine 127.0.0.1 login me password {SECRETS['channel']}\n", 0o600)
    workplace.new(workplace.write("again.lock", lock), *words)
    assert json.loads((workplace.prefix / "share/containerize.lock").read_text())["pip"] == kept
    workplace.search()


def test_registry(workplace, user, place):
    layout = Layout(place / "images")
    program = io.BytesIO()
    with tarfile.open(fileobj=program, mode="w") as archive:
        member = tarfile.TarInfo("tool")
        member.mode = 0o755
        archive.addfile(member)
    layout.image("one", [layout.layer(program.getvalue())], HERE)
    htpasswd = place / "htpasswd"
    done = subprocess.run(["htpasswd", "-nbB", "me", SECRETS["private"]], check=True, stdout=subprocess.PIPE)
    htpasswd.write_bytes(done.stdout)
    registry = Registry(place, place / "storage", htpasswd)
    try:
        name = f"127.0.0.1:{registry.port}/test/one:1"
        subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", "--dest-tls-verify=false", "--dest-creds",
                        f"me:{SECRETS['private']}", f"oci:{layout.path}:one", f"docker://{name}"], check=True,
                       stdout=subprocess.DEVNULL)
        auth = base64.b64encode(f"me:{SECRETS['condarc']}".encode()).decode()
        workplace.write("home/.docker/config.json", json.dumps({"auths": {f"127.0.0.1:{registry.port}": {"auth": auth}}}), 0o600)
        words = ["wrap-container", "--prefix", workplace.prefix, f"docker://{name}", "-w", "/tool"]
        workplace.run(*words, code=1)
        auth = base64.b64encode(f"me:{SECRETS['private']}".encode()).decode()
        workplace.write("home/.docker/config.json", json.dumps({"auths": {f"127.0.0.1:{registry.port}": {"auth": auth}}}), 0o600)
        workplace.run(*words)
    finally:
        registry.close()
    workplace.search()


def test_file_size_limit(workplace, user, only_python):
    """A build that hits the limit on file sizes ends with a message that names it."""
    file = workplace.write("python.txt", only_python)
    limit = 2_000_000
    done = user.run("prlimit", f"--fsize={limit}", workplace.tool, "new", "--prefix", workplace.prefix, file, check=False,
                    env={**workplace.environment, "PIP_CONFIG_FILE": None})
    assert done.returncode == 1, done
    assert "File too large" in done.stderr and f"The file size limit of this session is {limit} bytes" in done.stderr
    assert not workplace.prefix.exists()
