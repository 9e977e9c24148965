"""Makes `python -m venv V` create a venv on top of this installation.

An installation is itself a venv, and for a venv of a venv Python uses the base interpreter. Such a venv would neither
start inside the image nor see the packages in it. So its links are changed to point to the installation, and
the installation's packages are added after its own.
"""

import os
import sys
import venv

PREFIX = sys.prefix
LIBRARY = os.path.relpath(os.path.dirname(os.path.abspath(__file__)), PREFIX)

_setup_python = venv.EnvBuilder.setup_python
_create = venv.EnvBuilder.create


def setup_python(self, context):
    self.symlinks = True  # a copy of the interpreter would run outside the image
    _setup_python(self, context)
    for name in os.listdir(context.bin_path):
        path = os.path.join(context.bin_path, name)
        if name.startswith("python") and os.path.islink(path) and os.path.isabs(os.readlink(path)):
            os.unlink(path)
            os.symlink(os.path.join(PREFIX, "bin", "python"), path)


def create(self, env_dir):
    _create(self, env_dir)
    # Last, because ensurepip would consider the installation's pip as already installed.
    with open(os.path.join(env_dir, LIBRARY, "_containerize_base.pth"), "w", encoding="utf-8") as file:
        file.write("import site; site.addsitedir(%r)\n" % os.path.join(PREFIX, LIBRARY))


venv.EnvBuilder.setup_python = setup_python
venv.EnvBuilder.create = create
