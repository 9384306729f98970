#!/bin/bash
# Writes what a real server says of itself, for the fairness tests:
#
#     make.sh BIN_DIR OUT_DIR        as an unprivileged user that can write OUT_DIR
#
# settings.tsv: name, setting, unit, boot_val, source of pg_settings (COPY text format, \N is null).
# build.txt:    compiler of version(), CFLAGS and CONFIGURE of pg_config, one line each.
# The server runs in single-user mode on a fresh cluster, so there is no socket and nothing to stop.
set -euo pipefail
bin=$1 out=$2
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
"$bin/initdb" -D "$data/cluster" -U me --no-locale -E UTF8 >"$data/initdb.log" 2>&1
"$bin/postgres" --single -D "$data/cluster" postgres >"$data/single.log" 2>&1 <<SQL
COPY (select name, setting, unit, boot_val, source from pg_settings order by name) TO '$data/settings.tsv';
COPY (select name, setting from pg_config) TO '$data/config.tsv';
COPY (select version()) TO '$data/version.tsv';
SQL
cp "$data/settings.tsv" "$out/settings.tsv"
{
  sed -e 's/.*compiled by //' -e 's/, 64-bit$//' "$data/version.tsv"
  awk -F'\t' '$1 == "CFLAGS" { print $2 }' "$data/config.tsv"
  awk -F'\t' '$1 == "CONFIGURE" { print $2 }' "$data/config.tsv"
} >"$out/build.txt"
