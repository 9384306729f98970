#!/bin/sh
# Slurm's Epilog, as root after each job: undoes the prolog and removes what a killed deltabench left. It ends with 1, and Slurm then
# drains the host, if something stays that would disturb the next job. It touches nothing while somebody holds the lock of the host.
set -u
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
ROOT=${ROOT:-} MIN_FREE_GB=5
# shellcheck source=/dev/null
[ ! -f "$ROOT/etc/default/deltabench-node" ] || . "$ROOT/etc/default/deltabench-node"
lock=$ROOT/var/tmp/deltabench-host.lock note=$ROOT/run/deltabench-node bad=0
#OURS
if [ -f "$lock" ] && ! flock -n "$lock" true; then
    echo "the lock of this host is held: $(cat "$lock")"
    exit 1
fi
for pid in $(left_servers); do kill -INT "$pid" 2>/dev/null && echo "stopped server $pid"; done
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -n "$(left_servers)" ] && sleep 1; done
left=$(left_servers | tr '\n' ' ')
[ -z "$left" ] || { echo "servers that do not end: $left"; bad=1; }
# A group with processes in it cannot be removed; one of a run that goes on has some.
find "$ROOT/sys/fs/cgroup" -depth -type d -name 'deltabench-*' 2>/dev/null | while read -r group; do
    rmdir "$group" 2>/dev/null && echo "removed $group"
done
# Backwards, and only what still has the value that the prolog set.
[ ! -f "$note" ] || tac "$note" | while read -r file old new; do
    if [ "$file" = swap ]; then
        swapon "$old" && echo "swap on: $old"
    elif [ "$(sed 's/.*\[\(.*\)\].*/\1/' "$file" 2>/dev/null)" = "$new" ]; then
        echo "$old" >"$file" && echo "$file: $new -> $old"
    else
        echo "$file: left alone, because somebody changed it"
    fi
done
rm -f "$note"
free=$(df -Pk "$ROOT/var/tmp" | awk 'NR == 2 { print int($4 / 1048576) }')
[ "${free:-0}" -ge "$MIN_FREE_GB" ] || { echo "only ${free:-0} GB are free in /var/tmp"; bad=1; }
exit "$bad"
