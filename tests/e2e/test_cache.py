"""The cache's limits, and caches that a site has filled for its users."""

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from conftest import SOURCE, eventually
from test_two_users import other  # noqa: F401: a fixture

sys.path.insert(0, str(SOURCE / "tests/lib"))
from python_wheels import wheel  # noqa: E402

DAY = 86400


class Cache:
    """A user's cache, with a configuration."""

    def __init__(self, user, tool, work, channels):
        self.user, self.tool, self.work = user, str(tool), work
        self.channel = f"file://{channels}/main"
        self.directory = work / "cache"
        self.config = work / "config.yaml"
        self.env = {"CONTAINERIZE_CACHE": str(self.directory), "CONTAINERIZE_CONFIG": str(self.config)}
        self.configure("")

    def configure(self, text):
        self.user.write(self.config, text)

    def spec(self, *packages):
        text = f"channels: ['{self.channel}', nodefaults]\ndependencies: [{', '.join(packages)}]\n"
        return self.user.write(self.work / f"{'-'.join(packages)}.yml", text)

    def words(self, *packages, options=()):
        prefix = self.work / "-".join(packages)
        return [self.tool, "new", "--no-profile", "--force", "--prefix", str(prefix), *map(str, options), str(self.spec(*packages))]

    def new(self, *packages, options=(), env=None, **more):
        done = self.user.run(*self.words(*packages, options=options), env={**self.env, **(env or {})}, **more)
        return done.stderr

    def call(self, *words, check=True):
        return self.user.run(self.tool, "cache", *words, env=self.env, check=check)

    def info(self):
        return json.loads(self.call("info", "--json").stdout)

    def images(self):
        return {path.name: path for path in (self.directory / "images").glob("*/*.sqfs")}

    def made_by(self, *packages, **more):
        """The images that a build adds."""
        before = set(self.images())
        self.new(*packages, **more)
        return set(self.images()) - before

    def use_before(self, names, days):
        for name in names:
            os.utime(self.images()[name], (time.time() - days * DAY,) * 2)


@pytest.fixture()
def cache(user, tool, work, channels):
    return Cache(user, tool, work, channels)


def test_the_least_recently_used_images_make_room(cache):
    where, odd = cache.made_by("where"), cache.made_by("odd")
    assert where and odd
    cache.use_before(where, 5)
    cache.use_before(odd, 7)
    cache.new("where")  # was used again
    assert set(cache.images()) == where | odd, "there is no limit yet"
    size = sum(path.stat().st_size for path in cache.images().values())
    cache.configure(f"defaults:\n  cache_limit: {size}\n")
    picky = cache.made_by("picky")
    assert picky and set(cache.images()) == where | picky
    limited = cache.info()["limited"]
    assert limited["max_bytes"] == size and limited["max_days"] == 90 and limited["files"] == len(where | picky) and 0 < limited["bytes"] <= size
    assert f"{len(where | picky)} package files of yours" in cache.call("info").stdout


def test_images_that_were_not_used_for_long_are_removed(cache):
    where, odd = cache.made_by("where"), cache.made_by("odd")
    lock = next((cache.directory / "images").glob("*/.lock"))
    cache.use_before(odd, 89)
    os.utime(lock, (time.time() - 2 * DAY,) * 2)  # they were looked for two days ago
    cache.new("where")
    assert set(cache.images()) == where | odd
    cache.use_before(odd, 91)
    cache.new("where")
    assert set(cache.images()) == where | odd, "once a day is enough"
    os.utime(lock, (time.time() - 2 * DAY,) * 2)
    cache.new("where")
    assert set(cache.images()) == where
    cache.use_before(where, 91)
    os.utime(lock, (time.time() - 2 * DAY,) * 2)
    cache.configure("defaults:\n  cache_age: none\n")
    cache.new("picky")
    assert where <= set(cache.images())


def test_images_that_a_running_build_uses_stay(cache, user, work):
    old = cache.made_by("odd")
    cache.use_before(old, 2)
    hook = user.write(work / "wait.sh", f"echo here > {work}/reached; until [ -e {work}/go-on ]; do sleep 0.1; done\n")
    cache.configure("defaults:\n  cache_limit: 1\n")
    running = user.start(*cache.words("where", options=["--post-install", hook]), env=cache.env)
    eventually(lambda: (work / "reached").exists(), 120)
    used = set(cache.images()) - old
    assert used
    picky = cache.made_by("picky")
    assert set(cache.images()) == used | picky, "of what was used in the last day, nobody knows who uses it"
    assert "Kept what was used in the last day" in cache.call("clean", "--max-size", "1").stdout
    assert "Kept what was used in the last day" in cache.call("clean", "--all").stdout
    assert set(cache.images()) == used | picky
    user.write(work / "go-on", "")
    assert running.wait(120) == 0, running.stderr.read()
    assert cache.images() == {}
    assert user.run(work / "where/bin/where").stdout.startswith(f"{work}/where/")


def test_clean_by_hand(cache):
    where, odd = cache.made_by("where"), cache.made_by("odd")
    cache.use_before(odd, 1)
    size = sum(cache.images()[name].stat().st_size for name in where)
    assert "Removed 0 B in 0 package files" in cache.call("clean", "--max-size", "1G").stdout
    told = cache.call("clean", "--max-size", str(size)).stdout
    assert f"in {len(odd)} package file" in told and set(cache.images()) == where
    assert cache.info()["repodata"]["files"] > 0, "nothing else is removed"
    refused = cache.call("clean", "--max-size", "much", check=False)
    assert refused.returncode == 2 and "invalid size: 'much'" in refused.stderr
    cache.configure("defaults:\n  cache_age: 3 weeks\n")
    refused = cache.call("info", check=False)
    assert refused.returncode == 2 and f"{cache.config}:2: `cache_age`: invalid age: '3 weeks'" in refused.stderr


def test_a_cache_that_can_only_be_read(cache):
    """Nothing can be noted there."""
    cache.new("where")
    place = next((cache.directory / "images").iterdir())
    (place / ".lock").unlink()
    cache.configure("defaults:\n  cache_limit: 1\n")
    place.chmod(0o500)
    try:
        cache.new("where")
        assert cache.images()
    finally:
        place.chmod(0o700)


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can be two users")


@pytest.fixture()
def grounds():
    """A directory of root's."""
    path = Path(tempfile.mkdtemp(prefix="containerize-e2e-", dir="/opt"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def give(top, uid):
    """As if this user had filled the cache."""
    for path in (top, *top.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)
    for place in (top / "images").iterdir():
        place.rename(place.with_name(str(uid)))


@pytest.fixture()
def site(cache, user, grounds):
    """The directory of a site's cache with the packages `where` and `odd`, filled as documented."""
    directory = grounds / "cache"
    directory.mkdir()
    os.chown(directory, user.uid, user.uid)
    cache.configure(f"defaults:\n  site_caches: [{directory}]\n")
    for package in ("where", "odd"):
        cache.new(package, env={"CONTAINERIZE_CACHE": str(directory)}, umask=0o022)
    assert not (cache.directory / "images").exists()
    give(directory, 0)
    return directory


def tree(directory):
    return {path: (path.lstat().st_mtime_ns, path.lstat().st_mode) for path in directory.rglob("*")}


@needs_root
def test_images_of_the_site_are_used(cache, user, site):
    before = tree(site)
    images = [path for path in before if path.suffix == ".sqfs"]
    assert images and {stat.S_IMODE(before[path][1]) for path in images} == {0o644}
    assert cache.made_by("where", options=["--offline"]) == set()
    assert user.run(cache.work / "where/bin/where").stdout.startswith(f"{cache.work}/where/")
    picky = cache.made_by("where", "picky")
    assert len(picky) == 1, "only what is missing is packed"
    (shown,) = cache.info()["site_caches"]
    assert shown == {"directory": str(site), "images": {"files": len(images), "bytes": sum(path.stat().st_size for path in images)}, "obstacle": None}
    assert str(site) in cache.call("info").stdout
    assert f"in {len(images) + 1} images as they were made" in cache.call("verify").stdout
    assert "Kept" not in cache.call("clean", "--all").stdout
    assert tree(site) == before
    # With the same bytes.
    fixed = {"SOURCE_DATE_EPOCH": "1700000000"}
    digests = set()
    for text in ("", f"defaults:\n  site_caches: [{site}]\n"):
        cache.configure(text)
        cache.new("where", env=fixed)
        digests.add(json.loads((cache.work / "where/containerize.json").read_text())["image"]["sha256"])
        cache.call("clean", "--all")
    assert len(digests) == 1


@needs_root
def test_wheels_of_the_site_are_used(cache, user, work, grounds):
    """Also those of pip and setuptools, and the byte-code."""
    wheel(work, "failing", {"failing/__init__.py": b"answer = 42\n"})
    spec = user.write(work / "requirements.txt", f"{next(work.glob('*.whl'))}\n")
    site = grounds / "cache"
    site.mkdir()
    os.chown(site, user.uid, user.uid)
    cache.configure(f"defaults:\n  site_caches: [{site}]\n")
    new = lambda **env: user.run(cache.tool, "new", "--no-profile", "--force", "--prefix", str(work / "env"), str(spec), env={**cache.env, **env})  # noqa: E731
    new(CONTAINERIZE_CACHE=str(site))
    give(site, 0)
    before = tree(site)
    assert len([path for path in before if path.suffix == ".sqfs"]) == 6
    new()
    assert cache.images() == {} and tree(site) == before
    assert user.run(f"{work}/env/bin/python", "-c", "import failing, pip; print(failing.answer)").stdout == "42\n"


@needs_root
def test_a_site_cache_that_is_not_there_yet(cache, grounds):
    cache.configure(f"defaults:\n  site_caches: [{grounds}/cache]\n")
    assert "site" not in cache.new("where")
    assert cache.info()["site_caches"] == [{"directory": f"{grounds}/cache", "images": {"files": 0, "bytes": 0}, "obstacle": None}]


@needs_root
def test_a_damaged_image_of_the_site_is_not_used(cache, user, site):
    images = [path for path in site.rglob("*.sqfs")]
    for path in images:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    told = cache.new("where")
    (own,) = cache.images().values()
    damaged = site / "images/0" / own.name
    assert f"{damaged}: this package image of the site is damaged, and not used" in told
    assert user.run(cache.work / "where/bin/where").stdout.startswith(f"{cache.work}/where/")
    verified = cache.call("verify", check=False)
    assert verified.returncode == 1
    assert sorted(verified.stdout.splitlines()[:-1]) == sorted(f"Damaged in the site's cache: {path}" for path in images)
    assert all(path.exists() for path in images) and own.exists()
    assert "damaged" not in cache.new("where"), "the user's own one is found first"


@needs_root
@pytest.mark.parametrize("case", ["owner", "parent", "mode", "image"])
def test_a_site_cache_of_others_is_not_used(cache, user, other, site, case):
    if case == "owner":
        give(site, other.uid)
    elif case == "parent":
        os.chown(site, other.uid, other.uid)
    elif case == "mode":
        (site / "images").chmod(0o777)
    else:
        for path in site.rglob("*.sqfs"):
            os.chown(path, other.uid, other.uid)
    told = cache.new("where")
    assert len(cache.images()) == 1
    reason = {"owner": f"{site}: it belongs to another user", "parent": f"{site}: it belongs to another user",
              "mode": f"{site}/images: everybody can write to it", "image": None}[case]
    assert (f"the site's cache {site} is not used: {reason}" in told) == (reason is not None), told
    (shown,) = cache.info()["site_caches"]
    assert shown["obstacle"] == reason and shown["images"]["files"] == 0


ON_A_MACHINE = """
mount -t overlay overlay -o "lowerdir=$1:/etc" /etc
shift
exec setpriv --reuid "$1" --regid "$1" --clear-groups -- "${@:2}"
"""


@needs_root
@pytest.mark.parametrize("owner", ["other", "root"])
def test_the_owner_of_the_machines_configuration_is_trusted(cache, user, other, site, owner):
    """As where root cannot write to the filesystem of the site's cache."""
    give(site, other.uid)
    etc = site.parent / "etc/containerize"
    etc.mkdir(parents=True)
    shutil.move(cache.config, etc / "config.yaml")
    os.chown(etc / "config.yaml", other.uid if owner == "other" else 0, 0)
    cache.configure("")
    on_a_machine = ["unshare", "--mount", "bash", "-ec", ON_A_MACHINE, "bash", str(etc.parent), str(user.uid)]
    done = subprocess.run([*on_a_machine, *cache.words("where")], env=user.options(cache.env)["env"], cwd="/", capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(cache.images()) == (0 if owner == "other" else 1)
    assert (f"the site's cache {site} is not used: {site}: it belongs to another user" in done.stderr) == (owner == "root")


@needs_root
def test_parts_of_a_shared_cache_that_another_user_could_replace(cache, user, other, grounds):
    """What is kept for each user is then in the user's own cache. Only archives are shared."""
    shared = grounds / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    cache.directory = shared
    env = {"CONTAINERIZE_CACHE": str(shared), "XDG_CACHE_HOME": str(cache.work / "mine")}
    cache.env.update(env)
    cache.new("where")
    assert (shared / f"images/{user.uid}").is_dir() and (shared / f"repodata/{user.uid}").is_dir()
    for part in ("images", "repodata"):
        os.chown(shared / part, other.uid, other.uid)
    before = tree(shared)
    cache.new("where")
    assert tree(shared) == before
    own = cache.work / "mine/containerize"
    assert len(list(own.glob(f"images/{user.uid}/*.sqfs"))) == 1 and list(own.glob(f"repodata/{user.uid}/*.json"))
    assert cache.info()["images"]["files"] == 1
    assert "in 1 image as they were made" in cache.call("verify").stdout
    cache.call("clean", "--all")
    assert tree(shared) == before and not list(own.glob("images/*/*.sqfs"))
