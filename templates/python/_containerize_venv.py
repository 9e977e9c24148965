"""Makes `python -m venv V` give a venv on top of this installation.

An installation is a venv itself, and Python makes a venv from a venv by going back to the interpreter below: the new
one would neither start inside the image nor see the packages in it. So its links are pointed at the installation, and
the installation's packages come after its own.
"""

import os
import sys
import venv

PREFIX = sys.prefix
LIBRARY = os.path.join("lib", "python%d.%d" % sys.version_info[:2], "site-packages")

_setup_python = venv.EnvBuilder.setup_python
_create_configuration = venv.EnvBuilder.create_configuration


def setup_python(self, context):
    self.symlinks = True  # a copy of the interpreter would run outside the image
    _setup_python(self, context)
    for name in os.listdir(context.bin_path):
        path = os.path.join(context.bin_path, name)
        if name.startswith("python") and os.path.islink(path) and os.path.isabs(os.readlink(path)):
            os.unlink(path)
            os.symlink(os.path.join(PREFIX, "bin", "python"), path)


def create_configuration(self, context):
    _create_configuration(self, context)
    with open(os.path.join(context.env_dir, LIBRARY, "_containerize_base.pth"), "w", encoding="utf-8") as file:
        file.write("import site; site.addsitedir(%r)\n" % os.path.join(PREFIX, LIBRARY))


venv.EnvBuilder.setup_python = setup_python
venv.EnvBuilder.create_configuration = create_configuration
