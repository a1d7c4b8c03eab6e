#!/usr/bin/env bash
#
# A three-node cluster on this machine, with real backends behind it: one command on a fresh
# Debian 12 or 13. Installs what is missing (as root), builds, starts three skeind and three nginx
# on loopback, applies deploy/examples/routes.yaml, sends requests through every node, says what
# answered, and stays up until Ctrl-C. With --once it stops again at once and exits 0 if every
# request was answered.
#
# Nothing outside build/ is touched, and no process outlives this script.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
top=$PWD
# shellcheck source=deploy/packages.sh
. deploy/packages.sh

usage() {
    echo "usage: deploy/run.sh [--once]"
    echo "  --once  stop after the requests; exit 0 if every one was answered"
}

once=
case "${1:-}" in
'') ;;
--once) once=1 ;;
-h | --help)
    usage
    exit 0
    ;;
*)
    usage >&2
    exit 64
    ;;
esac

nodes=(r1 r2 r3)
backends=(web-1 web-2 api-1)
http_port() { echo $((21080 + ${1#r})); }
https_port() { echo $((21442 + ${1#r})); }
gossip_port() { echo $((21745 + ${1#r})); }
admin_port() { echo $((21979 + ${1#r})); }
admin_url() { echo "http://127.0.0.1:$(admin_port "$1")"; }
backend_port() { # as in deploy/examples/routes.yaml
    case $1 in web-1) echo 21801 ;; web-2) echo 21802 ;; api-1) echo 21803 ;; esac
}

say() { printf '%s\n' "$*"; }
die() {
    printf 'deploy/run.sh: %s\n' "$*" >&2
    exit 1
}

# ---- life and death of the processes ----

declare -A pids=() # name of a node or backend -> its process
tick=

alive() { [ -n "${pids[$1]:-}" ] && ! ended "${pids[$1]}"; }

# What was started again by hand, with the files of this run, belongs to it too.
started_by_hand() {
    local dir pid argv
    for dir in /proc/[0-9]*; do
        pid=${dir#/proc/}
        argv=$(tr '\0' '\n' 2>/dev/null <"$dir/cmdline") || continue
        case ${argv%%$'\n'*} in *skeind | *nginx) ;; *) continue ;; esac
        case "$argv" in
        *"$run_folder/"*) ;;
        *"${run_folder#"$top"/}/"*) [ "$(readlink "$dir/cwd")" = "$top" ] || continue ;;
        *) continue ;;
        esac
        case " ${pids[*]} " in *" $pid "*) ;; *) echo "$pid" ;; esac
    done
}

# Ended, though its parent may not have asked for its status yet.
ended() {
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 0
    stat=${stat##*) }
    [ "${stat%% *}" = Z ]
}

stop_pids() { # SECONDS PID...: ask, wait, insist
    local deadline=$((SECONDS + $1)) pid
    shift
    for pid in "$@"; do kill -TERM "$pid" 2>/dev/null; done
    for pid in "$@"; do
        until ended "$pid"; do
            if [ $SECONDS -ge $deadline ]; then
                say "process $pid does not stop; killing it"
                kill -KILL "$pid" 2>/dev/null
                break
            fi
            sleep 0.05
        done
    done
}

# Reached on every way out: nodes first, so that they can finish what they have in flight.
stop_all() {
    trap '' INT TERM HUP
    trap - EXIT
    [ -z "$tick" ] || kill "$tick" 2>/dev/null
    local name list=()
    for name in "${nodes[@]}"; do ! alive "$name" || list+=("${pids[$name]}"); done
    # shellcheck disable=SC2046  # a list of numbers
    stop_pids 20 "${list[@]}" $(started_by_hand)
    list=()
    for name in "${backends[@]}"; do ! alive "$name" || list+=("${pids[$name]}"); done
    stop_pids 10 "${list[@]}"
    wait
    [ "$run_folder" = "$top/build/run" ] || rm -rf "$run_folder"
}

# ---- files of this run ----

prepare_files() {
    local name other join
    for name in "${nodes[@]}"; do
        mkdir -p "$run_folder/$name/data"
        join=
        for other in "${nodes[@]}"; do
            [ "$other" = "$name" ] || join="$join\"127.0.0.1:$(gossip_port "$other")\", "
        done
        cat >"$run_folder/$name/skein.yaml" <<SETTINGS
node: {name: $name, dataDir: "$run_folder/$name/data", workers: 2}
listen: {http: ["127.0.0.1:$(http_port "$name")"], https: ["127.0.0.1:$(https_port "$name")"], tcp: [127.0.0.${name#r}]}
cluster:
  bind: "127.0.0.1:$(gossip_port "$name")"
  advertise: "127.0.0.1:$(gossip_port "$name")"
  join: [${join%, }]
  keyFile: "$run_folder/cluster.key"
admin:
  unix: "$run_folder/$name/admin.sock"
  listen: "127.0.0.1:$(admin_port "$name")"
log: {level: info, format: text, access: "$run_folder/$name/access.log"}
SETTINGS
    done
    (umask 077 && build/release/skeinctl keygen >"$run_folder/cluster.key") ||
        die "skeinctl keygen failed"

    local user=
    [ "$(id -u)" != 0 ] || user='user root;'
    for name in "${backends[@]}"; do
        mkdir -p "$run_folder/$name/html" "$run_folder/$name/tmp"
        echo "$name" >"$run_folder/$name/html/index.html"
        cat >"$run_folder/$name/nginx.conf" <<NGINX
$user
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events { worker_connections 1024; }
http {
    access_log access.log;
    client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp;
    uwsgi_temp_path tmp; scgi_temp_path tmp;
    keepalive_requests 100000;
    server {
        listen 127.0.0.1:$(backend_port "$name");
        root html;
        default_type text/plain;
        location / { try_files \$uri \$uri/index.html /index.html =404; }
    }
}
NGINX
    done
}

# Whatever listens there would answer in our place.
check_ports() {
    local name port
    for name in "${nodes[@]}"; do
        for port in "$(http_port "$name")" "$(https_port "$name")" "$(gossip_port "$name")" "$(admin_port "$name")"; do
            port_free "$port" || die "port $port on 127.0.0.1 is in use, and node $name needs it"
        done
    done
    for name in "${backends[@]}"; do
        port=$(backend_port "$name")
        port_free "$port" || die "port $port on 127.0.0.1 is in use, and backend $name needs it"
    done
}
port_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

start_backend() {
    nginx -p "$run_folder/$1" -e error.log -c nginx.conf >>"$run_folder/$1/error.log" 2>&1 &
    pids[$1]=$!
}

start_node() {
    build/release/skeind --config "$run_folder/$1/skein.yaml" >>"$run_folder/$1/log" 2>&1 &
    pids[$1]=$!
}

# wait_until SECONDS NAME WHAT COMMAND...: fails when the time is up or process NAME has ended.
wait_until() {
    local deadline=$((SECONDS + $1)) name=$2 what=$3 file
    shift 3
    until "$@" >/dev/null 2>&1; do
        if ! alive "$name" || [ $SECONDS -ge $deadline ]; then
            for file in "$run_folder/$name"/{log,error.log}; do
                [ ! -s "$file" ] || tail -15 "$file" >&2
            done
            alive "$name" || die "$name has ended; its last lines are above"
            case $name in r?) curl -s -m 1 "$(admin_url "$name")/readyz" >&2 ;; esac
            die "$name $what"
        fi
        sleep 0.05
    done
}

# ---- requests ----

requests_each=12
checks=( # host, path, backends that may answer
    "shop.example.com / web-1 web-2"
    "shop.example.com /api api-1"
    "one.apps.example.com / web-1 web-2 api-1"
    "two.apps.example.com /some/page web-1 web-2 api-1"
)

# ask NODE HOST PATH: prints "STATUS BACKEND"
ask() {
    local out
    out=$(curl -s -m 5 -w '%{http_code}' -H "Host: $2" "http://127.0.0.1:$(http_port "$1")$3")
    echo "${out: -3} $(head -1 <<<"$out" | tr -c 'a-z0-9-\n' ' ' | cut -c1-40)"
}

served_by_any() { # NODE CHECK: one request that gets what it should
    local host path rest answer
    read -r host path rest <<<"$2"
    answer=$(ask "$1" "$host" "$path")
    [ "${answer%% *}" = 200 ] && [[ " $rest " == *" ${answer#* } "* ]]
}

served_over_tls() { # NODE: secure.example.com, with the cluster's own certificate
    local port
    port=$(https_port "$1")
    curl -skf -m 5 --resolve "secure.example.com:$port:127.0.0.1" \
        "https://secure.example.com:$port/" | grep -q '^web-'
}

# Prints the table; returns 1 if any request was not answered by a backend it was meant for.
send_requests() {
    local node check host path rest answer i ok bad=0 name summary
    say ""
    printf '%-5s %-42s %5s %5s  %s\n' NODE URL SENT OK 'ANSWERED BY'
    for node in "${nodes[@]}"; do
        for check in "${checks[@]}"; do
            read -r host path rest <<<"$check"
            local -A count=()
            ok=0
            for ((i = 0; i < requests_each; i++)); do
                answer=$(ask "$node" "$host" "$path")
                name=${answer#* }
                if [ "${answer%% *}" = 200 ] && [[ " $rest " == *" $name "* ]]; then
                    ok=$((ok + 1))
                else
                    name="status ${answer%% *}"
                    bad=$((bad + 1))
                fi
                count[$name]=$((${count[$name]:-0} + 1))
            done
            summary=
            for name in $(printf '%s\n' "${!count[@]}" | tr ' ' '_' | sort); do
                summary="$summary${name//_/ } ${count[${name//_/ }]}, "
            done
            printf '%-5s %-42s %5d %5d  %s\n' "$node" "http://$host$path" $requests_each $ok \
                "${summary%, }"
        done
    done
    say ""
    [ $bad = 0 ] || say "$bad requests were not answered as they should."
    return $((bad > 0))
}

say_what_to_try() {
    local ctl="build/release/skeinctl"
    say "The cluster is up. Logs and data: $run_folder/r1, r2, r3. In another terminal, in $top:"
    say ""
    say "  export SKEIN_SERVER=$(admin_url r1)     # any node will do"
    say "  curl -H 'Host: shop.example.com' http://127.0.0.1:$(http_port r3)/api"
    say "  curl -k --resolve secure.example.com:$(https_port r2):127.0.0.1 https://secure.example.com:$(https_port r2)/"
    say "  curl http://127.0.0.3:21900/             # the TcpRoute, on r3"
    say "  $ctl cluster                             # members, readiness, revision, lag"
    say "  $ctl get routes -n shop                  # -o json, -o yaml; also tcproutes, endpoints ..."
    say "  $ctl delete route -n shop shop-api       # ask curl again: gone on every node"
    say "  $ctl apply -f deploy/examples/routes.yaml"
    say "  kill -9 ${pids[r2]}                             # node r2; r1 and r3 go on"
    say "  build/release/skeind --config $run_folder/r2/skein.yaml     # r2 again: it catches up"
    say "  kill ${pids[web-1]}                                # a backend: requests go to the others"
    say ""
    say "Ctrl-C stops everything."
}

# Say once when a process ends, and how to bring a node back.
stay_up() {
    local name
    while :; do
        sleep 1 &
        tick=$!
        wait $tick
        for name in "${nodes[@]}" "${backends[@]}"; do
            if [ -n "${pids[$name]:-}" ] && ! alive "$name"; then
                wait "${pids[$name]}"
                say "$name (process ${pids[$name]}) ended with status $?. To start it again:"
                unset "pids[$name]"
                case $name in
                r?) say "  build/release/skeind --config $run_folder/$name/skein.yaml" ;;
                *) say "  nginx -p $run_folder/$name -e error.log -c nginx.conf" ;;
                esac
            fi
        done
    done 2>/dev/null # the shell's own words on the end of a child
}

# ---- the whole ----

mkdir -p build
run_folder=$top/build/run
# A unix socket's path must stay below 108 bytes.
[ ${#run_folder} -le 80 ] || run_folder=$(mktemp -d /tmp/skein.XXXXXX)

export PACKAGES_LOG=$top/build/packages.log
packages_need "${packages_build[@]}" "${packages_demo[@]}" || exit 1

say "Building build/release (log: build/release.log) ..."
{ cmake --preset release && cmake --build --preset release --target skeind skeinctl; } \
    >build/release.log 2>&1 || {
    tail -30 build/release.log >&2
    die "the build failed; the whole log is build/release.log"
}

check_ports
rm -rf "$run_folder"
mkdir -p "$run_folder"
trap stop_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
prepare_files

say "Starting three backends and three nodes ..."
for name in "${backends[@]}"; do start_backend "$name"; done
for name in "${nodes[@]}"; do start_node "$name"; done
for name in "${backends[@]}"; do
    wait_until 10 "$name" "does not answer" \
        curl -sf -m 1 "http://127.0.0.1:$(backend_port "$name")/"
done
for name in "${nodes[@]}"; do
    wait_until 60 "$name" "is not ready" curl -sf -m 1 "$(admin_url "$name")/readyz"
done

SKEIN_SERVER=$(admin_url r1)
export SKEIN_SERVER
for file in routes tls; do
    build/release/skeinctl apply -f deploy/examples/$file.yaml || die "skeinctl apply failed"
done
for name in "${nodes[@]}"; do
    wait_until 10 "$name" "does not serve TLS" served_over_tls "$name"
    for check in "${checks[@]}"; do
        wait_until 10 "$name" "does not serve $check" served_by_any "$name" "$check"
    done
done
build/release/skeinctl cluster || die "skeinctl cluster failed"

send_requests
result=$?
if [ -n "$once" ]; then
    exit $result
fi
say_what_to_try
stay_up
