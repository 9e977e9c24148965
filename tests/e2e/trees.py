"""What is at an installation's prefix, and how what is linked may differ from what pip installs."""

import json
from collections import Counter

# Prints {path: [kind and permissions, content]} of what is at the prefix. Where the content contains the prefix, that is replaced.
LIST = r"""
import base64, csv, hashlib, json, marshal, os, re, stat, sys, types

SITE_PACKAGES = next(path for path in sys.path if path.endswith("/site-packages"))
# The words that the script of an entry point has, whoever wrote it.
SCRIPT = re.compile(
    rb"(?:#!(?P<python>\S+)|#!/bin/sh\n'''exec' (?P<quoted>.*) \"\$0\" \"\$@\"\n' ''')\n"
    rb"(?:# -\*- coding: utf-8 -\*-\n)?(?:import re\n)?import sys\n\n?from (?P<module>\S+) import (?P<name>\S+)\n\n?"
    rb"if __name__ == ['\"]__main__['\"]:\n(?:    (?:if |    )?sys\.argv\[0\].*\n)+    sys\.exit\((?P<function>\S+)\(\)\)\n")


def of_code(value):
    # The path of the source is not compared, because Python replaces it at import.
    if isinstance(value, types.CodeType):
        return [of_code(getattr(value, name)) for name in dir(value) if name.startswith("co_") and name not in ("co_filename", "co_lines", "co_positions", "co_lnotab")]
    if isinstance(value, tuple):
        return [of_code(one) for one in value]
    if isinstance(value, frozenset):
        return sorted(repr(of_code(one)) for one in value)
    return repr(value)


def byte_code(content):
    try:
        return "byte-code " + hashlib.sha256(repr(of_code(marshal.loads(content[16:]))).encode()).hexdigest()
    except (EOFError, ValueError, TypeError):
        return "no byte-code " + hashlib.sha256(content).hexdigest()


def script(path):
    with open(path, "rb") as file:
        found = SCRIPT.fullmatch(file.read(20000))
    return found and {name: value.decode().replace(sys.prefix, "PREFIX") for name, value in found.groupdict().items() if value}


def rows(record):
    # RECORD's, with a word instead of a digest and size that are right: these of what contains the prefix depend on it.
    told = []
    for line in record.split("\n"):
        path, *more = next(csv.reader([line]), None) or [""]
        file = os.path.join(SITE_PACKAGES, path)
        if more and more[0] and os.path.isfile(file):
            with open(file, "rb") as opened:
                text = opened.read()
            right = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("=")
            if more == ["sha256=" + right, str(len(text))]:
                line = f"{path} as it is{line[len(line.rstrip()):]}"
            elif os.path.dirname(os.path.normpath(file)) == sys.prefix + "/bin" and script(file):
                line = f"{path} of another package{line[len(line.rstrip()):]}"
        told.append(named(line))
    return sorted(told)


def named(path):
    # In the spelling that is the same for all of a project's names.
    return re.sub("(include/(?:site/)?python3[^/]*/)([^/]+)", lambda found: found[1] + re.sub("[-_.]+", "-", found[2]).lower(), path)


def content(path):
    name = os.path.basename(path)
    if os.path.islink(path):
        return os.readlink(path)
    if os.path.dirname(path) == sys.prefix + "/bin" and (found := script(path)):
        return found
    with open(path, "rb") as file:
        text = file.read()
    if name.endswith(".pyc") and os.path.basename(os.path.dirname(path)) == "__pycache__":
        return byte_code(text)
    if path.startswith(SITE_PACKAGES) and name == "RECORD":
        return rows(text.decode())
    if name == "direct_url.json":
        # Not whether it has the archive's checksum.
        return {key: value if key != "archive_info" else "" for key, value in json.loads(text).items()}
    return hashlib.sha256(text.replace(sys.prefix.encode(), b"PREFIX")).hexdigest()


tree = {}
for top, directories, files in os.walk(os.fsencode(sys.prefix)):
    for name in directories + files:
        path = os.fsdecode(os.path.join(top, name))
        mode = os.lstat(path).st_mode
        tree[named(os.path.relpath(path, sys.prefix))] = [stat.filemode(mode), "" if stat.S_ISDIR(mode) else content(path)]
print(json.dumps(tree))
"""


def tree_of(user, prefix):
    return json.loads(user.run(f"{prefix}/bin/python", "-c", LIST, env={"PYTHONHASHSEED": "0"}).stdout)


def differences(linked, by_pip):
    """The paths at which two trees differ, with both contents, except for what docs/reference/requirements.md names: INSTALLER, and what
    LIST does not tell (the words of entry points' scripts, how the directory of headers spells the project's name, checksums in
    direct_url.json)."""
    found = {}
    for path in linked.keys() | by_pip.keys():
        ours, theirs = linked.get(path), by_pip.get(path)
        if ours and theirs and path.endswith(".dist-info/INSTALLER"):
            ours, theirs = ours[0], theirs[0]
        if ours and theirs and path.endswith(".dist-info/RECORD") and ours != theirs:
            ours, theirs = (sorted((Counter(one[1]) - Counter(other[1])).elements()) for one, other in ((ours, theirs), (theirs, ours)))
        if ours != theirs:
            found[path] = {"linked": ours, "by pip": theirs}
    return found
