#!/usr/bin/env bash
#
# Prove deploy/run.sh and tests/run.sh on a bare system: a minimal Debian is bootstrapped into a
# temporary folder, the committed state of this repository is cloned into it, and both commands run
# in there, in their own mount and process namespaces, with /proc and /dev but no /sys and no init.
#
# The mirror and apt's network settings are those of the system this runs on.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
top=$PWD
# shellcheck source=deploy/packages.sh
. deploy/packages.sh

usage() {
    cat <<USAGE
usage: tests/fresh.sh [bookworm|trixie] [--quick|--long] [--deploy-only] [--keep]
  bookworm, trixie   the release (this system's own)
  --quick, --long    handed to tests/run.sh
  --deploy-only      run deploy/run.sh --once and leave the tests out
  --keep             leave the folder there, for a look
USAGE
}

say() { printf '== %s\n' "$*"; }
die() {
    printf 'tests/fresh.sh: %s\n' "$*" >&2
    exit 1
}

# shellcheck source=/dev/null
host_release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
release=$host_release
run_flags=()
deploy_only=
keep=
for arg in "$@"; do
    case $arg in
    bookworm | trixie) release=$arg ;;
    --quick | --long) run_flags+=("$arg") ;;
    --deploy-only) deploy_only=1 ;;
    --keep) keep=1 ;;
    -h | --help)
        usage
        exit 0
        ;;
    *)
        usage >&2
        exit 64
        ;;
    esac
done
[ "$(id -u)" = 0 ] || die "needs root: it makes a system of its own and mounts /proc and /dev in it"
packages_need debootstrap git || exit 1

# The first mirror that this system takes its own release from, whatever form its sources have.
mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
    awk -v release="$host_release" '$1 == release { print $2; exit }')
[ -n "$mirror" ] || die "apt's sources name no mirror for $host_release"
proxy=$(apt-config shell proxy Acquire::http::Proxy | sed -n "s/^proxy='\(.*\)'\$/\1/p")
[ -z "$proxy" ] || export http_proxy=$proxy

root=$(mktemp -d "${TMPDIR:-/tmp}/skein-fresh.XXXXXX") || exit 1
cleanup() {
    trap '' INT TERM
    if [ -n "$keep" ]; then
        say "left there: $root"
    else
        rm -rf --one-file-system "$root"
    fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM

say "debootstrap $release"
start=$SECONDS
debootstrap --variant=minbase "$release" "$root" "$mirror" >"$root.log" 2>&1 || {
    tail -20 "$root.log" >&2
    die "debootstrap failed"
}
rm -f "$root.log"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
apt-config dump | grep -E '^Acquire::(http|https|ftp|Check|Retries|ForceIPv)' \
    >"$root/etc/apt/apt.conf.d/99host"
git clone -q --no-hardlinks "$top" "$root/skein" || die "git clone failed"
say "debootstrap and clone: $((SECONDS - start)) s"

# inside COMMAND...: in the new system. Its own process namespace ends whatever the command leaves
# behind; what that was is told first.
inside() {
    # shellcheck disable=SC2016  # expanded by the inner shell
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        LANG=C.UTF-8 ${http_proxy:+http_proxy=$http_proxy} \
        unshare --mount --pid --fork --kill-child bash -c '
            root=$1
            shift
            mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" || exit 1
            chroot "$root" /bin/sh -c "cd /skein && exec \"\$@\"" sh "$@"
            status=$?
            left=0
            for dir in "$root"/proc/[0-9]*; do
                pid=${dir##*/}
                [ "$pid" != 1 ] && [ "$pid" != $$ ] || continue
                name=$(tr "\0" " " 2>/dev/null <"$dir/cmdline") || continue
                [ -n "$name" ] || continue
                echo "left behind: $pid $name"
                left=1
            done
            [ $left = 0 ] || status=70
            exit $status' bash "$root" "$@" </dev/null
}

result=0
say "$release: deploy/run.sh --once"
start=$SECONDS
inside deploy/run.sh --once || result=$?
say "$release: deploy/run.sh --once: status $result, $((SECONDS - start)) s"
[ $result = 0 ] || exit $result

if [ -z "$deploy_only" ]; then
    say "$release: tests/run.sh ${run_flags[*]}"
    start=$SECONDS
    inside tests/run.sh "${run_flags[@]}" || result=$?
    say "$release: tests/run.sh: status $result, $((SECONDS - start)) s"
fi
exit $result
