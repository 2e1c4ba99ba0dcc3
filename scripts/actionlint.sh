#!/usr/bin/env bash
# Builds actionlint: it checks the workflows in .github. About a minute cold. See build-go-tool.sh.
exec "$(dirname "${BASH_SOURCE[0]}")/build-go-tool.sh" actionlint github.com/rhysd/actionlint/cmd/actionlint v1.7.7 "$@"
