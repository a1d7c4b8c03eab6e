#!/usr/bin/env bash
#
# Runs a proxycheck suite against skeind. The suite is not part of this repository.
#
#   tests/proxycheck/run.sh [FOLDER] [OPTION OF run.py ...]
#
# FOLDER (or the variable PROXYCHECK, or ../shared/proxycheck beside the repository) is the suite's
# folder; when it is not there, this says so and exits 0. SKEIN_BIN: the folder of skeind and skeinctl
# (build/release). Fails when a case fails, or is skipped for want of anything but MAY_SKIP.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)

# What the node may not be able to do, as the reason of a skipped case (a regular expression).
MAY_SKIP=${MAY_SKIP:-'nothing that is known'}

suite=${PROXYCHECK:-$here/../../../shared/proxycheck}
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
    suite=$1
    shift
fi
if [ ! -f "$suite/run.py" ]; then
    echo "proxycheck: skipped: $suite/run.py is not there"
    exit 0
fi
SKEIN_BIN=$(realpath -m "${SKEIN_BIN:-$here/../../build/release}")
for program in skeind skeinctl; do
    if [ ! -x "$SKEIN_BIN/$program" ]; then
        echo "proxycheck: $SKEIN_BIN/$program is not built (SKEIN_BIN says where)" >&2
        exit 1
    fi
done
export SKEIN_BIN
report=$(mktemp)
trap 'rm -f "$report"' EXIT
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$suite/run.py" --adapter "$here/adapter" \
    --extra-cases "$here/cases" --jobs 4 \
    "$@" >"$report" 2>&1
result=$?
grep -v '^skip ' "$report"
echo "skipped: $(grep -cE "^skip .*($MAY_SKIP)" "$report") for want of $MAY_SKIP"
if grep -E '^skip ' "$report" | grep -vE "$MAY_SKIP"; then
    echo "proxycheck: these cases should not have been skipped" >&2
    exit 1
fi
exit $result
