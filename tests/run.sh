#!/usr/bin/env bash
# Runs all tests on a bare Debian 12: installs what they need, builds, checks the style, and runs everything.
# Usage: tests/run.sh [OPTIONS OF CTEST]      for example: tests/run.sh -L unit, tests/run.sh -R moved
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/.." && pwd)
cd "$source_dir"
source tests/lib/packages.sh

have_packages "${build_packages[@]}" "${run_packages[@]}" "${test_packages[@]}"

# Downloads, compiled objects, libraries for aarch64 and clang-tidy's results are kept between runs.
cache=/var/cache/containerize-tests
[ -w "$cache" ] || { as_root mkdir -p "$cache" && as_root chown "$(id -u)" "$cache"; }
export CCACHE_DIR=$cache/ccache CCACHE_BASEDIR=$source_dir CCACHE_NOHASHDIR=1 CCACHE_MAXSIZE=5G

step() { printf '\n== %s\n' "$*"; }

build() {
    local preset=$1
    step "Building ($preset)"
    cmake --preset "$preset" -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache >/dev/null
    cmake --build "build/$preset"
}

cpp_files() { git ls-files '*.cpp' '*.h'; }

step "Format"
cpp_files | xargs clang-format --dry-run --Werror

build release
cmake --build --preset bundle >/dev/null
step "clang-tidy"
tests/lib/tidy.py build/release "$cache/tidy"
build asan

# End-to-end tests run as an unprivileged user, like the program itself; another user tries to get in its way.
if [ "$(id -u)" = 0 ]; then
    for user in containerize-test containerize-other; do
        id "$user" >/dev/null 2>&1 || useradd --create-home --shell /bin/bash "$user"
    done
    [ -e /dev/fuse ] && chmod 666 /dev/fuse
    chown containerize-test: "$cache"
fi

at_once=$((2 * $(nproc)))  # tests also wait: for servers, other nodes and time limits
if [ $# = 0 ]; then
    tests/lib/aarch64_sysroot.sh "$cache/aarch64"
    build aarch64
    cmake --build --preset bundle-aarch64 >/dev/null
    step "Unit tests for aarch64"
    ctest --preset aarch64 -j "$at_once"
fi
step "Unit tests under AddressSanitizer and UndefinedBehaviorSanitizer"
ctest --test-dir build/asan --output-on-failure -j "$at_once" -L unit
step "All tests"
if [ $# = 0 ]; then set -- -LE long; fi
ctest --test-dir build/release --output-on-failure -j "$at_once" "$@"
