#!/usr/bin/env bash
# Installs what builds from source need (docs/guide/builds.md), through the package manager; needs root.
set -euo pipefail

if command -v apt-get >/dev/null 2>&1; then
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        gcc make bison flex perl pkg-config git ccache meson ninja-build \
        libreadline-dev zlib1g-dev libicu-dev liblz4-dev libzstd-dev liburing-dev libssl-dev
elif command -v dnf >/dev/null 2>&1; then
    dnf install -y gcc make bison flex perl pkgconf-pkg-config git ccache meson ninja-build \
        readline-devel zlib-devel libicu-devel lz4-devel libzstd-devel liburing-devel openssl-devel
else
    printf 'error: no apt-get and no dnf here; docs/guide/builds.md says what to install\n' >&2
    exit 2
fi
