#!/usr/bin/python3
"""The tests' own conda channels: real packages in conda's formats, made from this machine's Python and PyPI's wheels.

Usage: conda_channel.py DIRECTORY      makes channels-DIGEST/{main,hostile,wheels} in DIRECTORY
"""

import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

import zstandard

from common import made_once

PLACEHOLDER = "/opt/" + "placehold_" * 25  # 255 bytes, like conda-build's placeholder
assert len(PLACEHOLDER) == 255
TIME = 1_700_000_000


class Link(str):
    """Target of a symbolic link."""


class HardLink(str):
    """Another path of the package, to which this one is hard-linked."""


class Package:
    def __init__(self, name, version, build="0", number=0, depends=(), **more):
        self.index = {"name": name, "version": version, "build": build, "build_number": number,
                      "depends": list(depends), "timestamp": TIME * 1000, "license": "test", **more}
        self.index.setdefault("subdir", "noarch" if "noarch" in self.index else "linux-64")
        self.files = {}  # path -> (content or Link or None for a directory, mode)
        self.prefixed = {}  # path -> "text" or "binary"
        self.entry_points = []
        self.wrong = {}  # path -> a wrong sha256 for info/paths.json

    @property
    def stem(self):
        return "{name}-{version}-{build}".format(**self.index)

    def add(self, path, content, mode=0o644, prefixed=None):
        if isinstance(content, str) and not isinstance(content, (Link, HardLink)):
            content = content.encode()
        self.files[path] = (content, mode)
        if prefixed:
            self.prefixed[path] = prefixed
        return self

    def tree(self, source, target, skip=lambda path: False):
        for path in sorted(Path(source).rglob("*")):
            name = f"{target}/{path.relative_to(source)}" if target else str(path.relative_to(source))
            if skip(str(path.relative_to(source))):
                continue
            if path.is_symlink():
                link = os.readlink(path)
                if link.startswith("/"):
                    self.add(name, path.read_bytes(), 0o644)
                else:
                    self.add(name, Link(link))
            elif path.is_file():
                self.add(name, path.read_bytes(), path.stat().st_mode & 0o777)
        return self

    def wheel(self, file):
        """Adds the content of a wheel, at the paths where a conda package has it."""
        pure = "noarch" in self.index
        base = "site-packages" if pure else "lib/python3.11/site-packages"
        with zipfile.ZipFile(file) as archive:
            for info in archive.infolist():
                if info.is_dir():
                    continue
                content = archive.read(info)
                path = info.filename
                if ".data/scripts/" in path:
                    name = path.split(".data/scripts/")[1]
                    if content.startswith(b"#!python"):
                        content = f"#!{PLACEHOLDER}/bin/python".encode() + content[8:]
                    self.add(f"python-scripts/{name}" if pure else f"bin/{name}", content, 0o755, "text")
                elif ".data/" not in path:
                    self.add(f"{base}/{path}", content)
                    if path.endswith("entry_points.txt"):
                        self._entry_points(content.decode())
        return self

    def _entry_points(self, text):
        section = None
        for line in text.splitlines():
            line = line.strip()
            if line.startswith("["):
                section = line
            elif section == "[console_scripts]" and "=" in line:
                self.entry_points.append(line.split("[")[0].strip())

    def byte_code(self):
        """Adds byte-code for all modules, as packages for one version of Python have it."""
        with tempfile.TemporaryDirectory() as work:
            for path, (content, _) in self.files.items():
                if path.endswith(".py") and isinstance(content, bytes):
                    file = Path(work) / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content)
                    os.utime(file, (TIME, TIME))
            # Some modules are for other versions of Python and cannot be compiled.
            subprocess.run([sys.executable, "-m", "compileall", "-q", "-j0", "-s", work, "-p", PLACEHOLDER, work], stdout=subprocess.DEVNULL)
            return self.tree(work, "", lambda path: not path.endswith(".pyc"))

    def paths(self):
        listed = []
        for path, (content, _) in self.files.items():
            entry = {"_path": path}
            if content is None:
                entry["path_type"] = "directory"
            elif isinstance(content, Link):
                entry["path_type"] = "softlink"
            else:
                while isinstance(content, HardLink):
                    content = self.files[content][0]
                digest = self.wrong.get(path) or hashlib.sha256(content).hexdigest()
                entry.update(path_type="hardlink", sha256=digest, size_in_bytes=len(content))
            if path in self.prefixed:
                entry.update(prefix_placeholder=PLACEHOLDER, file_mode=self.prefixed[path])
            listed.append(entry)
        return {"paths": listed, "paths_version": 1}

    def info(self):
        files = {"info/index.json": self.index, "info/paths.json": self.paths()}
        if self.index.get("noarch") == "python":
            files["info/link.json"] = {"noarch": {"type": "python", "entry_points": self.entry_points},
                                       "package_metadata_version": 1}
        return {path: (json.dumps(data, indent=1).encode(), 0o644) for path, data in files.items()}

    @staticmethod
    def tar(files, extra=()):
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for path, (content, mode) in files.items():
                member = tarfile.TarInfo(path)
                member.mode, member.mtime = mode, TIME
                if content is None:
                    member.type = tarfile.DIRTYPE
                    archive.addfile(member)
                elif isinstance(content, Link):
                    member.type, member.linkname = tarfile.SYMTYPE, str(content)
                    archive.addfile(member)
                elif isinstance(content, HardLink):
                    member.type, member.linkname = tarfile.LNKTYPE, str(content)
                    archive.addfile(member)
                else:
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
            for member, content in extra:
                archive.addfile(member, io.BytesIO(content))
        return buffer.getvalue()

    def write(self, channel, form="conda", extra=()):
        directory = Path(channel) / self.index["subdir"]
        directory.mkdir(parents=True, exist_ok=True)
        if form == "conda":
            compress = zstandard.ZstdCompressor(level=3).compress
            file = directory / f"{self.stem}.conda"
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr("metadata.json", '{"conda_pkg_format_version": 2}')
                archive.writestr(f"pkg-{self.stem}.tar.zst", compress(self.tar(self.files, extra)))
                archive.writestr(f"info-{self.stem}.tar.zst", compress(self.tar(self.info())))
        else:
            import bz2

            file = directory / f"{self.stem}.tar.bz2"
            file.write_bytes(bz2.compress(self.tar({**self.files, **self.info()}, extra)))
        return file


def index(channel, subdirs=("linux-64", "noarch")):
    """Writes repodata.json for the packages of a channel, in all its compressed forms."""
    import bz2

    for subdir in subdirs:
        directory = Path(channel) / subdir
        directory.mkdir(parents=True, exist_ok=True)
        data = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": {}, "repodata_version": 1}
        for file in sorted(directory.iterdir()):
            if file.name.endswith(".conda"):
                with zipfile.ZipFile(file) as archive:
                    member = next(name for name in archive.namelist() if name.startswith("info-"))
                    raw = zstandard.ZstdDecompressor().decompressobj().decompress(archive.read(member))
                key = "packages.conda"
            elif file.name.endswith(".tar.bz2"):
                raw = bz2.decompress(file.read_bytes())
                key = "packages"
            else:
                continue
            with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
                entry = json.load(archive.extractfile("info/index.json"))
            content = file.read_bytes()
            entry.update(md5=hashlib.md5(content).hexdigest(), sha256=hashlib.sha256(content).hexdigest(), size=len(content))
            data[key][file.name] = entry
        text = json.dumps(data).encode()
        (directory / "repodata.json").write_bytes(text)
        (directory / "repodata.json.zst").write_bytes(zstandard.ZstdCompressor().compress(text))
        (directory / "repodata.json.bz2").write_bytes(bz2.compress(text))
        write_shards(directory, data)


def msgpack(value):
    """Encodes JSON's types, bytes and numbers that are not negative."""
    def sized(first, size):
        return bytes([first + (2 if size >= 1 << 16 else 1 if size >= 256 else 0)]) + size.to_bytes(4 if size >= 1 << 16 else 2 if size >= 256 else 1, "big")

    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        return b"\xcf" + value.to_bytes(8, "big")
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        return sized(0xd9, len(value.encode())) + value.encode()
    if isinstance(value, bytes):
        return sized(0xc4, len(value)) + value
    if isinstance(value, (list, tuple)):
        return b"\xdd" + len(value).to_bytes(4, "big") + b"".join(map(msgpack, value))
    return b"\xdf" + len(value).to_bytes(4, "big") + b"".join(msgpack(key) + msgpack(one) for key, one in value.items())


def write_shards(directory, data):
    """Writes the shards of a package list, with checksums as bytes, and their index (CEP 16)."""
    shards = {}
    for key in ("packages", "packages.conda"):
        for file, entry in data[key].items():
            entry = {name: bytes.fromhex(value) if name in ("sha256", "md5") else value for name, value in entry.items()}
            shards.setdefault(entry["name"], {"packages": {}, "packages.conda": {}, "removed": []})[key][file] = entry
    index = {"info": {"subdir": directory.name, "base_url": "", "shards_base_url": "./"}, "version": 1, "shards": {}}
    for name, shard in shards.items():
        packed = zstandard.ZstdCompressor().compress(msgpack(shard))
        digest = hashlib.sha256(packed)
        index["shards"][name] = digest.digest()
        (directory / f"{digest.hexdigest()}.msgpack.zst").write_bytes(packed)
    (directory / "repodata_shards.msgpack.zst").write_bytes(zstandard.ZstdCompressor().compress(msgpack(index)))


def python_package(root=Path("/"), **more):
    """Debian's Python, changed to look for site-packages relative to its own location. `more` goes to Package."""
    version = "%d.%d.%d" % sys.version_info[:3]
    assert sys.executable == "/usr/bin/python3" or sys.executable.startswith("/usr/bin/python3"), sys.executable
    assert sys.version_info[:2] == (3, 11), "Debian 12's Python is 3.11"
    package = Package("python", version, "h1_0_cpython", **more)
    package.add("bin/python3.11", (root / "usr/bin/python3.11").read_bytes(), 0o755)
    for name in ("python", "python3"):
        package.add(f"bin/{name}", Link("python3.11"))
    skip = lambda path: "__pycache__" in path or path in ("EXTERNALLY-MANAGED", "sitecustomize.py") or path.startswith(("test/", "idlelib/", "lib2to3/"))
    package.tree(root / "usr/lib/python3.11", "lib/python3.11", skip)

    def patch(path, *changes):
        text = package.files[path][0].decode()
        for old, new in changes:
            assert old in text, (path, old)
            text = text.replace(old, new)
        package.add(path, text)

    patch("lib/python3.11/sysconfig.py", ("'DEB_PYTHON_INSTALL_LAYOUT', 'posix_local'", "'DEB_PYTHON_INSTALL_LAYOUT', 'posix_prefix'"),
          ("prefix_scheme = 'posix_local'", "prefix_scheme = 'posix_prefix'"))
    # Its site module is frozen into the program and only knows dist-packages.
    package.add("lib/python3.11/dist-packages/site-packages.pth",
                "import site, sys; site.addsitedir(sys.prefix + '/lib/python3.11/site-packages')\n")
    package.add("lib/python3.11/site-packages/README.txt", "packages")
    package.add("lib/python3.11/where.txt", f"built for {PLACEHOLDER}\n", prefixed="text")
    return package.byte_code()


def c_program(*compiler, **more):
    """A program with the prefix in its binary and in a text file. `more` goes to Package."""
    with tempfile.TemporaryDirectory() as work:
        source = Path(work) / "where.c"
        source.write_text('#include <stdio.h>\nconst char where[] = "%s/share/where";\n'
                          'const char two[] = "%s/a:%s/b";\n'
                          "int main(void) { printf(\"%%s\\n%%s\\n\", where, two); return 0; }\n" % ((PLACEHOLDER,) * 3))
        subprocess.run([*compiler, "-O0", "-o", f"{work}/where", str(source)], check=True)
        program = (Path(work) / "where").read_bytes()
    package = Package("where", "1.0", depends=["__glibc >=2.17"], **more)
    package.add("bin/where", program, 0o755, "binary")
    package.add("share/where", f"prefix={PLACEHOLDER}\nlib={PLACEHOLDER}/lib\n", prefixed="text")
    package.add("bin/where-script", f"#!{PLACEHOLDER}/bin/python -E\nimport sys\nprint(sys.prefix)\n", 0o755, "text")
    return package


def wheels(directory):
    directory.mkdir()
    wanted = ["numpy==1.26.4", "pip==24.0", "setuptools==68.2.2", "wheel==0.42.0", "requests==2.31.0", "certifi==2024.2.2", "idna==3.7",
              "urllib3==2.2.1", "charset-normalizer==3.3.2", "pygments==2.17.2"]
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:", "-d", str(directory), *wanted],
                   check=True)
    return {file.name.split("-")[0].lower().replace("_", "-"): file for file in directory.glob("*.whl")}


def main_channel(channel, files):
    python_package().write(channel)
    for name, needs in {"pip": ["setuptools", "wheel"], "setuptools": [], "wheel": [], "certifi": [], "idna": [], "urllib3": [],
                        "requests": ["certifi", "charset-normalizer", "idna", "urllib3"], "pygments": []}.items():
        version = files[name].name.split("-")[1]
        Package(name, version, "pyh_0", depends=["python >=3.8", *needs], noarch="python").wheel(files[name]).write(channel)
    for name in ("numpy", "charset-normalizer"):
        version = files[name].name.split("-")[1]
        Package(name, version, "py311_0", depends=["python >=3.11,<3.12", "__glibc >=2.17"]).wheel(files[name]).byte_code().write(channel)
    for version in ("1.24.0", "1.25.0"):
        Package("numpy", version, "py311_0", depends=["python >=3.11,<3.12"]).add(
            "lib/python3.11/site-packages/numpy/__init__.py", f"__version__ = '{version}'\n").write(channel)
    c_program("gcc").write(channel)

    # Variants, conflicts, features.
    for build, number, needs in (("cuda", 1, ["__cuda >=12"]), ("cpu", 0, [])):
        Package("torchlike", "2.0", build, number, depends=needs).add("share/torchlike", build).write(channel)
    Package("vision", "0.15", depends=["torchlike 1.*"]).add("share/vision", "x").write(channel)
    Package("torchlike", "1.13", "cpu").add("share/torchlike", "old").write(channel)
    Package("picky", "1.0", constrains=["torchlike <2"]).add("share/picky", "x").write(channel)

    # Activation scripts.
    active = Package("active", "1.0")
    active.add("etc/conda/activate.d/a-static.sh",
               'if [ -n "$DATA_HOME" ]; then export _CONDA_SET_DATA_HOME="$DATA_HOME"; fi\nexport DATA_HOME="$CONDA_PREFIX/share/data"\n'
               'export ACTIVE_PATH="$CONDA_PREFIX/x${ACTIVE_PATH:+:$ACTIVE_PATH}"\n')
    active.add("etc/conda/activate.d/b-dynamic.sh", 'if [ -n "$JOB_KIND" ]; then export JOB_MODE="for $JOB_KIND"; else export JOB_MODE=none; fi\n')
    active.add("etc/conda/env_vars.d/active.json", json.dumps({"FROM_JSON": "yes"}))
    active.write(channel)
    Package("active-broken", "1.0").add("etc/conda/activate.d/broken.sh", "exit 3\n").write(channel)

    # Link scripts.
    linked = Package("linked", "1.0")
    linked.add("bin/.linked-post-link.sh", 'echo "made by $PKG_NAME $PKG_VERSION" > "$PREFIX/share/linked.txt"\necho "Thank you for $PKG_NAME" >> "$PREFIX/.messages.txt"\n', 0o755)
    linked.add("share/linked/keep", "x")
    linked.write(channel)
    Package("linked-broken", "1.0").add("bin/.linked-broken-post-link.sh", "echo no luck today >&2\nexit 7\n", 0o755).write(channel)

    # Files of all types.
    odd = Package("odd", "1.0")
    odd.add("share/odd/a name with blanks", "1").add("share/odd/ü", "2").add("share/odd/link", Link("ü")).add("share/odd/dangling", Link("nowhere"))
    odd.add("share/odd/empty", None).add("share/odd/up", Link("../../share/odd")).add("share/odd/nothing", "")
    odd.write(channel, "tar.bz2")
    twins = Package("twins", "1.0").add("share/twin", f"twins of {PLACEHOLDER}\n", prefixed="text")
    twins.add("share/twin-b", HardLink("share/twin"), prefixed="text").add("share/twin-c", HardLink("share/twin-b"), prefixed="text").write(channel)
    Package("instead", "1.0", depends=["twins"]).add("share/twin", "instead\n").write(channel)
    Package("clash-a", "1.0").add("share/clash", "a").write(channel)
    Package("clash-b", "1.0", depends=["clash-a"]).add("share/clash", "b").write(channel)


def hostile_channel(channel):
    def member(name, kind=tarfile.REGTYPE, link="", size=0, mode=0o644):
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size, info.mode = kind, link, size, mode
        return info

    cases = {
        "absolute": (member("/etc/evil", size=1), b"x"),
        "climbing": (member("share/../../evil", size=1), b"x"),
        "hardout": (member("share/out", tarfile.LNKTYPE, "../../etc/passwd"), b""),
        "device": (member("share/null", tarfile.CHRTYPE), b""),
    }
    for name, extra in cases.items():
        package = Package(name, "1.0").add("share/" + name, "x").add("share/d/e/up", Link("../.."))
        package.write(channel, extra=[extra])
    for name, target in (("linkout", "../../../etc/passwd"), ("linkchained", "d/e/up/../../../etc/passwd"), ("linkabsolute", "/etc/passwd")):
        Package(name, "1.0").add("share/d/e/up", Link("../..")).add("share/out", Link(target)).write(channel)
    lying = Package("lying", "1.0").add("share/lying", "x")
    lying.wrong["share/lying"] = "0" * 64
    lying.write(channel)
    differing = Package("differing", "1.0").add("share/a", "x").add("share/b", HardLink("share/a"))
    differing.wrong["share/b"] = "0" * 64
    differing.write(channel)
    meta = Package("meta", "1.0").add("conda-meta/history", "mine").add("conda-meta/frozen", "{}\n")
    meta.write(channel)
    cut = Package("cut", "1.0").add("share/cut", os.urandom(100_000)).write(channel)
    cut.write_bytes(cut.read_bytes()[:50_000])
    corrupt = Package("corrupt", "1.0").add("share/corrupt", "x").write(channel)
    # index() cannot read the truncated package, so its entry is written by hand.
    whole = cut.read_bytes()
    cut.unlink()
    index(channel)
    cut.write_bytes(whole)
    listed = Path(channel) / "linux-64/repodata.json"
    data = json.loads(listed.read_text())
    data["packages.conda"][cut.name] = {**Package("cut", "1.0").index, "sha256": hashlib.sha256(whole).hexdigest(), "size": len(whole)}
    corrupt.write_bytes(corrupt.read_bytes()[:-1] + b"!")
    listed.write_text(json.dumps(data))
    for form in (".zst", ".bz2"):
        Path(f"{listed}{form}").unlink()
    write_shards(listed.parent, data)


def make(directory):
    """Makes the channels unless they exist. A digest of this file is part of their name."""

    def channels(place):
        place.mkdir(mode=0o755)
        main_channel(place / "main", wheels(place / "wheels"))
        index(place / "main")
        hostile_channel(place / "hostile")

    directory.mkdir(exist_ok=True)
    return made_once(directory / f"channels-{hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]}", channels)


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
