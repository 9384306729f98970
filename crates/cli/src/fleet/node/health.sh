#!/bin/sh
# Slurm's HealthCheckProgram, as root on idle hosts (HealthCheckNodeState=IDLE): prints why this host is unfit, drains it with that
# reason, and ends with 1. It changes nothing else.
set -u
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
ROOT=${ROOT:-} MIN_FREE_GB=5
# shellcheck source=/dev/null
[ ! -f "$ROOT/etc/default/deltabench-node" ] || . "$ROOT/etc/default/deltabench-node"
lock=$ROOT/var/tmp/deltabench-host.lock reason=
#OURS
unfit() { reason="$reason${reason:+; }$1"; }
free=$(df -Pk "$ROOT/var/tmp" | awk 'NR == 2 { print int($4 / 1048576) }')
[ "${free:-0}" -ge "$MIN_FREE_GB" ] || unfit "only ${free:-0} GB are free in /var/tmp"
if command -v timedatectl >/dev/null 2>&1; then
    [ "$(timedatectl show -p NTPSynchronized --value 2>/dev/null)" != no ] || unfit 'the clock is not synchronised'
elif command -v chronyc >/dev/null 2>&1; then
    chronyc -n tracking 2>/dev/null | grep -q '^Leap status *: Normal' || unfit 'the clock is not synchronised'
fi
# Through a link two measurements would not see each other.
[ ! -L "$lock" ] || unfit 'the lock of the host is a link'
# Servers of somebody who holds the lock of the host are at work.
if [ ! -f "$lock" ] || flock -n "$lock" true; then
    left=$(left_servers | tr '\n' ' ')
    [ -z "$left" ] || unfit "servers were left: $left"
fi
[ -n "$reason" ] || exit 0
echo "$reason"
[ -z "${SLURMD_NODENAME:-}" ] || scontrol update NodeName="$SLURMD_NODENAME" State=DRAIN Reason="deltabench: $reason"
exit 1
