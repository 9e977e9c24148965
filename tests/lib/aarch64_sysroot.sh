#!/usr/bin/env bash
# Makes a directory with the libraries and headers of Debian 12 for aarch64, against which aarch64.cmake links. It is
# made again when the list of packages has changed.
# Usage: aarch64_sysroot.sh DIRECTORY
set -euo pipefail
directory=$1
source "$(dirname "$0")/packages.sh"

mapfile -t packages < <(printf '%s\n' "${build_packages[@]}" "${test_packages[@]}" | grep -e '-dev$' | grep -v '^lib\(clang\|fuzzer\|pmix\)')
packages+=(libc6-dev libstdc++-12-dev)
made=$directory.packages
[ -d "$directory" ] && [ "$(cat "$made" 2>/dev/null)" = "${packages[*]}" ] && exit

new=$directory.new
rm -rf "$new" "$directory" "$made"
make_debian_root --variant=extract --architectures=arm64 --include="$(IFS=,; echo "${packages[*]}")" bookworm "$new" \
    'deb http://deb.debian.org/debian bookworm main' 'deb http://deb.debian.org/debian-security bookworm-security main'
# Links such as libz.so -> /lib/aarch64-linux-gnu/libz.so.1 would lead to this machine's files.
find "$new" -type l -lname '/*' -printf '%p\t%l\n' | while IFS=$'\t' read -r link target; do
    ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$new$target")" "$link"
done
mv "$new" "$directory"
echo "${packages[*]}" >"$made"
