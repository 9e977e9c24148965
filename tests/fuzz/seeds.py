#!/usr/bin/env python3
"""Makes initial inputs for fuzzers, from the output of real tools and from tests/data. Existing ones are kept.
Usage: tests/fuzz/seeds.py DIRECTORY"""

import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
DATA = SOURCE / "tests/data"
#: Larger files are no seeds, because short inputs are mutated faster.
LARGEST = 64 << 10
MOST = 200

#: Harness -> the data that it understands.
PATTERNS = {"environment": "env-yml/*", "locks": "lockfiles/*", "python_locks": "python-locks/**/*", "repodata": "repodata/**/repodata.json",
            "yaml": "env-yml/*"}

NO_TABLE = (1 << 64) - 1
COMPRESSORS = ["gzip", "lzma", "xz", "lz4", "zstd"]  # image_input.h uses the same numbers, from 1 on


def copy_data(directory: Path, pattern: str) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    files = [path for path in sorted(DATA.glob(pattern)) if path.is_file() and path.stat().st_size <= LARGEST]
    for number, path in enumerate(files[:MOST]):
        shutil.copyfile(path, directory / f"{number}-{path.name}")


def package_seeds(directory: Path) -> None:
    """Archives, each preceded by a byte that tells its kind (tests/fuzz/conda/package.cpp)."""
    for ending, kind in ((".conda", b"c"), (".tar.bz2", b"b")):
        copy_data(directory, f"packages/**/*{ending}")
        for path in directory.glob(f"*{ending}"):
            path.write_bytes(kind + path.read_bytes())


def make_tree(root: Path) -> None:
    """A tree with everything that an image can contain."""
    (root / "a/b/c").mkdir(parents=True)
    (root / "a/small").write_text("small\n")
    (root / "a/large").write_bytes(os.urandom(200) * 50)
    (root / "a/hole").write_bytes(bytes(20_000) + b"end")
    os.link(root / "a/small", root / "a/b/hard")
    os.symlink("../small", root / "a/b/link")
    os.mkfifo(root / "a/pipe")
    for number in range(20):
        (root / "a/b/c" / f"file{number}").write_text(str(number) * number)
    os.setxattr(root / "a/small", "user.comment", b"said")
    os.setxattr(root / "a/b", "user.overlay.opaque", b"y")
    os.setxattr(root / "a/large", "user.long", b"v" * 300)


def stored_table(image: bytes, start: int, end: int) -> bytes:
    """The content of a table whose blocks are not compressed."""
    table = b""
    while start < end:
        (header,) = struct.unpack_from("<H", image, start)
        assert header & 0x8000, "compressed"
        table += image[start + 2 : start + 2 + (header & 0x7FFF)]
        start += 2 + (header & 0x7FFF)
    return table


def indexed_table(image: bytes, index: int, size: int) -> bytes:
    blocks = struct.unpack_from(f"<{(size + 8191) // 8192}Q", image, index)
    return b"".join(stored_table(image, block, block + 1) for block in blocks)[:size]


def taken_apart(image: bytes, compressor: int) -> bytes:
    """An image as input of tests/fuzz/image_input.h. Its tables must not be compressed."""
    fragments, _, block_log = struct.unpack_from("<IHH", image, 16)
    root, used, ids, xattr_ids, inodes, listings, fragment_index, _ = struct.unpack_from("<8Q", image, 32)
    first_of = [struct.unpack_from("<Q", image, table)[0] for table in (ids, fragment_index) if table != NO_TABLE]
    xattrs = sets = b""
    if xattr_ids != NO_TABLE:
        start, count = struct.unpack_from("<QI", image, xattr_ids)
        xattrs = stored_table(image, start, struct.unpack_from("<Q", image, xattr_ids + 16)[0])
        sets = indexed_table(image, xattr_ids + 16, 16 * count)
    parts = [
        stored_table(image, inodes, listings),
        stored_table(image, listings, min(first_of)),
        indexed_table(image, fragment_index, 16 * fragments) if fragments else b"",
        xattrs,
        sets,
    ]
    header = struct.pack("<BB5HIHH", compressor, block_log - 12, *map(len, parts), root >> 16, root & 0xFFFF, 0)
    return header + b"".join(parts) + image[96:inodes]


def make_images() -> dict[str, bytes]:
    """Images by name: complete ones, and ones that taken_apart() has converted."""
    images = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as work:
        tree, file = Path(work, "tree"), Path(work, "image")
        make_tree(tree)
        for number, compressor in enumerate(COMPRESSORS, 1):
            for kind, options in (("whole", []), ("apart", ["-noI", "-noId", "-noX", "-noF"])):
                file.unlink(missing_ok=True)
                subprocess.run(["mksquashfs", tree, file, "-comp", compressor, "-b", "4096", "-xattrs", "-quiet", "-no-progress",
                                "-no-exports", "-nopad", *options], check=True, stdout=subprocess.DEVNULL)
                image = file.read_bytes()
                images[f"{kind}-{compressor}"] = image if kind == "whole" else taken_apart(image, number)
        images["apart-none"] = b"\0" + images["apart-zstd"][1:]
    return images


def sized(image: bytes) -> bytes:
    return len(image).to_bytes(3, "little") + image


def requests(*some: tuple[int, int, bytes]) -> bytes:
    return b"".join(struct.pack("<BBQ", kind, len(body), node) + body for kind, node, body in some)


def make_requests(root: int) -> bytes:
    """One of each request that a server answers, for the root and what is in it."""
    read = struct.pack("<QQIIQII", 0, 0, 4096, 0, 0, 0, 0)
    xattr = struct.pack("<II", 100, 0)
    of_root = [(1, b"a\0"), (3, bytes(16)), (28, read), (44, read), (17, b""), (22, xattr + b"user.x\0"), (23, xattr), (27, bytes(8)),
               (2, bytes(8)), (18, bytes(24)), (1, b".containerize-layer\0"), (1, b".containerize-empty-layer\0"), (5, b""), (15, read)]
    nodes = [1, root, root | 1 << 62, (1 << 64) - 2]
    return requests(*((kind, node, body) for node in nodes for kind, body in of_root))


def image_seeds(target: Path) -> None:
    images = make_images()
    apart = [image for name, image in images.items() if name.startswith("apart")]
    blocks = struct.pack("<QIQI", 96, 1 << 24 | 4096, 4192, 1 << 24 | 100)
    seeds = {
        "reader": images,
        "layers": {f"{number}": sized(image) + apart[0] for number, image in enumerate(apart)},
        "unpack": {"one": apart[0], "two": sized(apart[0]) + apart[1]},
        "prefetch": {f"{number}": sized(image) + blocks for number, image in enumerate(apart)},
        "fuse": {"whole": sized(b"") + b"\0" + make_requests(2), "separate": sized(b"") + b"\1" + make_requests(2),
                 "apart": sized(apart[-1]) + b"\0" + make_requests(2)},
    }
    for harness, inputs in seeds.items():
        (target / harness).mkdir(parents=True, exist_ok=True)
        for name, content in inputs.items():
            (target / harness / name).write_bytes(content)


def main() -> None:
    target = Path(sys.argv[1])
    for harness, pattern in PATTERNS.items():
        if not (target / harness).exists():
            copy_data(target / harness, pattern)
    if not (target / "package").exists():
        package_seeds(target / "package")
    if not (target / "reader").exists():
        image_seeds(target)


main()
