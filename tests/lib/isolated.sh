#!/usr/bin/env bash
# Runs a command with its own pid namespace, /tmp and home of the test user, so that test files can run side by side without
# each other's leftovers. Without root, it only runs the command.  Usage: tests/lib/isolated.sh COMMAND [ARGUMENT ...]
set -euo pipefail
[ "$(id -u)" = 0 ] || exec "$@"
user=containerize-test
home=$(getent passwd "$user" | cut -d: -f6)
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
place=$(mktemp -d /var/tmp/containerize-test-XXXXXX)
trap 'rm -rf --one-file-system "$place"' EXIT
chmod 755 "$place"
mkdir -m 1777 "$place/tmp"
install -d -o "$user" -g "$user" "$place/home"
unshare --mount --propagation private --pid --fork --kill-child --mount-proc bash -euc '
    place=$1 home=$2
    for seen in "$3" "${CONTAINERIZE_BUILD:-}"; do
        if [[ $seen == /tmp/* && ! -e $place$seen ]]; then  # what is below /tmp stays there
            mkdir -p "$place$seen"
            mount --bind "$seen" "$place$seen"
        fi
    done
    mount --rbind "$place/tmp" /tmp
    mount --bind "$place/home" "$home"
    shift 3
    # Not by exec: this shell is the first process of the namespace and reaps what others leave, as an init does.
    status=0
    "$@" || status=$?
    exit $status' isolated "$place" "$home" "$source_dir" "$@"
