#!/usr/bin/env bash
# Writes deploy/kubernetes/gateway.yaml: what the chart makes of examples/kustomize.yaml, for those who use kustomize or kubectl.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
helm=$(scripts/helm.sh)
{
  echo '# Rendered from deploy/helm/spangate by scripts/render-kubernetes.sh: change the chart, not this file.'
  "$helm" template spangate deploy/helm/spangate --kube-version 1.30.0 --values deploy/helm/examples/kustomize.yaml
} >deploy/kubernetes/gateway.yaml
