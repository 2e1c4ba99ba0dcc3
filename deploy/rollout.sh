#!/usr/bin/env bash
# Restarts replicas one at a time, without failing a request:
#
#   rollout.sh [--admin URL]... [--timeout 10m] REPLICA... -- COMMAND [ARG...]
#
# For each replica, in this order: the gateway drains it and waits until nothing is in flight on it, COMMAND ARG...
# REPLICA restarts it, the gateway undrains it. COMMAND must not end before the replica serves again, and fail
# if it does not come to that. The first failure ends the rollout; the replica concerned stays drained.
#
# --admin     address of a gateway's admin API; once for each gateway that does not share drains with the others.
#             Without it, the gateway of the configuration file in SVC_CONFIG.
# --timeout   how long one replica may take to become idle (default 10m): longer than your longest answer.
#
# SVC_ADMIN_TOKEN is the token of the admin API. GATEWAY is the command to call (default: gateway).
set -euo pipefail

timeout=10m
admins=()
replicas=()
usage() { sed -nE '1d; /^#/!q; s/^# ?//p' "$0"; }
wrong() { echo "rollout.sh: $1 (--help explains)" >&2; exit 2; }

while [ $# -gt 0 ]; do
  case $1 in
    --admin) [ $# -ge 2 ] || wrong '--admin needs a URL'; admins+=("$2"); shift 2 ;;
    --timeout) [ $# -ge 2 ] || wrong '--timeout needs a duration'; timeout=$2; shift 2 ;;
    --help) usage; exit 0 ;;
    --) shift; break ;;
    -*) wrong "unknown option $1" ;;
    *) replicas+=("$1"); shift ;;
  esac
done
[ ${#replicas[@]} -gt 0 ] || wrong 'no replica is named'
[ $# -gt 0 ] || wrong 'no command follows --'

# at_gateways ACTION REPLICA [OPTION...]: asks every gateway, one after the other.
at_gateways() {
  local admin
  if [ ${#admins[@]} -eq 0 ]; then
    ${GATEWAY:-gateway} "$@"
    return
  fi
  for admin in "${admins[@]}"; do
    ${GATEWAY:-gateway} "$@" --admin "$admin" || return
  done
}

step() { printf '== %s\n' "$*"; }

for replica in "${replicas[@]}"; do
  step "$replica: drain"
  if ! at_gateways drain "$replica" --wait --timeout "$timeout" --reason rollout; then
    echo "rollout.sh: $replica is not safe to stop; nothing was done to it. To let it take requests again: gateway undrain $replica" >&2
    exit 1
  fi
  step "$replica: $*"
  if ! "$@" "$replica"; then
    echo "rollout.sh: $replica did not come back and stays drained. Once it serves: gateway undrain $replica" >&2
    exit 1
  fi
  step "$replica: undrain"
  if ! at_gateways undrain "$replica"; then
    echo "rollout.sh: $replica serves, but could not be undrained: gateway undrain $replica" >&2
    exit 1
  fi
done
step "done: ${replicas[*]}"
