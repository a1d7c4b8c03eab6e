#!/usr/bin/env bash
#
# Runs a proxycheck suite against skeind. The suite is not part of this repository.
#
#   tests/proxycheck/run.sh [FOLDER] [OPTION OF run.py ...]
#
# FOLDER (or the variable PROXYCHECK) is the suite's folder; without one, or when it is not there,
# this says so and exits 0. SKEIN_BIN: the folder of skeind and skeinctl (build/release).
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)

suite=${PROXYCHECK:-}
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
    suite=$1
    shift
fi
if [ -z "$suite" ]; then
    echo "proxycheck: skipped: no suite given (a folder as argument, or PROXYCHECK)"
    exit 0
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
exec /usr/bin/python3 "$suite/run.py" --adapter "$here/adapter" "$@"
