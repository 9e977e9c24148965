"""An installation, with the operations that several test files need."""

import hashlib
import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path


class Installation:
    def __init__(self, user, tool, prefix, env=None):
        self.user, self.tool, self.prefix, self.env = user, tool, prefix, env or {}

    def call(self, *argv, check=True, **more):
        return self.user.run(str(self.tool), *argv, check=check, env=self.env, timeout=600, **more)

    def new(self, spec, *options):
        return self.call("new", "--prefix", self.prefix, *options, spec)

    def update(self, *options, **more):
        return self.call("update", self.prefix, *options, **more)

    def log(self):
        return json.loads(self.call("log", self.prefix, "--json").stdout)

    def current(self):
        return next(state["state"] for state in self.log() if state["current"])

    def python(self, code, **more):
        return self.user.run(self.prefix / "bin/python", "-c", code, **more).stdout.strip()

    def has(self, module):
        return self.user.run(self.prefix / "bin/python", "-c", f"import {module}", check=False).returncode == 0

    def commands(self):
        return {path.name for path in (self.prefix / "bin").iterdir()}

    def files(self):
        return sorted(str(path.relative_to(self.prefix)) for path in self.prefix.rglob("*") if not path.is_dir() or path.is_symlink())

    def manifest(self):
        return json.loads((self.prefix / "containerize.json").read_text())

    def restore(self, backup):
        """Puts a backup copy in the place of the installation."""
        shutil.rmtree(self.prefix)
        shutil.copytree(backup, self.prefix, symlinks=True)
        for path in [self.prefix, *self.prefix.rglob("*")]:
            os.chown(path, self.user.uid, self.user.uid, follow_symlinks=False)

    def images(self):
        """The image files of all states. Checks that their digests match the manifests. A state without a manifest of its own does not
        count, or is the current one."""
        files = set()
        for state in [self.prefix / "containerize.json", *self.prefix.glob("states/*/containerize.json")]:
            manifest = json.loads(state.read_text())
            for image in [manifest["image"], *manifest["layers"]]:
                assert hashlib.sha256((self.prefix / image["file"]).read_bytes()).hexdigest() == image["sha256"]
                files.add(image["file"])
        return files


@contextmanager
def mounted_in_memory(place: Path, options="mode=1777"):
    """A filesystem that is empty at first. Only root can mount it."""
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def staging_directories(user) -> list[str]:
    """Staging directories of the test user's builds on the local disk."""
    return [path.name for path in Path("/tmp").glob(f"containerize-build-{user.uid}-*") if path.is_dir()]
