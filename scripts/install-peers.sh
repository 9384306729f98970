#!/usr/bin/env bash
# Installs the tools that deltabench compares itself with or drives, through the package manager: sysbench, pgbench, db_bench (which
# comes in rocksdb-tools), valgrind, slurm (controller, node daemon, commands) and shellcheck, or only those
# named. It waits while another apt-get runs.
set -euo pipefail

wanted=("$@")
[ "${#wanted[@]}" -gt 0 ] || wanted=(sysbench pgbench rocksdb-tools valgrind slurm shellcheck)

packages=()
programs=()
for tool in "${wanted[@]}"; do
    program=$tool
    [ "$tool" != rocksdb-tools ] || program=db_bench
    [ "$tool" != slurm ] || program=slurmd
    programs+=("$program")
    command -v "$program" >/dev/null 2>&1 && continue
    case "$tool" in
    sysbench) packages+=(sysbench) ;;
    # Debian, Ubuntu and Fedora ship pgbench in this package.
    pgbench) packages+=(postgresql-contrib) ;;
    rocksdb-tools) packages+=(rocksdb-tools) ;;
    valgrind | shellcheck) packages+=("$tool") ;;
    # Debian and Ubuntu name them so.
    slurm) packages+=(slurmctld slurmd slurm-client munge) ;;
    *)
        printf 'error: unknown tool %s; known: sysbench, pgbench, rocksdb-tools, valgrind, slurm, shellcheck\n' "$tool" >&2
        exit 2
        ;;
    esac
done

if [ "${#packages[@]}" -eq 0 ]; then
    printf '%s: here already\n' "${wanted[*]}" >&2
elif command -v apt-get >/dev/null 2>&1; then
    until said=$(LC_ALL=C apt-get update 2>&1); do
        printf '%s\n' "$said" >&2
        # The option below waits for another apt-get, but not of `update`.
        [[ $said == *'Could not get lock'* ]] || exit 1
        sleep 5
    done
    # Tests start daemons of their own, so packages may start none.
    policy=/usr/sbin/policy-rc.d
    if [ ! -e "$policy" ]; then
        trap 'rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
    fi
    DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=240 install -y --no-install-recommends "${packages[@]}"
elif command -v dnf >/dev/null 2>&1; then
    dnf install -y "${packages[@]}"
else
    printf 'error: no apt-get and no dnf here; install %s by hand\n' "${wanted[*]}" >&2
    exit 2
fi
command -v "${programs[@]}"
