"""Wheels of a few files, made by the tests."""

import zipfile
from pathlib import Path


def wheel(place: Path, name: str, files: dict) -> Path:
    """A wheel of these files: {path below site-packages: content}. It needs nothing and has no checksums."""
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{name}-1.0-py3-none-any.whl"
    information = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for target, content in files.items():
            archive.writestr(target, content)
        archive.writestr(f"{information}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{information}/WHEEL", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{information}/RECORD", "".join(f"{one},,\n" for one in [*files, f"{information}/METADATA", f"{information}/WHEEL",
                                                                                   f"{information}/RECORD"]))
    return path
