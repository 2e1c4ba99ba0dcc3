#!/usr/bin/env bash
# Builds a part of a real Kubernetes from its Go module, once, and prints the folder in the user's cache that has its
# programs; --path prints it without building. Modules come from Go's proxy alone.
#
#   build.sh [--path] PART [VERSION]
#
#   kubernetes           kube-apiserver, kube-controller-manager, kube-scheduler, kubectl: 10 minutes on 2 quiet cores
#   etcd, kwok           what it needs: 2 minutes each. kwok plays the nodes; nodes.yaml is beside it
#   rollouts-controller  of Argo Rollouts, with crds.yaml: 5 minutes
#   flagger              with crds.yaml: 3 minutes
#   all-in-one           of Jaeger 1, its API without pages: 5 minutes
set -euo pipefail
only_path=
if [ "${1:-}" = --path ]; then only_path=1; shift; fi
part=${1:?build.sh [--path] PART [VERSION]}

case $part in
  kubernetes)
    module=k8s.io/kubernetes version=${2:-1.37.2}
    packages=(/cmd/kube-apiserver /cmd/kube-controller-manager /cmd/kube-scheduler /cmd/kubectl)
    ;;
  etcd) module=go.etcd.io/etcd/server/v3 version=${2:-3.6.5} packages=('') ;;
  kwok) module=sigs.k8s.io/kwok version=${2:-0.8.0} packages=(/cmd/kwok) ;;
  rollouts-controller) module=github.com/argoproj/argo-rollouts version=${2:-1.9.1} packages=(/cmd/rollouts-controller) ;; # 1.10 needs a newer Go
  flagger) module=github.com/fluxcd/flagger version=${2:-1.36.1} packages=(/cmd/flagger) ;;
  all-in-one) module=github.com/jaegertracing/jaeger version=${2:-1.62.0} packages=(/cmd/all-in-one) ;;
  *) echo "build.sh: there is no part $part" >&2; exit 2 ;;
esac

out=${XDG_CACHE_HOME:-$HOME/.cache}/spangate/$part-v$version
if [ -n "$only_path" ] || [ -d "$out" ]; then echo "$out"; exit 0; fi
command -v go >/dev/null || { echo 'build.sh: Go is not installed: see https://go.dev/doc/install' >&2; exit 1; }
mkdir -p "$(dirname "$out")"
if command -v flock >/dev/null; then
  exec 9>"$out.lock"
  flock 9
  if [ -d "$out" ]; then echo "$out"; exit 0; fi
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { cat "$work/log" >&2; echo "build.sh: $1" >&2; exit 1; }
GOPROXY=$(go env GOPROXY | cut -d, -f1)
export GOPROXY GOFLAGS=-mod=mod
mkdir "$work/source" "$work/bin"
cd "$work/source"
go mod download -json "$module@v$version" >"$work/module.json" 2>"$work/log" || fail "there is no $module@v$version"
mod=$(sed -n 's/.*"GoMod": "\(.*\)".*/\1/p' "$work/module.json")
dir=$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' "$work/module.json")
{
  printf 'module build\n\ngo %s\n\nrequire %s v%s\n' "$(go env GOVERSION | sed 's/^go//; s/\.[0-9]*$//')" "$module" "$version"
  # The replacements of a dependency do not count here, so they are repeated. Kubernetes replaces its own libraries by
  # folders of its repository: they are taken from their releases.
  if [ "$part" = kubernetes ]; then
    grep -oE '^\s*k8s.io/[a-z0-9-]+ => ./staging' "$mod" | awk -v v="v0.${version#1.}" '{ print "replace " $1 " => " $1 " " v }'
  else
    awk '/^replace \(/{p=1} p{print} /^\)/{p=0} /^replace [^(]/{print}' "$mod" | grep -v '\.\.*/' || true
  fi
} >go.mod
{
  printf '//go:build tools\n\npackage build\n\n'
  for package in "${packages[@]}"; do echo "import _ \"$module$package\""; done
} >tools.go
go mod tidy >"$work/log" 2>&1 || fail 'the modules could not be resolved'
for package in "${packages[@]}"; do
  name=${package##*/}
  go build -p 2 -o "$work/bin/${name:-$part}" -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v$version" "$module$package" \
    >"$work/log" 2>&1 || fail "${name:-$part} does not compile"
done
case $part in
  kwok) cp "$dir/kustomize/stage/node/fast/node-initialize.yaml" "$work/bin/nodes.yaml" ;;
  rollouts-controller) for each in "$dir"/manifests/crds/*-crd.yaml; do echo ---; cat "$each"; done >"$work/bin/crds.yaml" ;;
  flagger) cp "$dir/artifacts/flagger/crd.yaml" "$work/bin/crds.yaml" ;;
esac
chmod -R u+w "$work/bin"
mv "$work/bin" "$out.$$"
mv "$out.$$" "$out" # in one step: nobody finds a part of it
echo "$out"
