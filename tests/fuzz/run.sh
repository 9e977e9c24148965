#!/usr/bin/env bash
# Fuzzes all harnesses, or those that are named, for MINUTES each. Prints the numbers of inputs, of edges of the program that
# they reached, and of findings. Fails if there are findings.
# Usage: tests/fuzz/run.sh MINUTES [HARNESS...]      JOBS=N: number of harnesses at a time (1)
set -euo pipefail
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
cd "$source_dir"
build=build/fuzz

# Limits for one input. The caches of a reader may take 48 MB, and the sanitizers need several times as much.
limits=(-rss_limit_mb=1024 -malloc_limit_mb=256 -timeout=10)
# Inputs per process: what allocators and sanitizers keep for millions of inputs would count as memory of one.
most_runs=500000
# A harness with so many findings is broken and is stopped.
most_findings=5

fuzz() {
    local name=$1 seconds=$2 corpus=$build/corpus/$1 findings=$build/findings/$1 log=$build/logs/$1
    local start=$SECONDS found=0 executions=0 edges=0 options=()
    mkdir -p "$corpus" "$findings" "$build/logs"
    [ -e "tests/fuzz/$name.dict" ] && options+=("-dict=tests/fuzz/$name.dict")
    local seeds=()
    for directory in "tests/fuzz/corpus/$name" "$build/seeds/$name"; do
        [ -d "$directory" ] && seeds+=("$directory")
    done
    : >"$log"
    while [ $((SECONDS - start)) -lt "$seconds" ] && [ "$found" -lt "$most_findings" ]; do
        "$build/tests/fuzz/fuzz_$name" "${limits[@]}" "${options[@]}" -runs="$most_runs" -print_final_stats=1 \
            -max_total_time=$((seconds - (SECONDS - start))) -artifact_prefix="$findings/" \
            "$corpus" "${seeds[@]}" >"$log.part" 2>&1 || found=$((found + 1))
        executions=$((executions + $(sed -n 's/^stat::number_of_executed_units: *//p' "$log.part" | tail -1 | grep . || echo 0)))
        edges=$(sed -n 's/.*cov: \([0-9]*\).*/\1/p' "$log.part" | sort -n | tail -1)
        cat "$log.part" >>"$log"
    done
    rm -f "$log.part"
    printf '%-20s %12s %8s %9s %8s\n' "$name" "$executions" "${edges:-0}" "$found" "$((SECONDS - start)) s"
    [ "$found" = 0 ]
}

if [ "${1:-}" = --one ]; then
    fuzz "$2" "$3"
    exit
fi

[ $# -ge 1 ] || { sed -n 's/^# //p' "$0" >&2; exit 2; }
minutes=$1
shift
if [ $# = 0 ]; then
    mapfile -t harnesses < <(git ls-files 'tests/fuzz/*/*.cpp' | sed 's|.*/||; s|\.cpp$||')
    set -- "${harnesses[@]}"
fi

cmake --preset fuzz ${CCACHE_DIR:+-DCMAKE_CXX_COMPILER_LAUNCHER=ccache} >/dev/null
cmake --build "$build" --target "${@/#/fuzz_}" >&2
tests/fuzz/seeds.py "$build/seeds"

export UBSAN_OPTIONS=print_stacktrace=1
ASAN_SYMBOLIZER_PATH=$(command -v llvm-symbolizer || true)
export ASAN_SYMBOLIZER_PATH
printf '%-20s %12s %8s %9s %8s\n' harness executions edges findings time
failed=0
printf '%s\n' "$@" | xargs -P "${JOBS:-1}" -I NAME nice -n 19 "$0" --one NAME $((minutes * 60)) || failed=1
[ "$failed" = 0 ] || echo "Findings are in $build/findings, what the sanitizers said in $build/logs." >&2
exit "$failed"
