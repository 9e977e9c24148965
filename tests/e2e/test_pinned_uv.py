"""Builds without uv on PATH, for which containerize brings a uv of its own that resolves."""

import json
import os

import pytest

PINNED = {"UV_CACHE_DIR": None}


@pytest.fixture()
def build(user, tool, work):
    """build(REQUIREMENTS, OPTIONS...) makes an installation and returns how the command ended."""
    numbers = iter(range(100))

    def run(text, *options, env=None, check=True):
        spec = user.write(work / "requirements.txt", text)
        return user.run(str(tool), "new", "--prefix", str(work / f"env{next(numbers)}"), "--no-profile", *options, str(spec),
                        env={**PINNED, "CONTAINERIZE_CACHE": str(work / "cache"), **(env or {})}, check=check, timeout=600)

    return run


@pytest.fixture()
def cache(user, tool, work):
    """cache("info", ...) runs `containerize cache` on the builds' cache."""
    return lambda *words: user.run(str(tool), "cache", *words, env={"CONTAINERIZE_CACHE": str(work / "cache")}).stdout


def program(user, work):
    (file,) = (work / "cache/uv" / str(user.uid)).glob("uv-*")
    return file


def log_of(work, number):
    return (work / f"env{number}/share/build.log").read_text()


def test_it_is_downloaded_once_and_resolves(build, cache, user, work):
    assert "1 package, with uv in" in build("six==1.16.0\n").stderr
    file = program(user, work)
    assert os.stat(file).st_mode & 0o777 == 0o700
    assert user.run(str(file), "--version").stdout.startswith("uv 0.")
    assert user.run(str(work / "env0/bin/python"), "-c", "import six; print(six.__version__)").stdout == "1.16.0\n"
    assert user.run(str(work / "env0/bin/python"), "-m", "pip", "uninstall", "--help").returncode == 0, "the environment has pip"
    assert json.loads(cache("info", "--json"))["uv"]["bytes"] > os.stat(file).st_size
    before = os.stat(file).st_ino
    second = build("six==1.16.0\n")
    assert "with uv in" in second.stderr and "Fetching" not in second.stderr and os.stat(file).st_ino == before
    cache("clean", "--unused-for", "1")
    assert file.exists()
    cache("clean", "--all")
    assert not file.exists()
    assert json.loads(cache("info", "--json"))["uv"] == {"bytes": 0, "files": 0}


def test_a_program_that_others_could_have_changed_is_replaced(build, user, work):
    build("six\n")
    file = program(user, work)
    user.write(file, "#!/bin/sh\ntouch /tmp/should-never-run; exit 1\n", 0o777)
    assert "with uv in" in build("six\n").stderr
    assert user.run(str(file), "--version").stdout.startswith("uv 0.")


ANOTHER_INDEX = "pip resolves the requirements, because another index than PyPI is asked"


@pytest.mark.parametrize(("text", "environment", "reason"), [
    ("--index-url https://pypi.org/simple\nsix\n", {}, ANOTHER_INDEX),
    ("six\n", {"PIP_INDEX_URL": "https://pypi.org/simple"}, ANOTHER_INDEX),
    ("six\n", {"UV_HTTP_TIMEOUT": "60"}, "pip resolves the requirements, because UV_HTTP_TIMEOUT is set, but uv is not on PATH"),
    ("six\n", {"PIP_PREFER_BINARY": "1"}, "resolving with pip: uv does not support your pip setting 'prefer-binary'"),
])
def test_pip_resolves_what_is_its_own(build, work, text, environment, reason):
    assert "with pip in" in build(text, env=environment).stderr
    assert reason in log_of(work, 0)
    assert not (work / "cache/uv").exists()


def test_pip_resolves_on_request(build, work):
    assert "with pip in" in build("six\n", "--installer", "pip").stderr
    assert not (work / "cache/uv").exists()


def test_pip_says_what_is_wrong_with_requirements(build, user, work):
    done = build("six==1.15.0\nsix==1.16.0\n", check=False)
    assert done.returncode == 1 and "pip could not resolve the requirements" in done.stderr
    assert program(user, work).exists(), "uv was asked first"


def test_without_the_network_pip_resolves(build, user, tool, work):
    user.run("/usr/bin/python3", "-m", "pip", "download", "-q", "--no-deps", "-d", str(work / "wheels"), "six==1.16.0")
    build("six\n", "--offline", env={"PIP_FIND_LINKS": str(work / "wheels")})
    assert "pip resolves the requirements, because" in log_of(work, 0)


def test_in_a_base_it_resolves_too(build, user, tool, work):
    bases = {"CONTAINERIZE_BASES": str(work / "bases")}
    base = user.run(str(tool), "base", "bootstrap", "--python", env=bases, timeout=600).stdout.strip()
    assert "with uv in" in build("six==1.16.0\n", "--base", base, env=bases).stderr
