#!/usr/bin/env bash
# build-go-tool.sh NAME PACKAGE VERSION [--path]: builds a tool that is written in Go, once. Prints the path of the
# binary, in the user's cache; --path does so without building. Modules come from Go's proxy alone.
set -euo pipefail
name=$1 package=$2 version=$3
out=${XDG_CACHE_HOME:-$HOME/.cache}/spangate/$name-$version
if [ "${4:-}" = --path ] || [ -x "$out" ]; then echo "$out"; exit 0; fi
command -v go >/dev/null || { echo "$name: Go is not installed: see https://go.dev/doc/install" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GOPROXY=$(go env GOPROXY | cut -d, -f1)
export GOPROXY GOBIN=$work
go install "$package@$version" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
mkdir -p "$(dirname "$out")"
mv "$work/$name" "$out.$$"
mv "$out.$$" "$out" # in one step: nobody finds a part of it
echo "$out"
