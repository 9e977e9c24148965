#!/usr/bin/env bash
# clang-tidy over all sources of a build directory; a file that was found good is not looked at again until it, a header
# or the configuration changes.  Usage: tests/lib/tidy.sh BUILD_DIRECTORY
set -euo pipefail
build=$1
stamps=$build/tidy
mkdir -p "$stamps"
common=$(cat .clang-tidy $(git ls-files '*.h') | sha256sum | cut -c1-16)

check() {
    local file=$1 sum
    sum=$(cat "$file" <(echo "$common") | sha256sum | cut -c1-32)
    [ -e "$stamps/$sum" ] && return
    clang-tidy-19 --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option "$file" 2>/dev/null || {
        echo "clang-tidy: $file"
        return 1
    }
    touch "$stamps/$sum"
}
export -f check
export build stamps common
git ls-files 'src/*.cpp' 'wrappers/*.cpp' | xargs -P "$(nproc)" -I{} bash -c 'check {}'
