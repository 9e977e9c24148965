#!/usr/bin/env bash
# Packing a tree: ours beside mksquashfs, at equal settings, interleaved.  Usage: tests/bench/pack.sh TREE [RUNS]
set -euo pipefail
tree=$1 runs=${2:-7}
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$source_dir/build/release}
cmake --build "$build" --target pack_tree >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jobs=$(nproc)

ours() { "$build/tests/bench/pack_tree" "$tree" "$work/ours" zstd:3 128K "$jobs"; }
mksquashfs_() {
    mksquashfs "$tree" "$work/theirs" -comp zstd -Xcompression-level 3 -b 128K -processors "$jobs" -quiet -no-progress -noappend
}
seconds() { local start=$EPOCHREALTIME; "$@"; awk -v a="$start" -v b="$EPOCHREALTIME" "BEGIN { print b - a }"; }

for ((i = 0; i < runs; i++)); do
    rm -f "$work/ours" "$work/theirs"
    sync
    seconds ours >>"$work/ours.times"
    sync
    seconds mksquashfs_ >>"$work/theirs.times"
done
echo "| packing | median s | spread s | image |"
echo "| --- | --- | --- | --- |"
for name in ours theirs; do
    sort -n "$work/$name.times" | awk -v name="$name" -v size="$(stat -c %s "$work/$name")" '
        { t[NR] = $1 }
        END { printf "| %s | %.2f | %.2f to %.2f | %.1f MB |\n", name == "ours" ? "containerize" : "mksquashfs",
              t[int((NR + 1) / 2)], t[1], t[NR], size / 1e6 }'
done
