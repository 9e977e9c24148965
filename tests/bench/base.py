#!/usr/bin/env python3
"""What a base image costs at a launch: the same program in an installation on the host's root, and in one on a base made from it.

Usage (as root): tests/bench/base.py [--runs N] [--build DIR]
"""

import argparse
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

from bench import SOURCE, as_user, end_sessions, have_own_sessions, shell
from update import LAUNCH, header, row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--build", type=Path, default=SOURCE / "build/release")
    options = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="containerize-bench-", dir="/var/tmp"))
    try:
        place.chmod(0o1777)
        have_own_sessions(place)
        shell(f"cmake --install {options.build} --prefix {place}/tool >/dev/null")
        tool = place / "tool/bin/containerize"
        (place / "software/bin").mkdir(parents=True)
        (place / "true.c").write_text("int main(void) { return 0; }\n")
        shell(f"gcc -static -O2 -o {place}/software/bin/static-true {place}/true.c")
        base = place / "base.sqfs"
        as_user(tool, "base", "bootstrap", "-o", base, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        prefixes = {"the host": place / "host", "a base": place / "base"}
        for name, more in (("the host", []), ("a base", ["--base", base])):
            as_user(tool, "wrap-install", "--no-profile", "--prefix", prefixes[name], "-w", "bin", *more, place / "software", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        times = {name: [] for name in prefixes}
        for _ in range(options.runs):
            for name, prefix in prefixes.items():
                # The first launch starts the session and is not counted.
                shown = as_user("/usr/bin/python3", "-c", LAUNCH, 21, prefix / "bin/static-true", stdout=subprocess.PIPE, text=True).stdout
                times[name] += [float(one) for one in shown.split()[1:]]
        header("a launch of a static program, in a session")
        for name in prefixes:
            row(f"on {name}", times[name], "ms")
        differences = statistics.median(times["a base"]) - statistics.median(times["the host"])
        print(f"\nwith a base: {differences:+.2f} ms")
    finally:
        end_sessions(place)
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
