#!/bin/sh
# Waits until the gateway has judged replicas beside others, for any CI:
#
#   verdict-gate.sh CANDIDATE [BASELINE]
#
# Both are names with commas between them, model:NAME, host:NAME, or pod.label/KEY=VALUE; without BASELINE all other
# replicas of the model are meant. Exit code: 0 good, 3 bad, 4 undecided within TIMEOUT, 1 no answer or refused, 2 wrong
# call. It needs curl. docs/evidence/verdict.md has the rest.
#
#   GATEWAY_ADMIN   address of the admin API (http://127.0.0.1:9090)
#   SVC_READ_TOKEN  its token; one that only reads is enough
#   SINCE           only requests since then count, as 2026-01-31T12:00:00Z (when this began)
#   TIMEOUT         seconds until it gives up (600)
#   INTERVAL        seconds between two questions (5)
set -eu

if [ $# -lt 1 ] || [ $# -gt 2 ] || [ -z "${SVC_READ_TOKEN:-}" ]; then
  echo "usage: SVC_READ_TOKEN=... verdict-gate.sh CANDIDATE [BASELINE]" >&2
  exit 2
fi
admin=${GATEWAY_ADMIN:-http://127.0.0.1:9090}
since=${SINCE:-$(date -u +%Y-%m-%dT%H:%M:%SZ)}
ends=$(($(date +%s) + ${TIMEOUT:-600}))
set -- --data-urlencode "candidate=$1" ${2+--data-urlencode "baseline=$2"}

while :; do
  # The token comes by standard input, where no list of processes shows it. The last line is the status.
  answer=$(printf 'Authorization: Bearer %s\n' "$SVC_READ_TOKEN" |
    curl --silent --show-error --max-time 30 --get --header @- --write-out '\n%{http_code}' \
      --data-urlencode "since=$since" "$@" "$admin/admin/verdict") || answer=
  case $answer in
    *'
200')
      echo "${answer%?200}"
      case $answer in
        '{"verdict":"good"'*) exit 0 ;;
        '{"verdict":"bad"'*) exit 3 ;;
      esac
      code=4
      ;;
    *'"code":"selector_matches_nothing"'*)
      # Its pods may not be ready yet.
      code=1
      ;;
    *'
4'??)
      # Another refusal does not change by itself.
      echo "${answer%????}" >&2
      exit 1
      ;;
    *) code=1 ;;
  esac
  [ "$(date +%s)" -lt "$ends" ] || exit $code
  sleep "${INTERVAL:-5}"
done
