#!/usr/bin/env bash
# Installs the oldest Node that package.json allows, once: the package `node` of that version, in the user's cache.
# Prints the path of the binary; --path does so without installing. It is no devDependency, because its command would
# stand beside that of the Node that everything else runs on.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
version=$(sed -nE 's/^ *"node": ">=([0-9.]+)"$/\1/p' "$root/package.json")
folder=${XDG_CACHE_HOME:-$HOME/.cache}/spangate/node-$version
out=$folder/node_modules/node/bin/node
if [ "${1:-}" = --path ] || [ -x "$out" ]; then echo "$out"; exit 0; fi

mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
printf '{"private":true,"dependencies":{"node":"%s"},"allowScripts":{"node":true}}\n' "$version" >"$work/package.json"
npm install --prefix "$work" --no-audit --no-fund >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
chmod 755 "$work"
mv -T "$work" "$folder" 2>/dev/null || [ -x "$out" ] # another one may have been faster
echo "$out"
