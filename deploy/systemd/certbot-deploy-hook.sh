#!/bin/sh
# A deploy hook of certbot: /etc/letsencrypt/renewal-hooks/deploy/spangate, with mode 755. Only root can read
# /etc/letsencrypt, so it copies the files for the user of the service. The gateway takes them by itself.
set -eu
lineage=/etc/letsencrypt/live/llm.example.com # yours: certbot calls the hook for every certificate
[ "$RENEWED_LINEAGE" = "$lineage" ] || exit 0
install -d -m 755 /etc/spangate
install -d -o spangate -m 700 /etc/spangate/tls
install -o spangate -m 644 "$lineage/fullchain.pem" /etc/spangate/tls/gateway.pem
install -o spangate -m 600 "$lineage/privkey.pem" /etc/spangate/tls/gateway.key
