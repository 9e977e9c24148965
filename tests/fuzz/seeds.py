#!/usr/bin/env python3
"""Makes inputs for fuzzers to start from: what real tools write, and what lies among the fixtures. What is made already stays.
Usage: tests/fuzz/seeds.py DIRECTORY"""

import shutil
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
FIXTURES = SOURCE.parent / "shared" / "fixtures"
#: No larger file is a seed: what is short is mutated faster.
LARGEST = 64 << 10
MOST = 200

#: Harness -> files among the fixtures that it understands.
PATTERNS: dict[str, str] = {}


def copy_fixtures(directory: Path, pattern: str) -> None:
    directory.mkdir(parents=True)
    files = [path for path in sorted(FIXTURES.glob(pattern)) if path.is_file() and path.stat().st_size <= LARGEST]
    for number, path in enumerate(files[:MOST]):
        shutil.copyfile(path, directory / f"{number}-{path.name}")


def main() -> None:
    target = Path(sys.argv[1])
    for harness, pattern in PATTERNS.items():
        if not (target / harness).exists():
            copy_fixtures(target / harness, pattern)


main()
