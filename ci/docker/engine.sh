#!/bin/sh
# A Docker engine of its own, beside any other: everything of it is in one folder.
#
#     engine.sh start DIR [OPTION OF dockerd…]    prints the value for DOCKER_HOST
#     engine.sh stop DIR
#     engine.sh kill DIR                          as if the engine had crashed
#     engine.sh remove DIR                        stop it, and remove all that it had
#
# Needs root. The stand-in for NVIDIA's hook is on its PATH, unless MLR_GPU_STAND_IN is 0. A second
# engine on one machine needs `--bridge=none --iptables=false --ip6tables=false`.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
action=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
socket=$dir/d.sock
shift 2

start() {
    if [ ! -e /sys/fs/cgroup/cgroup.controllers ] && [ ! -d /sys/fs/cgroup/memory ]; then
        cgroupfs-mount
    fi
    [ "${MLR_GPU_STAND_IN:-1}" = 0 ] || PATH=$here/stand-in:$PATH
    # A shell has what it runs in the background ignore Ctrl-C, and containers would inherit that.
    setsid env --default-signal=INT,QUIT dockerd --host "unix://$socket" --data-root "$dir/data" \
        --exec-root "$dir/exec" --pidfile "$dir/d.pid" "$@" \
        </dev/null >"$dir/log" 2>&1 &
    wait_for "$!"
    echo "unix://$socket"
}

wait_for() {
    for _ in $(seq 300); do
        docker --host "unix://$socket" version >/dev/null 2>&1 && return
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    tail -n 20 "$dir/log" >&2
    exit 1
}

end() {
    [ -s "$dir/d.pid" ] || return 0
    pid=$(cat "$dir/d.pid")
    kill -s "$1" "$pid" 2>/dev/null || true
    for _ in $(seq 300); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.1
    done
    echo "engine $pid does not end" >&2
    exit 1
}

remove() {
    end TERM
    # A killed engine leaves what it had mounted.
    awk -v "dir=$dir/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | sort -r |
        xargs -r umount --lazy
    rm -rf "$dir"
}

case $action in
start) start "$@" ;;
stop) end TERM ;;
kill) end KILL ;;
remove) remove ;;
*)
    sed -n '2,10p' "$0" >&2
    exit 2
    ;;
esac
