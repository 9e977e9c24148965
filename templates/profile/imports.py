# Imports every package of this interpreter, so that what they read is recorded. A package whose import fails, for example because there is no device or
# display, is skipped. One process imports as many as possible, because packages share most of their dependencies; after a crash or a hang a new process
# continues.
import os
import select
import signal
import sys
import time

SECONDS_IN_ALL = 120
SECONDS_FOR_ONE = 30
INSTALLERS = {"pip", "setuptools", "wheel", "pkg_resources", "uv"}


def plain(name):
    return name.lower().replace("-", "_").replace(".", "_")


def names_of(distribution):
    listed = (distribution.read_text("top_level.txt") or "").split()
    if listed:
        return listed
    names = set()
    for path in distribution.files or []:
        if len(path.parts) == 1 and path.suffix == ".py":
            names.add(path.stem)
        elif len(path.parts) == 2 and path.name == "__init__.py":
            names.add(path.parts[0])
    return sorted(names)


def packages():
    """Packages on which no other one depends come first, because they are what the user asked for."""
    try:
        from importlib import metadata
    except ImportError:  # an old interpreter: only its start is recorded
        return []
    distributions = {plain(found.metadata["Name"] or ""): found for found in metadata.distributions()}
    needed = set()
    for found in distributions.values():
        for requirement in found.requires or []:
            if "extra ==" not in requirement:
                name = requirement.split(";")[0]
                for mark in "[(<>=!~ ":
                    name = name.split(mark)[0]
                needed.add(plain(name))
    names = []
    for key in sorted(distributions, key=lambda key: (key in needed, key)):
        for name in names_of(distributions[key]):
            if name.isidentifier() and not name.startswith("_") and name not in INSTALLERS and name not in names:
                names.append(name)
    return names


def import_all(names, report):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    for name in names:
        try:
            __import__(name)
        except BaseException:  # includes SystemExit: some modules are programs
            pass
        os.write(report, b".")
    os._exit(0)


def marks_until(progress, until):
    """How many imports ended before one took too long, or all of them did."""
    done = 0
    while True:
        patience = max(0, min(SECONDS_FOR_ONE, until - time.monotonic()))
        ready = select.select([progress], [], [], patience)[0]
        marks = os.read(progress, 4096) if ready else b""
        if not marks:
            return done
        done += len(marks)


def end(child):
    try:
        os.killpg(child, signal.SIGKILL)
    except OSError:  # it has no group of its own yet
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def stop(number, frame):
    sys.exit(128 + number)


def main():
    names = packages()
    until = time.monotonic() + SECONDS_IN_ALL
    signal.signal(signal.SIGTERM, stop)
    while names and time.monotonic() < until:
        progress, report = os.pipe()
        child = os.fork()
        if child == 0:
            import_all(names, report)
        try:
            os.close(report)
            done = marks_until(progress, until)
        finally:  # also when the recording is stopped: the child has a session of its own, which no signal to ours reaches
            end(child)
        os.close(progress)
        names = names[done + 1 :]


main()
