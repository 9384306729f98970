#!/bin/sh
# Slurm's Prolog, as root before each job: brings this host into a steady state. It notes every value before it changes it, and
# `deltabench fleet node-epilog` puts back exactly these. /etc/default/deltabench-node says what is wanted: GOVERNOR (performance),
# THP (madvise), SWAP, TURBO (keep, or off), HUGE_PAGES (pages to reserve; 0). A value that cannot be set is printed and stops no job.
set -u
PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
ROOT=${ROOT:-}
GOVERNOR=performance THP=madvise SWAP=keep TURBO=keep HUGE_PAGES=0
# shellcheck source=/dev/null
[ ! -f "$ROOT/etc/default/deltabench-node" ] || . "$ROOT/etc/default/deltabench-node"
note=$ROOT/run/deltabench-node
# set FILE VALUE: a value in brackets is the one of several that is set.
set_to() {
    [ -e "$1" ] || return 0
    old=$(sed 's/.*\[\(.*\)\].*/\1/' "$1" 2>/dev/null)
    [ "$old" != "$2" ] || return 0
    echo "$1 $old $2" >>"$note" && echo "$2" 2>/dev/null >"$1" && echo "$1: $old -> $2" || echo "$1: cannot set $2"
}
mkdir -p "$ROOT/run"
for file in "$ROOT"/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor; do set_to "$file" "$GOVERNOR"; done
set_to "$ROOT/sys/kernel/mm/transparent_hugepage/enabled" "$THP"
[ "$TURBO" != off ] || set_to "$ROOT/sys/devices/system/cpu/intel_pstate/no_turbo" 1
[ "$TURBO" != off ] || set_to "$ROOT/sys/devices/system/cpu/cpufreq/boost" 0
[ "$HUGE_PAGES" = 0 ] || set_to "$ROOT/proc/sys/vm/nr_hugepages" "$HUGE_PAGES"
[ "$SWAP" != off ] || sed 1d "$ROOT/proc/swaps" | while read -r device _; do
    echo "swap $device" >>"$note" && swapoff "$device" && echo "swap off: $device"
done
exit 0
