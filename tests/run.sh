#!/usr/bin/env bash
#
# Every test, by one command: installs what the tests need (as root), builds, and runs them section
# by section. The first section that fails ends the run; a summary with times closes it either way.
#
#   --quick   gcc release build only: unit tests, structure, processes, deploy
#   --long    also fuzzes for a while and simulates many more seeds
#
# The proxycheck suite runs, too, if PROXYCHECK (or ../shared/proxycheck) is its folder.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
top=$PWD
# shellcheck source=deploy/packages.sh
. deploy/packages.sh

mode=full
for arg in "$@"; do
    case $arg in
    --quick) mode=quick ;;
    --long) mode=long ;;
    -h | --help)
        sed -n '3,10s/^# \{0,1\}//p' "$0"
        exit 0
        ;;
    *)
        echo "usage: tests/run.sh [--quick|--long]" >&2
        exit 64
        ;;
    esac
done

[ $mode != long ] || export SKEIN_LONG=1 # more seeds of the chaos tests
python=/usr/bin/python3
logs=build/test-logs
mkdir -p $logs
jobs=$(nproc)
summary=()
started=$SECONDS

finish() {
    local result=$?
    trap - EXIT
    echo
    echo "---- summary ($mode) ----"
    [ ${#summary[@]} = 0 ] || printf '%s\n' "${summary[@]}"
    if [ $result = 0 ]; then
        echo "tests/run.sh: all sections passed in $((SECONDS - started)) s"
    else
        echo "tests/run.sh: FAILED after $((SECONDS - started)) s"
    fi
    exit $result
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# section NAME COMMAND...
section() {
    local name=$1 start=$SECONDS status=0
    shift
    echo
    echo "---- $name ----"
    "$@" || status=$?
    summary+=("$(printf '%-28s %4d s  %s' "$name" $((SECONDS - start)) \
        "$([ $status = 0 ] && echo passed || echo "FAILED ($status)")")")
    [ $status = 0 ] || exit 1
}

# build PRESET [TARGET...]: quiet unless it fails. Warnings are errors.
build() {
    local log=$logs/build-$1.log preset=$1
    shift
    if { cmake --preset "$preset" &&
        cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}; } >"$log" 2>&1; then
        tail -1 "$log"
    else
        grep -E -A12 'error:|FAILED|Error' "$log" | head -80
        echo "the whole log: $log"
        return 1
    fi
}

# unit PRESET [CTEST ARGUMENT...]: unit tests, simulator and fuzz corpora.
unit() {
    local preset=$1
    shift
    ctest --preset "$preset" -j "$jobs" --no-tests=error "$@"
}

# processes PRESET SLOW [PYTEST ARGUMENT...]: tests against real nodes of that build.
processes() {
    local preset=$1 slow=$2
    shift 2
    SKEIN_BIN=$top/build/$preset SKEIN_TEST_SLOW=$slow PYTHONDONTWRITEBYTECODE=1 \
        $python -m pytest -q -p no:cacheprovider --durations=5 "$@" tests/process
}

# proxycheck PRESET: the black-box suite, against the node of that build.
proxycheck() { SKEIN_BIN=$top/build/$1 tests/proxycheck/run.sh; }

structure() { PYTHONDONTWRITEBYTECODE=1 $python -m pytest -q -p no:cacheprovider tests/structure; }

scripts() { bash -n deploy/run.sh && bash -n tests/fresh.sh && deploy/run.sh --once; }

fuzz() {
    local target found=
    for target in build/fuzz/fuzz_* build/fuzz/*/fuzz_* build/fuzz/*/*/fuzz_*; do
        [ -f "$target" ] && [ -x "$target" ] || continue
        found=1
        local what=${target##*/fuzz_}
        mkdir -p "build/fuzz/found/$what"
        case $what in
        stream | reply) $python tests/support/streams.py build/fuzz/found/{stream,reply} ;;
        esac
        echo "fuzz_$what"
        "$target" -max_total_time=60 -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
            -artifact_prefix="build/fuzz/found/$what-" "build/fuzz/found/$what" \
            "tests/fuzz/corpus/$what" || return 1
    done
    [ -n "$found" ] || { echo "no fuzz targets were built" && return 1; }
}

# simulate FIRST COUNT [ARGUMENT...]: that many seeds, one process per CPU.
simulate() {
    local first=$1 share=$((($2 + jobs - 1) / jobs)) i pids=() status=0
    shift 2
    for ((i = 0; i < jobs; i++)); do
        build/release/skein_sim --first-seed $((first + i * share)) --seeds $share "$@" &
        pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i" || status=$?; done
    return $status
}

packages() {
    local names=("${packages_build[@]}" "${packages_test[@]}")
    [ $mode = quick ] || names+=("${packages_gate[@]}")
    [ $mode != long ] || names+=("${packages_fuzz[@]}")
    PACKAGES_LOG=$logs/packages.log packages_need "${names[@]}"
}

section packages packages
section structure structure
section "build release" build release
section "unit tests" unit release
if [ $mode != quick ]; then
    section "simulator, 200 seeds" simulate 1 200 --nodes 20 --loss 0.2
    section "build clang" build clang skeind skeinctl
    section "build asan" build asan
    section "unit tests, asan+ubsan" unit asan
    section "build tsan" build tsan
    section "unit tests, tsan" unit tsan -E '^(sim|fuzz)'
fi
section processes processes release 1
if [ $mode != quick ]; then
    section proxycheck proxycheck release
    section "proxycheck, asan+ubsan" proxycheck asan
    section "processes, asan+ubsan" processes asan 4 -m 'not timing'
    section "processes, tsan" processes tsan 6 -m smoke
fi
section "deploy/run.sh --once" scripts
if [ $mode = long ]; then
    section "build clang, tests" build clang
    section "build fuzz" build fuzz
    section fuzz fuzz
    section "simulator, many seeds" simulate 1001 2000 --nodes 20 --loss 0.2 --faults 0.6
    section "simulator, 100 nodes" simulate 5001 20 --nodes 100 --loss 0.2
fi
