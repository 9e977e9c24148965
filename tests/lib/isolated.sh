#!/usr/bin/env bash
# Runs a command with processes, a /tmp and a test user's home of its own, so that files of tests can run side by side and
# none finds what another has left. Without root, it is simply run.  Usage: tests/lib/isolated.sh COMMAND [ARGUMENT ...]
set -euo pipefail
[ "$(id -u)" = 0 ] || exec "$@"
user=containerize-test
home=$(getent passwd "$user" | cut -d: -f6)
place=$(mktemp -d /var/tmp/containerize-test-XXXXXX)
trap 'rm -rf --one-file-system "$place"' EXIT
chmod 755 "$place"
mkdir -m 1777 "$place/tmp"
install -d -o "$user" -g "$user" "$place/home"
unshare --mount --propagation private --pid --fork --kill-child --mount-proc bash -euc '
    mount --bind "$1/tmp" /tmp
    mount --bind "$1/home" "$2"
    shift 2
    exec "$@"' isolated "$place" "$home" "$@"
