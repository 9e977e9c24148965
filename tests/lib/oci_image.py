"""Handmade images: an OCI layout directory with any layers, valid or not."""

import gzip
import hashlib
import io
import json
import struct
import tarfile
from pathlib import Path

import zstandard

MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}


def digest_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tar_of(*members) -> bytes:
    """A tar archive. Members are (name, content), (name, "-> target") for a symbolic link, (name, "=> file") for a hard link, or "directory/"."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for member in members:
            name, content = (member, b"") if isinstance(member, str) else member
            info = tarfile.TarInfo(name.rstrip("/") if name != "./" else ".")
            info.mtime = 1_000_000_000
            if name.endswith("/"):
                info.type, info.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(content, str) and content[:3] in ("-> ", "=> "):
                info.type = tarfile.SYMTYPE if content.startswith("-") else tarfile.LNKTYPE
                info.linkname = content[3:]
            else:
                content = content.encode() if isinstance(content, str) else content
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
                continue
            tar.addfile(info)
    return out.getvalue()


class Layout:
    def __init__(self, path: Path):
        self.path = path
        (path / "blobs/sha256").mkdir(parents=True)
        (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        self.entries = []

    def blob(self, data: bytes, media_type: str) -> dict:
        digest = digest_of(data)
        (self.path / "blobs/sha256" / digest[7:]).write_bytes(data)
        return {"mediaType": media_type, "digest": digest, "size": len(data)}

    def layer(self, tar: bytes, compression: str = "gzip") -> tuple[dict, str]:
        kind = "application/vnd.oci.image.layer.v1.tar"
        if compression == "gzip":
            return self.blob(gzip.compress(tar, mtime=0), kind + "+gzip"), digest_of(tar)
        if compression == "zstd":
            return self.blob(zstandard.ZstdCompressor().compress(tar), kind + "+zstd"), digest_of(tar)
        return self.blob(tar, kind), digest_of(tar)

    def image(self, tag: str, layers, architecture: str, environment=(), diff_ids=None) -> dict:
        """Adds an image of what layer() returned. Returns its manifest's descriptor."""
        config = {
            "architecture": architecture,
            "os": "linux",
            "config": {"Env": list(environment), "WorkingDir": "/srv", "Cmd": ["sh"]},
            "rootfs": {"type": "layers", "diff_ids": diff_ids or [diff_id for _, diff_id in layers]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self.blob(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json"),
            "layers": [descriptor for descriptor, _ in layers],
        }
        descriptor = self.blob(json.dumps(manifest).encode(), manifest["mediaType"])
        if tag:
            self.add(tag, descriptor)
        return descriptor

    def index(self, tag: str, images: dict[str, dict]) -> dict:
        """Adds an index of images for several architectures."""
        index = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{**image, "platform": {"os": "linux", "architecture": name}} for name, image in images.items()],
        }
        descriptor = self.blob(json.dumps(index).encode(), index["mediaType"])
        self.add(tag, descriptor)
        return descriptor

    def add(self, tag: str, descriptor: dict):
        self.entries.append({**descriptor, "annotations": {"org.opencontainers.image.ref.name": tag}})
        (self.path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": self.entries}))


def sif_file(path: Path, squashfs: bytes, machine: str) -> Path:
    """A file as Apptainer lays it out: a header, a table with one partition, and the partition, aligned to a page."""
    architecture = {"amd64": b"02\0", "arm64": b"04\0"}[machine]
    table = struct.pack("<iBIIIqqqqqqq", 0x4004, 1, 1, 1, 0, 4096, len(squashfs), len(squashfs), 0, 0, 0, 0)
    table += b"squashfs.img".ljust(128, b"\0") + struct.pack("<ii3s", 1, 2, architecture).ljust(384, b"\0")
    header = b"#!/usr/bin/env run-singularity\n".ljust(32, b"\0") + b"SIF_MAGIC\0" + b"01\0" + architecture + bytes(16)
    header += struct.pack("<qqqqqqqq", 0, 0, 0, 1, 128, len(table), 4096, len(squashfs))
    path.write_bytes((header + table).ljust(4096, b"\0") + squashfs)
    return path
