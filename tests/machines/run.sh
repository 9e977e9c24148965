#!/usr/bin/env bash
# Boots releases of Debian, old and new, in virtual machines, and uses a bundle there as an unprivileged user (smoke.py).
# Usage: tests/machines/run.sh [--bundle TARBALL] [NAME ...]      without a bundle, builds it; without a name: all machines
# Needs root. Disks and packages are kept for later runs, which need no network.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
source tests/lib/packages.sh
source "$here/disk.sh"

bundle=
if [ "${1:-}" = --bundle ]; then
    bundle=$(realpath "$2")
    shift 2
fi
for name in "$@"; do
    [[ " ${machines[*]} " == *" $name "* ]] || { echo "There is no machine $name, only ${machines[*]}" >&2; exit 2; }
done
[ $# != 0 ] || set -- "${machines[@]}"

have_packages "${machine_packages[@]}"
cache=/var/cache/containerize-tests
mkdir -p "$cache"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if [ -z "$bundle" ]; then
    have_packages "${build_packages[@]}"
    cmake --preset release >/dev/null
    cmake --build --preset bundle
    bundle=$(ls -t build/release/containerize-*-linux-x86_64.tar.zst | sed -n 1p) # of the latest build
fi

# The disk that all machines get besides their own.
packages=$("$here/packages.py" "$cache")
mkdir -p "$work/tests/bundle"
tar -C "$work/tests/bundle" --strip-components=1 -xf "$bundle"
cp -r "$here/smoke.py" "$packages/wheels" "$packages/channel" "$work/tests"
chown -R root: "$work/tests"
mke2fs -q -t ext4 -L tests -d "$work/tests" "$work/disk" 1G

failed=()
for name in "$@"; do
    place=$(machine_files "$name" "$cache/machines")
    printf '\n== %s\n' "$name"
    # Emulated, so that it works on every machine. Nothing that a machine writes remains.
    timeout 3000 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2 -m 3G -nodefaults -display none -no-reboot -nic none \
        -kernel "$place/vmlinuz" -initrd "$place/initrd.img" -append "root=LABEL=root rw console=ttyS0 panic=-1" \
        -drive "file=$place/disk,format=raw,if=virtio,snapshot=on" -drive "file=$work/disk,format=raw,if=virtio,snapshot=on" \
        -serial "file:$work/console" -serial stdio </dev/null | tee "$work/output" || true
    if ! grep -q '^[0-9]* passed, 0 failed' "$work/output"; then
        failed+=("$name")
        grep -q ' passed, ' "$work/output" || tail -n 50 "$work/console"
    fi
done
[ ${#failed[@]} = 0 ] || { echo "Failed: ${failed[*]}" >&2; exit 1; }
