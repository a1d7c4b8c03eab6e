# shellcheck shell=bash disable=SC2034  # the lists are for those who source this
#
# Which Debian packages the project needs, and how to get what is missing. Sourced by deploy/run.sh
# and tests/run.sh. Names are those of Debian 12 and 13; only llhttp differs between the two.

packages_build=(gcc libc6-dev cmake ninja-build pkg-config protobuf-c-compiler libprotobuf-c-dev
    libuv1-dev libssl-dev libsqlite3-dev libjansson-dev libyaml-dev libcurl4-openssl-dev uthash-dev)
packages_demo=(nginx curl)
packages_test=(libcmocka-dev python3-pytest python3 git curl nginx procps valgrind strace)
packages_gate=(clang)
packages_fuzz=(clang libclang-rt-dev)
packages_bench=(haproxy wrk apache2-utils nginx libnginx-mod-stream python3)

# package_installed NAME
package_installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# The package that brings llhttp: a library where the distribution has one, else its C sources.
# Needs apt's lists.
package_llhttp() {
    case $(apt-cache policy libllhttp-dev 2>/dev/null) in
    *'Candidate: '[0-9]*) echo libllhttp-dev ;;
    *) echo node-llhttp ;;
    esac
}

# packages_missing NAME...: prints those that are not installed.
packages_missing() {
    local name
    for name in "$@"; do
        package_installed "$name" || printf '%s ' "$name"
    done
}

# packages_need NAME...: install what is missing (root), or say what is and fail.
#
# Services must not start by being installed: a policy-rc.d that says no stands in for the time of
# the installation where there is none, and a newly installed nginx is not enabled either.
packages_need() {
    if ! command -v dpkg-query >/dev/null; then
        echo "This is no Debian system: taking it that these are installed: $*" >&2
        return 0
    fi
    local missing
    missing=$(packages_missing "$@")
    package_installed libllhttp-dev || package_installed node-llhttp || missing="${missing}llhttp "
    if [ -z "$missing" ]; then
        return 0
    fi
    if [ "$(id -u)" != 0 ]; then
        echo "Missing packages; as root: apt-get install --no-install-recommends ${missing/llhttp /$(package_llhttp)}" >&2
        return 1
    fi
    echo "Installing: $missing"
    packages_install "$missing" >"${PACKAGES_LOG:-/dev/stdout}" 2>&1 || {
        [ -z "${PACKAGES_LOG:-}" ] || tail -20 "$PACKAGES_LOG" >&2
        echo "Installing packages failed: $missing" >&2
        return 1
    }
}

# packages_install "NAME ...": "llhttp" stands for the package that brings it here.
packages_install() (
    export DEBIAN_FRONTEND=noninteractive
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        trap 'rm -f $policy' EXIT
        trap 'exit 130' INT TERM
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod 755 $policy
    fi
    apt-get update -q || exit 1
    names=" $1 "
    names=${names/ llhttp / $(package_llhttp) }
    # shellcheck disable=SC2086  # a list of names
    apt-get install -q -y --no-install-recommends $names || exit 1
    case $names in
    *" nginx "*) ! command -v systemctl >/dev/null || systemctl disable nginx || true ;;
    esac
)
