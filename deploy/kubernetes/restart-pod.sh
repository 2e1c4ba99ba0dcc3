#!/usr/bin/env bash
# Restarts one pod of a StatefulSet with the update strategy OnDelete. Its successor has the new template.
#
#   restart-pod.sh POD
#
# Ends when the successor is ready. Its readiness probe must ask the engine (vLLM: GET /health).
# NAMESPACE: the pod's namespace (default: that of kubectl's context). READY_TIMEOUT: time to load the model (default 30m).
set -euo pipefail
pod=${1:?usage: restart-pod.sh POD}
kube() { kubectl ${NAMESPACE:+--namespace "$NAMESPACE"} "$@"; }

before=$(kube get pod "$pod" -o 'jsonpath={.metadata.uid}')
kube delete pod "$pod" --wait=true
# Between the two pods there is none of this name, and a wait would fail at once.
until after=$(kube get pod "$pod" -o 'jsonpath={.metadata.uid}' 2>/dev/null) && [ -n "$after" ] && [ "$after" != "$before" ]; do
  sleep 1
done
kube wait pod "$pod" --for=condition=Ready --timeout="${READY_TIMEOUT:-30m}"
