#!/usr/bin/env bash
# Arize Phoenix as the backend of the gateway, for real: `npm run e2e:phoenix`. Installs Phoenix and builds the
# collector on first use (some minutes), both into the user's cache.
#
# Everything runs in a network namespace of its own, with the loopback alone: Phoenix' gRPC port listens on every
# address whatever PHOENIX_HOST says, and nothing here has any business outside. Needs Linux, Go, Python 3.
#
# --picture takes the picture of docs/images/ as well, with Debian's chromium.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=20.26.1
PHOENIX=${XDG_CACHE_HOME:-$HOME/.cache}/spangate/phoenix-$version
if [ ! -x "$PHOENIX/bin/phoenix" ]; then
  echo "installing Phoenix $version into $PHOENIX"
  python3 -m venv "$PHOENIX"
  "$PHOENIX/bin/pip" -q install "arize-phoenix==$version"
fi
COLLECTOR=$("$here/../otelcol/build.sh")
export PHOENIX COLLECTOR
exec unshare --net --map-root-user bash -c 'ip link set lo up && exec node "$@"' -- "$here/run.ts" "$@"
