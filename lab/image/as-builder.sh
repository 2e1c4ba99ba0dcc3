#!/bin/sh
# as-builder.sh FOLDER COMMAND…: in a mount namespace of its own, runs a command as a user without privileges, whom only
# this namespace knows, with 65,536 subordinate ids. FOLDER is the user's home.
set -eu
home=$1
shift
mkdir -p "$home/run"
for each in passwd group; do cp "/etc/$each" "$home/$each"; done
echo "builder:x:7000:7000::$home:/bin/sh" >>"$home/passwd"
echo 'builder:x:7000:' >>"$home/group"
echo 'builder:700000:65536' >"$home/subid"
chown 7000:7000 "$home" "$home/run"
mount --bind "$home/passwd" /etc/passwd
mount --bind "$home/group" /etc/group
mount --bind "$home/subid" /etc/subuid
mount --bind "$home/subid" /etc/subgid
cd "$home"
# What npm tells a script of itself, such as root's cache, is not for the builder's npm.
for name in $(env | sed -n 's/^\(npm_[a-z_]*\)=.*/\1/p'); do unset "$name"; done
exec setpriv --reuid 7000 --regid 7000 --clear-groups --inh-caps=-all \
  env HOME="$home" XDG_RUNTIME_DIR="$home/run" USER=builder "$@"
