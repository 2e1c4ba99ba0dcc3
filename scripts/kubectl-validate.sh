#!/usr/bin/env bash
# Builds kubectl-validate: it checks manifests against the schemas of Kubernetes 1.30 that it holds, without a cluster.
# About 3 minutes cold on 2 cores. See build-go-tool.sh.
exec "$(dirname "${BASH_SOURCE[0]}")/build-go-tool.sh" kubectl-validate sigs.k8s.io/kubectl-validate v0.0.4 "$@"
