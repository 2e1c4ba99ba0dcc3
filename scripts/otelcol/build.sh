#!/usr/bin/env bash
# Builds the collector of a manifest, once: about 3 minutes cold on 2 cores, 2.5 GiB of Go caches.
#
#   build.sh [--path] [MANIFEST]
#
# Prints the path of the binary, in the user's cache and named after the manifest's content; --path does so without
# building. MANIFEST is a file beside this script: manifest.yaml (the default) or manifest-jsonfile.yaml.
# The builder has the version of the collector: that of the manifest's `dist`.
#
# Modules come from Go's proxy (GOPROXY) alone, never from version-control hosts.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
only_path=
if [ "${1:-}" = --path ]; then only_path=1; shift; fi
manifest=$here/${1:-manifest.yaml}
version=$(sed -nE 's/^  version: ([0-9.]+).*/\1/p' "$manifest")
builder=go.opentelemetry.io/collector/cmd/builder@v$version

cache=${XDG_CACHE_HOME:-$HOME/.cache}/spangate
out=$cache/otelcol-$(git hash-object --no-filters "$manifest" | cut -c1-16)
if [ -n "$only_path" ] || [ -x "$out" ]; then
  echo "$out"
  exit 0
fi
command -v go >/dev/null || { echo 'build.sh: Go is not installed: see https://go.dev/doc/install' >&2; exit 1; }

mkdir -p "$cache"
if command -v flock >/dev/null; then # several test files may ask at the same time
  exec 9>"$out.lock"
  flock 9
  if [ -x "$out" ]; then
    echo "$out"
    exit 0
  fi
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
log=$work/log
fail() { cat "$log" >&2; echo "build.sh: $1" >&2; exit 1; }

GOPROXY=$(go env GOPROXY | cut -d, -f1)
export GOPROXY GOBIN=$work
go install "$builder" >"$log" 2>&1 || fail 'the collector builder could not be installed'
cp "$manifest" "$work/manifest.yaml"
cd "$work"
# `builder` stops in `go mod tidy`, on a module that only a test of the file exporter imports: tidy runs with -e.
./builder --config manifest.yaml --skip-compilation >"$log" 2>&1 || true
[ -f build/go.mod ] || fail 'the collector builder made no sources'
cd build
go mod tidy -e >>"$log" 2>&1 || fail 'the modules could not be resolved'
go build -trimpath -ldflags='-s -w' -o "$work/otelcol" . >>"$log" 2>&1 || fail 'the collector does not compile'
mv "$work/otelcol" "$out.$$"
mv "$out.$$" "$out" # in one step: nobody finds a part of it
echo "$out"
