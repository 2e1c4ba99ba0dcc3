#!/usr/bin/env bash
# Builds kubectl-validate, once: it checks manifests against the schemas of Kubernetes 1.30 that it holds, without a
# cluster. About 3 minutes cold on 2 cores. Prints the path of the binary, in the user's cache; --path does so without
# building. Modules come from Go's proxy alone.
set -euo pipefail
version=v0.0.4
out=${XDG_CACHE_HOME:-$HOME/.cache}/spangate/kubectl-validate-$version
if [ "${1:-}" = --path ] || [ -x "$out" ]; then echo "$out"; exit 0; fi
command -v go >/dev/null || { echo 'kubectl-validate.sh: Go is not installed: see https://go.dev/doc/install' >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
GOPROXY=$(go env GOPROXY | cut -d, -f1)
export GOPROXY GOBIN=$work
go install "sigs.k8s.io/kubectl-validate@$version" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
mkdir -p "$(dirname "$out")"
mv "$work/kubectl-validate" "$out.$$"
mv "$out.$$" "$out" # whoever finds the file finds all of it
echo "$out"
