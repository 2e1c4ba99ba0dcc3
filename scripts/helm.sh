#!/usr/bin/env bash
# Builds helm: it lints and renders the chart in deploy/helm. About 3 minutes cold on 2 cores. See build-go-tool.sh.
exec "$(dirname "${BASH_SOURCE[0]}")/build-go-tool.sh" helm helm.sh/helm/v3/cmd/helm v3.22.0 "$@"
