"""Compares programs' view of the system by CPython's own tests: each must have the same outcome wrapped as in a plain venv.

Intended or unavoidable differences are listed, with reasons, in docs/reference/limits.md; there may be no others.
CONTAINERIZE_TEST_CPYTHON restricts the comparison to the test files that it names.
"""

import fnmatch
import os
import re
import subprocess
import xml.etree.ElementTree
from pathlib import Path

import pytest
from conftest import SOURCE

PYTHON = "/usr/bin/python3"
PACKAGE = "libpython3.11-testsuite"
FILES = """
test_asyncio test_atexit test_cmd_line_script test_compileall test_concurrent_futures test_epoll test_faulthandler test_fcntl test_file test_fileio
test_fork1 test_genericpath test_getpath test_glob test_import test_importlib test_ioctl test_mmap test_multiprocessing_fork
test_multiprocessing_forkserver test_multiprocessing_main_handling test_multiprocessing_spawn test_openpty test_os test_pathlib test_pkgutil
test_poll test_posix test_posixpath test_pty test_resource test_runpy test_selectors test_shutil test_signal test_site test_socket
test_socketserver test_ssl test_stat test_subprocess test_sys test_sysconfig test_tempfile test_threading test_threadsignals test_uuid test_venv
test_wait3 test_wait4 test_zipapp test_zipimport
""".split()
LIMITS = SOURCE / "docs/reference/limits.md"


@pytest.fixture(scope="module", autouse=True)
def testsuite():
    installed = subprocess.run(["dpkg-query", "-W", "-f=${db:Status-Status}", PACKAGE], capture_output=True, text=True, check=False).stdout
    if installed != "installed":
        subprocess.run(["apt-get", "update", "-qq"], check=True)
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", PACKAGE], check=True, stdout=subprocess.DEVNULL)


def is_known(test):
    """Whether the table of known differences lists this test."""
    patterns = re.findall(r"^\| `(test[\w.*]+)` \|", LIMITS.read_text(), re.MULTILINE)
    return any(fnmatch.fnmatchcase(test, pattern) for pattern in patterns)


def outcomes(user, python, work, files):
    """Maps each test to passed, skipped or failed, and each file that crashed or timed out to crashed."""
    place = user.directory(work)
    report = place / "report.xml"
    done = user.run(python, "-m", "test", "-j", str(os.cpu_count()), "--timeout", "1200", "--tempdir", place, "--junit-xml", report, *files,
                    check=False, timeout=4 * 3600, cwd=place, env={"TMPDIR": str(place)})
    (work / f"{place.name}.log").write_text(done.stdout + done.stderr)
    found = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case} & {"failure", "error", "skipped"}
        if case.get("name") is None:  # the whole file was skipped
            continue
        found[case.get("name").split(" ")[0]] = "failed" if kinds & {"failure", "error"} else "skipped" if kinds else "passed"
    # A file whose process died has no results for its tests.
    for name in files:
        if re.search(rf"^.*\b{name} (crashed|timed out|failed \(env changed\))", done.stdout, re.MULTILINE):
            found[name] = "crashed"
    return found


def differences(user, pythons, work, files):
    wrapped, plain = (outcomes(user, python, work, files) for python in pythons)
    assert len(plain) > 20 * len(files) / 2, "too few tests to judge by"
    return {test: (plain.get(test), wrapped.get(test)) for test in plain.keys() | wrapped.keys() if plain.get(test) != wrapped.get(test)}


def test_programs_see_what_they_see_in_a_venv(user, small, work):
    user.run(PYTHON, "-m", "venv", work / "venv")
    pythons = (small / "bin/python", work / "venv/bin/python")
    available = {path.stem for path in Path("/usr/lib/python3.11/test").glob("test_*")}
    missing = set(FILES) - available
    assert not missing, missing
    found = differences(user, pythons, work, os.environ.get("CONTAINERIZE_TEST_CPYTHON", "").split() or FILES)
    print("\n".join(f"{test}: {plain} in a venv, {wrapped} wrapped" for test, (plain, wrapped) in sorted(found.items())))
    # Some of these tests depend on timing and the machine is busy, so a difference counts only if a second run shows the same one.
    unexpected = {(test, how) for test, how in found.items() if not is_known(test)}
    if unexpected:
        files = sorted({test.split(".")[1] if test.startswith("test.") else test for test, _ in unexpected})
        unexpected &= differences(user, pythons, work, files).items()
    assert not unexpected, sorted(unexpected)
