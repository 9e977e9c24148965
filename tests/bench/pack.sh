#!/usr/bin/env bash
# Packs a tree with our writer, mksquashfs and, where it is installed, tar2sqfs: with equal settings, taking turns. Our
# writer ends with an fsync, so the others are followed by one.  Usage: tests/bench/pack.sh TREE [RUNS]
set -euo pipefail
tree=$1 runs=${2:-7}
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-$source_dir/build/release}
cmake --build "$build" --target pack_tree >/dev/null
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jobs=$(nproc)

containerize_() { "$build/tests/bench/pack_tree" "$tree" "$work/containerize" zstd:3 128K "$jobs"; }
mksquashfs_() {
    mksquashfs "$tree" "$work/mksquashfs" -comp zstd -Xcompression-level 3 -b 128K -processors "$jobs" -quiet -no-progress -noappend
    sync "$work/mksquashfs"
}
tar2sqfs_() {
    tar -C "$tree" -c . | tar2sqfs -q -f -c zstd -X level=3 -b 128K -j "$jobs" "$work/tar2sqfs" 2>/dev/null
    sync "$work/tar2sqfs"
}
seconds() { local start=$EPOCHREALTIME; "$@"; awk -v a="$start" -v b="$EPOCHREALTIME" "BEGIN { print b - a }"; }

packers=(containerize mksquashfs)
if command -v tar2sqfs >/dev/null; then packers+=(tar2sqfs); fi
for ((i = 0; i < runs; i++)); do
    for name in "${packers[@]}"; do
        rm -f "$work/$name"
        sync
        seconds "${name}_" >>"$work/$name.times"
    done
done
echo "| packing | median s | spread s | image |"
echo "| --- | --- | --- | --- |"
for name in "${packers[@]}"; do
    sort -n "$work/$name.times" | awk -v name="$name" -v size="$(stat -c %s "$work/$name")" '
        { t[NR] = $1 }
        END { printf "| %s | %.2f | %.2f to %.2f | %.1f MB |\n", name, t[int((NR + 1) / 2)], t[1], t[NR], size / 1e6 }'
done
