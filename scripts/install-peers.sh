#!/usr/bin/env bash
# Installs the tools that deltabench compares itself with or drives, through the package manager: sysbench, pgbench, db_bench (which
# comes in rocksdb-tools) and valgrind, or only those named.
set -euo pipefail

wanted=("$@")
[ "${#wanted[@]}" -gt 0 ] || wanted=(sysbench pgbench rocksdb-tools valgrind)

packages=()
programs=()
for tool in "${wanted[@]}"; do
    program=$tool
    [ "$tool" != rocksdb-tools ] || program=db_bench
    programs+=("$program")
    command -v "$program" >/dev/null 2>&1 && continue
    case "$tool" in
    sysbench) packages+=(sysbench) ;;
    # Debian, Ubuntu and Fedora ship pgbench in this package.
    pgbench) packages+=(postgresql-contrib) ;;
    rocksdb-tools) packages+=(rocksdb-tools) ;;
    valgrind) packages+=(valgrind) ;;
    *)
        printf 'error: unknown tool %s; known: sysbench, pgbench, rocksdb-tools, valgrind\n' "$tool" >&2
        exit 2
        ;;
    esac
done

if [ "${#packages[@]}" -eq 0 ]; then
    printf '%s: here already\n' "${wanted[*]}" >&2
elif command -v apt-get >/dev/null 2>&1; then
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${packages[@]}"
elif command -v dnf >/dev/null 2>&1; then
    dnf install -y "${packages[@]}"
else
    printf 'error: no apt-get and no dnf here; install %s by hand\n' "${wanted[*]}" >&2
    exit 2
fi
command -v "${programs[@]}"
