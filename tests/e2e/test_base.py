"""Base images from real registries and tools: pulling, verifying, merging and storing them, and refusing hostile ones."""

import hashlib
import json
import os
import platform
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from conftest import CACHE, SOURCE, eventually, locked, made_once

sys.path.insert(0, str(SOURCE / "tests/lib"))
from oci_image import MACHINE, Layout, digest_of, sif_file, tar_of  # noqa: E402
from registry import Registry  # noqa: E402
from registry_proxy import Proxy  # noqa: E402

HERE = MACHINE.get(platform.machine(), platform.machine())


@pytest.fixture(scope="module")
def debian():
    """An OCI layout with Debian packages, made once: umoci adds two layers, and the upper one removes and replaces files."""
    def make(layout):
        with tempfile.TemporaryDirectory() as work:
            tar, upper = Path(work) / "root.tar", Path(work) / "upper.tar"
            subprocess.run(["mmdebstrap", "--variant=extract", "--include=dash,coreutils,libc-bin,base-files,python3-minimal", "bookworm", str(tar)],
                           check=True, stderr=subprocess.DEVNULL)
            upper.write_bytes(tar_of("etc/", ("etc/.wh.issue", ""), ("etc/added", "added\n"), "usr/", "usr/share/", "usr/share/doc/",
                                     ("usr/share/doc/.wh..wh..opq", ""), ("usr/share/doc/README", "only this\n")))
            for words in (["init", "--layout", str(layout)], ["new", "--image", f"{layout}:deb"],
                          ["raw", "add-layer", "--image", f"{layout}:deb", str(tar)], ["raw", "add-layer", "--image", f"{layout}:deb", str(upper)],
                          ["config", "--image", f"{layout}:deb", "--config.env", "GREETING=hello world", "--config.workingdir", "/srv"]):
                subprocess.run(["umoci", *words], check=True, stdout=subprocess.DEVNULL)

    return made_once(CACHE / "base-image", make)


@pytest.fixture(scope="module")
def images(place, user):
    """A layout of small images, valid and invalid ones."""
    layout = Layout(place / "images")
    low = layout.layer(tar_of("bin/", ("bin/tool", b"low" * 1000), ("etc/motd", "low"), ("etc/gone", "x"), ("big", os.urandom(3_000_000))))
    middle = layout.layer(tar_of("etc/", ("etc/.wh.gone", ""), ("etc/link", "=> etc/other"), ("etc/other", "linked")), "zstd")
    top = layout.layer(tar_of("etc/", ("etc/motd", "top")), "none")
    good = layout.image("good", [low, middle, top], HERE, ["PATH=/bin", "A=b c"])
    layout.image("two", [low, top], HERE)
    other = layout.image("", [top], "s390")
    layout.index("multi", {"s390": other, HERE: good})
    layout.index("foreign", {"s390": other, "mips": other})
    return layout


@pytest.fixture(scope="module")
def registry(place, images, debian):
    """A registry to which skopeo has pushed all images."""
    server = Registry(place, place / "storage")
    copy = lambda source, name, *words: subprocess.run(  # noqa: E731
        ["skopeo", "--insecure-policy", "copy", "-q", "--dest-tls-verify=false", "--preserve-digests", *words, source,
         f"docker://127.0.0.1:{server.port}/{name}"], check=True, stdout=subprocess.DEVNULL)
    copy(f"oci:{images.path}:good", "test/good:1")
    copy(f"oci:{images.path}:multi", "test/multi:1", "--all")
    copy(f"oci:{images.path}:foreign", "test/foreign:1", "--all")
    copy(f"oci:{debian}:deb", "test/debian:1")
    yield server
    server.close()


@pytest.fixture()
def proxy(registry):
    made = []

    def make(*arguments, upstream=registry.port, **more):
        made.append(Proxy(upstream, *arguments, **more))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture()
def base(user, tool, work):
    """base("pull", ...) with a store of its own."""

    def run(*arguments, **more):
        env = {"CONTAINERIZE_BASES": str(work / "store"), "HOME": str(work), **more.pop("env", {})}
        return user.run(str(tool), "base", *map(str, arguments), env=env, **more)

    run.store = work / "store"
    run.images = lambda: sorted(entry.name for entry in run.store.glob("*.sqfs"))
    return run


def refused(run, *arguments, **more) -> str:
    done = run(*arguments, check=False, **more)
    assert done.returncode in (1, 2), done.stdout + done.stderr
    assert run.images() == [], "nothing is visible of what failed"
    return done.stderr


def only_image(run) -> Path:
    (image,) = run.store.glob("*.sqfs")
    return image


def unpacked(image: Path, place: Path) -> Path:
    tree = place / "tree"
    subprocess.run(["unsquashfs", "-q", "-n", "-d", str(tree), str(image)], check=True, stdout=subprocess.DEVNULL)
    return tree


def described(root: Path) -> dict:
    """Maps every path of a tree to its type, permissions, content and hard links."""
    found, names = {}, {}
    for path in sorted(root.rglob("*")):
        info = path.lstat()
        what = [oct(info.st_mode), int(info.st_mtime) if not stat.S_ISDIR(info.st_mode) else 0]
        if stat.S_ISREG(info.st_mode):
            what += [hashlib.sha256(path.read_bytes()).hexdigest(), names.setdefault(info.st_ino, str(path.relative_to(root)))]
        elif stat.S_ISLNK(info.st_mode):
            what = ["link", os.readlink(path)]
        elif not stat.S_ISDIR(info.st_mode):
            continue  # images of an unprivileged user cannot contain devices
        found[str(path.relative_to(root))] = what
    return found


def test_pull_is_what_umoci_unpacks(base, registry, debian, work):
    done = base("pull", f"docker://127.0.0.1:{registry.port}/test/debian:1")
    assert done.stdout.startswith("sha256:")
    bundle = work / "bundle"
    subprocess.run(["umoci", "unpack", "--image", f"{debian}:deb", str(bundle)], check=True, stdout=subprocess.DEVNULL)
    tree = unpacked(only_image(base), work)
    expected, got = described(bundle / "rootfs"), described(tree)
    assert {k: v for k, v in got.items() if expected.get(k) != v} == {}
    assert expected.keys() == got.keys()
    assert not (tree / "etc/issue").exists()
    assert os.listdir(tree / "usr/share/doc") == ["README"]
    (image,) = json.loads(base("list", "--json").stdout)
    assert "GREETING=hello world" in image["environment"]
    assert image["digest"] == done.stdout.strip()
    assert image["references"] == [f"docker://127.0.0.1:{registry.port}/test/debian:1"]


def test_the_same_from_everywhere(base, user, registry, images, work):
    """A registry, a layout and archives give the same image, byte for byte."""
    subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", "--preserve-digests", f"oci:{images.path}:good", f"oci-archive:{work}/a.tar:good"], check=True)
    # Docker's archive format does not support zstd.
    subprocess.run(["skopeo", "--insecure-policy", "copy", "-q", f"oci:{images.path}:two", f"docker-archive:{work}/d.tar:x/y:1"], check=True)
    digests, bytes_of = [], []
    for name in (f"docker://127.0.0.1:{registry.port}/test/good:1", f"docker://localhost:{registry.port}/test/multi:1",
                 f"oci:{images.path}:good", f"oci-archive:{work}/a.tar:good", f"oci:{images.path}:two", f"docker-archive:{work}/d.tar:x/y:1"):
        store = work / f"store{len(digests)}"
        digests.append(base("pull", name, env={"CONTAINERIZE_BASES": str(store)}).stdout.strip())
        (image,) = store.glob("*.sqfs")
        bytes_of.append(image.read_bytes())
        assert sorted(entry.name for entry in store.iterdir() if not entry.name.startswith(".")) == [image.stem + ".json", image.name]
        assert list((store / ".pulling").iterdir()) == []
    assert len(set(digests[:4])) == 1
    assert len(set(bytes_of[:4])) == 1 and bytes_of[4] == bytes_of[5]
    tree = unpacked(next((work / "store0").glob("*.sqfs")), work)
    assert (tree / "etc/motd").read_text() == "top"
    assert not (tree / "etc/gone").exists()
    assert (tree / "etc/link").stat().st_nlink == 2


def test_store_is_shared_and_searched(base, registry, images, user, work):
    name = f"docker://127.0.0.1:{registry.port}/test/good:1"
    digest = base("pull", name).stdout.strip()
    assert "already in the store" in base("pull", name).stderr
    base("pull", f"oci:{images.path}:good")
    (image,) = json.loads(base("list", "--json").stdout)
    assert len(image["references"]) == 2
    shown = base("list").stdout
    assert digest[:19] in shown and name in shown
    # A site's store is searched first, but its images cannot be removed.
    user.write(work / "config.yaml", f"appends:\n  base_stores:\n    - {base.store}\n")
    site = {"CONTAINERIZE_CONFIG": str(work / "config.yaml"), "CONTAINERIZE_BASES": str(work / "own")}
    base("pull", name, env=site)
    assert list((work / "own").glob("*.sqfs")) == []
    assert json.loads(base("list", "--json", env=site).stdout)[0]["site"]
    assert "no such base image" in base("remove", digest, env=site, check=False).stderr
    assert "Removed" in base("remove", digest[7:19]).stdout
    assert base("list", "--json").stdout == "[]\n"
    assert base.images() == []


def test_two_at_once_make_one(base, registry, user, tool, work):
    env = {"CONTAINERIZE_BASES": str(base.store), "HOME": str(work)}
    words = (str(tool), "base", "pull", f"docker://127.0.0.1:{registry.port}/test/good:1")
    running = [user.start(*words, env=env) for _ in range(4)]
    answers = [(process.communicate(timeout=120), process.returncode) for process in running]
    assert {code for _, code in answers} == {0}, answers
    assert len({out for (out, _), _ in answers}) == 1
    assert len(base.images()) == 1


def test_login(base, proxy, registry, place, user, work):
    htpasswd = place / "htpasswd"
    htpasswd.write_bytes(subprocess.run(["htpasswd", "-nbB", "me", "secret"], check=True, stdout=subprocess.PIPE).stdout)
    private = Registry(place, place / "storage", htpasswd)
    token = proxy("token", user="me", password="secret")
    try:
        for port in (private.port, token.port):
            name = f"docker://127.0.0.1:{port}/test/good:1"
            message = refused(base, "pull", name)
            assert "requires a login (401)" in message and "docker login" in message
            for directory in (".docker/config.json", ".apptainer/docker-config.json"):
                file = work / directory
                subprocess.run(["install", "-d", "-o", str(user.uid), str(file.parent)], check=True)
                user.write(file, json.dumps({"auths": {f"127.0.0.1:{port}": {"auth": "bWU6c2VjcmV0"}}}))
                done = base("pull", name)
                base("remove", done.stdout.strip())
                file.unlink()
    finally:
        private.close()


def test_a_login_is_for_one_registry(base, proxy, user, work):
    """Neither another registry nor the server to which blobs are redirected sees it."""
    target = proxy("plain")
    private = proxy("token redirect", upstream=target.port, user="me", password="secret")
    user.run("mkdir", str(work / ".docker"))
    user.write(work / ".docker/config.json", json.dumps({"auths": {f"127.0.0.1:{private.port}": {"auth": "bWU6c2VjcmV0"}}}))
    base("remove", base("pull", f"docker://127.0.0.1:{private.port}/test/good:1").stdout.strip())
    assert any("c2VjcmV0" in headers.get("Authorization", "") for _, headers in private.seen)
    assert any("/blobs/" in path for path, _ in target.seen)
    assert all("Authorization" not in headers for _, headers in target.seen)
    anonymous = proxy("token")
    base("pull", f"docker://127.0.0.1:{anonymous.port}/test/good:1")
    asked = [path for path, _ in anonymous.seen if path.startswith("/token")]
    assert asked == ["/token?service=test%20registry&scope=repository%3Atest%2Fgood%3Apull"]
    assert {headers.get("Authorization") for _, headers in anonymous.seen} == {None, "Bearer a-token"}


def test_unreliable_network(base, proxy):
    flaky = proxy("flaky")
    base("pull", f"docker://127.0.0.1:{flaky.port}/test/good:1")
    # The download was resumed where it had stopped.
    assert any(headers.get("Range", "").startswith("bytes=") for _, headers in flaky.seen)


def test_redirects(base, proxy):
    base("pull", f"docker://127.0.0.1:{proxy('redirect').port}/test/good:1")
    base("remove", json.loads(base("list", "--json").stdout)[0]["digest"])
    message = refused(base, "pull", f"docker://127.0.0.1:{proxy('elsewhere', target='http://169.254.169.254/latest').port}/test/good:1")
    assert "link-local" in message
    message = refused(base, "pull", f"docker://127.0.0.1:{proxy('elsewhere', target='http://[::ffff:169.254.169.254]/').port}/test/good:1")
    assert "link-local" in message
    message = refused(base, "pull", f"docker://127.0.0.1:{proxy('elsewhere', target='file:///etc/passwd').port}/test/good:1")
    assert "cannot" in message and "root:" not in message


def test_what_was_changed_on_the_way(base, proxy, registry):
    message = refused(base, "pull", f"docker://127.0.0.1:{proxy('corrupt').port}/test/good:1")
    assert "sha256" in message and "expected" in message
    wrong = "sha256:" + "1" * 64
    assert "no such image" in refused(base, "pull", f"docker://127.0.0.1:{registry.port}/test/good@{wrong}")
    digest = base("pull", f"docker://127.0.0.1:{registry.port}/test/good:1").stdout.strip()
    assert base("pull", f"docker://127.0.0.1:{registry.port}/test/good@{digest}").stdout.strip() == digest


def test_mirror(base, proxy, user, work):
    mirror = proxy("plain")
    user.write(work / "config.yaml", f"defaults:\n  registries:\n    - unreachable.invalid=http://127.0.0.1:{mirror.port}\n")
    base("pull", "docker://unreachable.invalid/test/good:1", env={"CONTAINERIZE_CONFIG": str(work / "config.yaml")})
    assert mirror.seen
    done = base("pull", "docker://unreachable.invalid/test/good:1", check=False)
    assert done.returncode == 1 and "unreachable.invalid" in done.stderr, "without the mirror"


def test_names_that_lead_nowhere(base, registry):
    assert "no such image" in refused(base, "pull", f"docker://127.0.0.1:{registry.port}/test/none:1")
    message = refused(base, "pull", f"docker://127.0.0.1:{registry.port}/test/foreign:1")
    assert f"no image for linux/{HERE}" in message and "linux/mips, linux/s390" in message
    assert "lower-case" in refused(base, "pull", "docker://Debian")


def test_killed_pull_leaves_nothing_visible(base, registry, user, tool, work):
    env = {"CONTAINERIZE_BASES": str(base.store), "HOME": str(work)}
    words = (str(tool), "base", "pull", f"docker://127.0.0.1:{registry.port}/test/debian:1")
    process = user.start(*words, env=env)
    eventually(lambda: list(base.store.glob(".pulling/*/image.sqfs")))
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    assert base.images() == []
    assert base("list", "--json").stdout == "[]\n"
    # The next pull removes what the killed one left, and the killed pull can be repeated.
    base("pull", f"docker://127.0.0.1:{registry.port}/test/good:1")
    assert list((base.store / ".pulling").iterdir()) == []
    base("pull", words[-1])
    assert len(base.images()) == 2


def test_offline_connects_to_no_registry(base, proxy, user, tool, work):
    server = proxy()
    name = f"docker://127.0.0.1:{server.port}/test/good:1"
    words = (str(tool), "new", "--offline", "--base", name, "--prefix", str(work / "env"), str(user.write(work / "requirements.txt", "six\n")))
    env = {"CONTAINERIZE_BASES": str(base.store), "HOME": str(work)}
    done = user.run(*words, env=env, check=False)
    assert done.returncode == 1, done.stderr
    assert f"{name}: the store of base images does not have this image: --offline forbids using the network" in done.stderr
    assert f"containerize base pull {name}" in done.stderr
    assert server.seen == []
    base("pull", name)
    server.seen.clear()
    done = user.run(*words, env=env, check=False)
    assert "forbids" not in done.stderr, "the image is in the store; whether it has a Python does not matter here"
    assert server.seen == []


def test_an_interrupt_ends_a_bootstrap_with_a_message(base, user, tool, work):
    staging = base.store / ".pulling"
    left = staging / "sha256-left"
    for directory in (base.store, staging, left):
        directory.mkdir()
        os.chown(directory, user.uid, user.entry.pw_gid)
    lock = user.write(staging / f"{user.uid}-sha256-bootstrap.lock", "")
    with locked(lock):
        process = user.start(str(tool), "base", "bootstrap", env={"CONTAINERIZE_BASES": str(base.store), "HOME": str(work)})
        eventually(lambda: not left.exists())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT, errors
    assert errors.endswith("containerize: interrupted\n")


def test_a_bootstrap_beyond_the_file_size_limit_leaves_no_image(base, user, tool, work):
    image = work / "host.sqfs"
    words = f"ulimit -f 1024; exec {tool} base bootstrap --output {image}"
    done = user.run("bash", "-c", words, env={"HOME": str(work)}, check=False)
    assert done.returncode == 1, done.stderr
    assert f"{image}: cannot write the image: File too large" in done.stderr
    assert not image.exists()


def hostile_image(layout: Layout, tag: str, *members, **more):
    layout.image(tag, [layout.layer(tar_of(*members), "none")], HERE, **more)


def test_hostile_layers_are_refused_by_name(base, work):
    layout = Layout(work / "hostile")
    hostile_image(layout, "out", ("../../etc/passwd", "x"))
    hostile_image(layout, "absolute", ("/etc/passwd", "x"))
    hostile_image(layout, "through", ("root", "-> /"), ("root/etc/passwd", "x"))
    hostile_image(layout, "hard", ("shadow", "=> ../../etc/shadow"))
    hostile_image(layout, "diff", ("a", "x"), diff_ids=["sha256:" + "2" * 64])
    sparse = work / "sparse.tar"
    with open(work / "terabyte", "wb") as file:
        file.truncate(1 << 40)
    subprocess.run(["tar", "-C", str(work), "--sparse", "-cf", str(sparse), "terabyte"], check=True)
    layout.image("sparse", [layout.layer(sparse.read_bytes())], HERE)
    layout.image("many", [layout.layer(tar_of(("a", "x")))] * 10_000, HERE)
    layout.image("huge", [layout.layer(tar_of(("a", "x")))] * 100_000, HERE)
    (work / "terabyte").unlink()
    expected = {
        "out": "the entry '../../etc/passwd' points outside the image",
        "absolute": "the entry '/etc/passwd' points outside the image",
        "through": "the entry 'root/etc/passwd' is below a link of the same layer",
        "hard": "the entry 'shadow' is a hard link that points outside the image",
        "diff": "(diff_id)",
        "sparse": "the entry 'terabyte' has a declared size of 1.1 TB",
        "many": "it has 10000 layers, and at most 512 are accepted",
        "huge": "its manifest or configuration is larger than 4 MiB",
    }
    for tag, message in expected.items():
        shown = refused(base, "pull", f"oci:{layout.path}:{tag}")
        assert message in shown, (tag, shown)
        assert str(layout.path) in shown


def test_files_are_used_where_they_lie(base, work):
    script = work / "tree/.singularity.d/env/10-docker2singularity.sh"
    script.parent.mkdir(parents=True)
    script.write_text('#!/bin/sh\nexport PATH="/opt/bin:/bin"\n')
    subprocess.run(["mksquashfs", str(work / "tree"), str(work / "a.sqfs"), "-quiet", "-no-progress", "-comp", "gzip"], check=True)
    squashfs = (work / "a.sqfs").read_bytes()
    for file in (work / "a.sqfs", sif_file(work / "a.sif", squashfs, HERE)):
        assert base("pull", file).stdout.strip() == digest_of(file.read_bytes())
    assert base.images() == []
    foreign = sif_file(work / "b.sif", squashfs, "arm64" if HERE == "amd64" else "amd64")
    assert "for another architecture" in refused(base, "pull", foreign)
    (work / "c.sif").write_bytes((work / "a.sif").read_bytes()[:5000])
    assert "truncated" in refused(base, "pull", work / "c.sif")
    (work / "d.sqfs").write_bytes(squashfs[:120])
    assert "d.sqfs" in refused(base, "pull", work / "d.sqfs")
    assert base("pull", work / "tree", check=False).returncode == 2, "it is no root filesystem"


def test_images_of_any_compressor_serve_programs(small, user, sessions, work):
    """The session process can read the images that mksquashfs makes, with any compressor."""
    tree = work / "tree"
    subprocess.run(["unsquashfs", "-q", "-n", "-d", str(tree), str(small / "env.sqfs")], check=True, stdout=subprocess.DEVNULL)
    for name in ("pip", "setuptools"):  # compressing them takes long
        shutil.rmtree(tree / "lib/python3.11/site-packages" / name)
    for number, options in enumerate((("gzip",), ("xz", "-b", "1M"), ("lz4",), ("zstd", "-b", "64K"))):
        sessions.kill_all()
        target = work / f"env{number}"
        user.copy(small, target, target)
        (target / "env.sqfs").unlink()
        subprocess.run(["mksquashfs", str(tree), str(target / "env.sqfs"), "-quiet", "-no-progress", "-comp", *options], check=True)
        manifest = json.loads((target / "containerize.json").read_text())
        manifest["image"]["size"] = (target / "env.sqfs").stat().st_size
        user.write(target / "containerize.json", json.dumps(manifest))
        assert user.run(str(target / "bin/python"), "-c", "import six; print(six.__version__)").stdout == "1.16.0\n", options
    sessions.kill_all()


def test_bootstrap_has_what_programs_need(base, user, work):
    first = base("bootstrap").stdout.strip()
    image = only_image(base)
    assert first.startswith("bootstrap:") and image.stat().st_size < 60_000_000
    bytes_of = image.read_bytes()
    assert base("bootstrap").stdout.strip() == first
    again = work / "again"  # a store that has no image yet
    assert base("bootstrap", env={"CONTAINERIZE_BASES": str(again)}).stdout.strip() == first
    assert next(again.glob("*.sqfs")).read_bytes() == bytes_of
    assert json.loads(base("list", "--json").stdout)[0]["references"] == [first]
    done = base("bootstrap", "-o", work / "host.sqfs", "--python")
    assert (work / "host.sqfs").stat().st_size < 60_000_000
    tree = unpacked(work / "host.sqfs", work)
    script = ("set -e; echo a b | awk '{print $2}' | sed s/b/c/ | grep c; ls / | sort | head -1; tar --version | head -1; gzip --version | head -1;"
              "which env; hostname; date -u +%Z; find /etc -name hosts; getent passwd root; bash -c 'echo $((1+1))';"
              "python3 -c 'import ssl, sqlite3, ctypes, hashlib, json, zlib, lzma; print(ssl.create_default_context().cert_store_stats()[\"x509_ca\"] > 50)';"
              "python3 -v -c 'import argparse' 2>&1 | grep 'argparse.*pyc matches'")
    ran = subprocess.run(["bwrap", "--ro-bind", str(tree), "/", "--dev", "/dev", "--proc", "/proc", "--clearenv", "--setenv", "PATH",
                          "/usr/bin:/bin:/usr/sbin", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-2] == "True"
    assert "/etc/hosts" in ran.stdout
