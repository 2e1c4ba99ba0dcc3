#!/usr/bin/env bash
# Compiles src/json/strings/wide-strings.as into wide-strings-binary.ts; --check says instead whether that is up to date.
# The compiler is the package assemblyscript, in the user's cache: as a devDependency it would add 100 MB to each checkout.
set -euo pipefail
version=0.28.20
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=${XDG_CACHE_HOME:-$HOME/.cache}/spangate/assemblyscript-$version
if [ ! -d "$folder" ]; then
  mkdir -p "$(dirname "$folder")"
  work=$(mktemp -d "$folder.XXXXXX")
  npm install --prefix "$work" --no-audit --no-fund --ignore-scripts "assemblyscript@$version" >"$work.log" 2>&1 ||
    { cat "$work.log" >&2; exit 1; }
  chmod 755 "$work"
  mv -T "$work" "$folder" 2>/dev/null || [ -d "$folder" ] # another one may have been faster
fi

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
# The compiler takes files with the ending of TypeScript only.
cp "$root/src/json/strings/wide-strings.as" "$built/wide-strings.ts"
(cd "$built" && node "$folder/node_modules/assemblyscript/bin/asc.js" wide-strings.ts --enable simd -O3 --noAssert \
  --runtime stub --initialMemory 1 --maximumMemory 1 --outFile wide-strings.wasm)
{
  echo '/** wide-strings.as, compiled by scripts/build-wide-strings.sh: WebAssembly as base64. */'
  echo 'export const WIDE_STRINGS_BINARY = ['
  base64 --wrap=100 "$built/wide-strings.wasm" | sed "s/.*/  '&',/"
  echo "].join('');"
} >"$built/wide-strings-binary.ts"
out=$root/src/json/strings/wide-strings-binary.ts
if [ "${1:-}" = --check ]; then
  cmp "$built/wide-strings-binary.ts" "$out"
else
  cp "$built/wide-strings-binary.ts" "$out"
fi
