#!/usr/bin/env bash
# Restarts replicas one at a time, without failing a request:
#
#   rollout.sh [--admin URL]... [--timeout 10m] [--force] REPLICA... -- COMMAND [ARG...]
#
# For each replica, in this order: the gateway drains it and waits until nothing is in flight on it; COMMAND ARG...
# REPLICA restarts it; the gateway undrains it and asks it until it answers. COMMAND must not end before the replica
# serves again, and must fail if it never does. The first failure ends the rollout, and that replica stays drained.
# A replica is not restarted if, for one of its models, no other replica answers.
#
# --admin     address of a gateway's admin API. Repeat it for each gateway that does not share drains with the others.
#             Default: the gateway of the configuration file in SVC_CONFIG.
# --timeout   how long one replica may take to become idle (default 10m): longer than your longest response.
# --force     restart a replica even if no other replica of one of its models answers: requests for it will fail.
#
# SVC_ADMIN_TOKEN or SVC_OPERATOR_TOKEN is the token of the admin API. GATEWAY is the command to call (default: gateway).
set -euo pipefail

timeout=10m
back=2m # time for the gateway to answer, and to find a replica behind a DNS name again
unless_last=(--unless-last)
admins=()
replicas=()
usage() { sed -nE '1d; /^#/!q; s/^# ?//p' "$0"; }
wrong() { echo "rollout.sh: $1 (--help explains)" >&2; exit 2; }

while [ $# -gt 0 ]; do
  case $1 in
    --admin) [ $# -ge 2 ] || wrong '--admin needs a URL'; admins+=("$2"); shift 2 ;;
    --timeout) [ $# -ge 2 ] || wrong '--timeout needs a duration'; timeout=$2; shift 2 ;;
    --force) unless_last=(--force); shift ;;
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
  if ! at_gateways drain "$replica" --wait --timeout "$timeout" --reason rollout ${unless_last[@]+"${unless_last[@]}"}; then
    echo "rollout.sh: $replica is not safe to stop; nothing was done to it. To let it take requests again: gateway undrain $replica" >&2
    exit 1
  fi
  step "$replica: $*"
  if ! "$@" "$replica"; then
    echo "rollout.sh: $replica did not come back and stays drained. Once it serves: gateway undrain $replica" >&2
    exit 1
  fi
  step "$replica: undrain"
  if ! at_gateways undrain "$replica" --wait --timeout "$back"; then
    echo "rollout.sh: $replica was restarted, but is not back: gateway undrain $replica --wait" >&2
    exit 1
  fi
done
step "done: ${replicas[*]}"
