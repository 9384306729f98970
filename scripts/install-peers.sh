#!/usr/bin/env bash
# Installs the tools that `deltabench selfbench client` compares itself with, through the package manager.
set -euo pipefail

if command -v sysbench >/dev/null 2>&1 && command -v pgbench >/dev/null 2>&1; then
    printf 'sysbench and pgbench are here already\n' >&2
elif command -v apt-get >/dev/null 2>&1; then
    # Debian and Ubuntu ship pgbench in the server's package.
    apt-get update
    apt-get install -y --no-install-recommends sysbench postgresql-contrib
elif command -v dnf >/dev/null 2>&1; then
    dnf install -y sysbench postgresql-contrib
else
    printf 'error: no apt-get and no dnf here; install sysbench and pgbench by hand\n' >&2
    exit 2
fi
command -v sysbench pgbench
