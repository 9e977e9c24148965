#!/usr/bin/env bash
# Boots releases of Debian, old and new, in virtual machines, and uses a bundle there as an unprivileged user (smoke.py).
# Usage: tests/machines/run.sh [--bundle TARBALL] [NAME ...]      without a name: all machines, or all that the bundle is for
# Without a bundle, builds those of the machines' architectures.
# Needs root. Disks and packages are kept for later runs, which need no network.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
source tests/lib/packages.sh
source "$here/disk.sh"

bundle='' bundle_for='' usable=("${machines[@]}")
if [ "${1:-}" = --bundle ]; then
    bundle=$(realpath "$2") usable=()
    bundle_for=$(sed -n 's/.*-linux-\(x86_64\|aarch64\)\.tar\.zst$/\1/p' <<<"$bundle")
    [ "$bundle_for" ] || { echo "$2: a bundle's name ends in -linux-x86_64.tar.zst or -linux-aarch64.tar.zst" >&2; exit 2; }
    shift 2
    for name in "${machines[@]}"; do
        if [ "$(machine_architecture "$name")" = "$bundle_for" ]; then usable+=("$name"); fi
    done
fi
for name in "$@"; do
    [[ " ${usable[*]} " == *" $name "* ]] || { echo "There is no machine $name${bundle_for:+ for a bundle for $bundle_for}, only ${usable[*]}" >&2; exit 2; }
done
[ $# != 0 ] || set -- "${usable[@]}"

have_packages "${machine_packages[@]}"
cache=/var/cache/containerize-tests
mkdir -p "$cache"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

packages=$("$here/packages.py" "$cache")

# tests_disk ARCHITECTURE: makes the disk that its machines get besides their own, with the bundle
tests_disk() {
    local tests=$work/tests-$1 preset=release target=bundle bundle=$bundle
    if [ -z "$bundle" ]; then
        have_packages "${build_packages[@]}"
        if [ "$1" = aarch64 ]; then
            preset=aarch64 target=bundle-aarch64
            tests/lib/aarch64_sysroot.sh "$cache/aarch64"
        fi
        cmake --preset $preset >/dev/null
        cmake --build --preset $target
        bundle=$(ls -t build/$preset/containerize-*-linux-"$1".tar.zst | sed -n 1p) # of the latest build
    fi
    mkdir -p "$tests/bundle"
    tar -C "$tests/bundle" --strip-components=1 -xf "$bundle"
    cp -r "$here/smoke.py" "$packages/wheels" "$packages/channel" "$tests"
    chown -R root: "$tests"
    mke2fs -q -t ext4 -L tests -d "$tests" "$tests.disk" 1G
}
for name in "$@"; do
    architecture=$(machine_architecture "$name")
    [ -e "$work/tests-$architecture.disk" ] || tests_disk "$architecture"
done

failed=()
for name in "$@"; do
    place=$(machine_files "$name" "$cache/machines")
    printf '\n== %s\n' "$name"
    architecture=$(machine_architecture "$name")
    case $architecture in
        x86_64) board=pc cpu=max console=ttyS0 ;;
        aarch64) board=virt cpu=max,pauth-impdef=on console=ttyAMA0 ;; # the other way to sign pointers takes most of the time
    esac
    # Emulated, so that it works on every machine. Nothing that a machine writes remains.
    timeout 3000 "qemu-system-$architecture" -M $board -accel tcg,thread=multi -cpu $cpu -smp 2 -m 3G \
        -nodefaults -display none -no-reboot -nic none \
        -kernel "$place/vmlinuz" -initrd "$place/initrd.img" -append "root=LABEL=root rw console=$console panic=-1" \
        -drive "file=$place/disk,format=raw,if=virtio,snapshot=on" \
        -drive "file=$work/tests-$architecture.disk,format=raw,if=virtio,snapshot=on" \
        -serial "file:$work/console" \
        -chardev file,id=result,path=/dev/stdout -device virtio-serial -device virtserialport,chardev=result,name=result |
        tee "$work/output" || true
    if ! grep -q '^[0-9]* passed, 0 failed' "$work/output"; then
        failed+=("$name")
        grep -q ' passed, ' "$work/output" || tail -n 50 "$work/console"
    fi
done
[ ${#failed[@]} = 0 ] || { echo "Failed: ${failed[*]}" >&2; exit 1; }
