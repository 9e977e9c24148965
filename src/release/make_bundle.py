#!/usr/bin/env python3
"""Makes archives and a wheel of an installed tree, and recipes for EasyBuild and Spack.  Usage: make_bundle.py VERSION ARCHITECTURE TREE OUTPUT_DIRECTORY

The same tree gives the same bytes: times come from SOURCE_DATE_EPOCH, else from the last commit."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
EARLIEST = 315532800  # 1980, because zip has no earlier times

# The programs are static and need no glibc at all, so the wheel has the tags of the oldest C libraries that pip knows.
TAGS = {
    "x86_64": "manylinux_2_5_x86_64.manylinux1_x86_64.musllinux_1_1_x86_64",
    "aarch64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
}

# Installers cannot make links, so a command that is a link becomes a script that starts its target under its own name.
LINK = """#!python
import os
import sys

os.execv(os.path.join(os.path.dirname(os.path.realpath(__file__)), "{target}"), sys.argv)
"""


def build_time() -> int:
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if not given:
        commit = subprocess.run(["git", "-C", SOURCE, "log", "-1", "--format=%ct"], capture_output=True, text=True)
        given = commit.stdout.strip()
    return max(int(given or 0), EARLIEST)


def make_archives(name: str, tree: Path, output: Path, made: int) -> None:
    """The second one is for machines without zstd."""
    unfinished = output / "bundle.tar.new"
    subprocess.run(["tar", "--create", "--file", unfinished, "--format=posix", "--pax-option=delete=atime,delete=ctime",
                    "--sort=name", f"--mtime=@{made}", "--owner=root:0", "--group=root:0", "--mode=u+rwX,go+rX,go-w",
                    f"--transform=flags=r;s,^[.],{name},", "--directory", tree, "."], check=True)
    subprocess.run(["zstd", "--quiet", "--force", "-19", "--threads=0", unfinished, "-o", output / f"{name}.tar.zst"], check=True)
    with open(output / f"{name}.tar.gz", "wb") as packed:
        subprocess.run(["gzip", "--no-name", "-9", "--stdout", unfinished], stdout=packed, check=True)
    unfinished.unlink()


class Wheel:
    """Writes a wheel: a zip archive with its files' digests."""

    def __init__(self, path: Path, info: str, made: int):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self.info, self.made, self.record = info, time.gmtime(made)[:6], []

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        entry = zipfile.ZipInfo(name, self.made)
        entry.external_attr = (0o100000 | mode) << 16
        entry.create_system = 3  # Unix, else the mode means nothing
        self.zip.writestr(entry, content, zipfile.ZIP_DEFLATED, 9)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append(f"{name},sha256={digest},{len(content)}")

    def close(self) -> None:
        record = f"{self.info}/RECORD"
        self.add(record, "\n".join([*self.record, f"{record},,", ""]).encode())
        self.zip.close()


def make_wheel(version: str, architecture: str, tree: Path, output: Path, made: int) -> None:
    info, data = f"containerize-{version}.dist-info", f"containerize-{version}.data"
    tag = f"py3-none-{TAGS[architecture]}"
    unfinished = output / "wheel.new"
    wheel = Wheel(unfinished, info, made)
    for path in sorted(path for path in tree.rglob("*") if path.is_symlink() or path.is_file()):
        name = path.relative_to(tree)
        # Installers put scripts on PATH, and data beside them as they are in the tree.
        place = f"{data}/scripts/{name.name}" if name.parts[0] == "bin" else f"{data}/data/{name}"
        if path.is_symlink():
            wheel.add(place, LINK.format(target=os.readlink(path)).encode(), 0o755)
        else:
            wheel.add(place, path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)
    wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: containerize\nRoot-Is-Purelib: false\n{wheel_tags(tag)}".encode())
    wheel.add(f"{info}/METADATA", metadata(version).encode())
    wheel.add(f"{info}/licenses/LICENSE", (SOURCE / "LICENSE").read_bytes())
    wheel.close()
    unfinished.replace(output / f"containerize-{version}-{tag}.whl")


def make_recipes(version: str, output: Path) -> None:
    """The easyconfig and the Spack repository name the archives of all architectures that are there."""
    archives = sorted(output.glob(f"containerize-{version}-linux-*.tar.gz"))
    checksums = "\n".join(f"    '{file.name}': '{hashlib.sha256(file.read_bytes()).hexdigest()}'," for file in archives)
    package = output / "spack_repo/packages/containerize/package.py"
    package.parent.mkdir(parents=True, exist_ok=True)
    (package.parents[2] / "repo.yaml").write_text("repo:\n  namespace: containerize\n")
    for template, recipe in (("easyconfig.eb.in", output / f"containerize-{version}.eb"), ("spack_package.py.in", package)):
        text = Path(__file__).with_name(template).read_text()
        recipe.write_text(text.replace("@version@", version).replace("@checksums@", checksums))


def wheel_tags(tag: str) -> str:
    python, abi, platforms = tag.split("-")
    return "".join(f"Tag: {python}-{abi}-{platform}\n" for platform in platforms.split("."))


def metadata(version: str) -> str:
    return f"""Metadata-Version: 2.1
Name: containerize
Version: {version}
Summary: Turns a conda or pip environment into one image file, with wrappers that run its programs as if it were a directory
License: Apache-2.0
Classifier: Operating System :: POSIX :: Linux
Description-Content-Type: text/markdown

{(SOURCE / "README.md").read_text()}"""


def main() -> None:
    version, architecture, tree, output = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
    made = build_time()
    make_archives(f"containerize-{version}-linux-{architecture}", tree, output, made)
    make_wheel(version, architecture, tree, output, made)
    make_recipes(version, output)
    shutil.rmtree(tree)


if __name__ == "__main__":
    main()
