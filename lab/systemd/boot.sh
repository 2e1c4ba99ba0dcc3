#!/bin/sh
# Becomes a systemd in namespaces of its own, with the programs of this machine and none of its services:
#
#   unshare --mount --pid --fork --kill-child --cgroup --uts --ipc --net sh boot.sh ROOT CHECKOUT NODE
#
# ROOT gets deploy/systemd as docs/install.md installs it, and /usr/local/bin/gateway.
set -e
root=$1 checkout=$2 node=$3
mkdir -p "$root"
mount -t tmpfs tmpfs "$root"
for each in usr bin sbin lib lib64; do
  if [ -L "/$each" ]; then cp -a "/$each" "$root/$each"; elif [ -d "/$each" ]; then mkdir "$root/$each"; mount --rbind "/$each" "$root/$each"; fi
done
for each in proc sys dev run tmp root home app var/lib var/log etc/systemd/system etc/spangate etc/sysusers.d; do mkdir -p "$root/$each"; done
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t proc proc "$root/proc"
cp /etc/nsswitch.conf "$root/etc/"
echo 0123456789abcdef0123456789abcdef >"$root/etc/machine-id" # not the first boot, which asks a person
ln -s /usr/lib/systemd/system/basic.target "$root/etc/systemd/system/default.target"
mount --rbind "$checkout" "$root/app"
touch "$root/node"
mount --bind "$node" "$root/node"
mount -t tmpfs tmpfs "$root/usr/local"
mkdir "$root/usr/local/bin"
# shellcheck disable=SC2016
printf '#!/bin/sh\nexec /node --disable-sigusr1 /app/src/main.ts "$@"\n' >"$root/usr/local/bin/gateway"
chmod 755 "$root/usr/local/bin/gateway"
cp "$checkout/deploy/systemd/spangate.conf" "$root/etc/sysusers.d/spangate.conf"
cp "$checkout/deploy/systemd/spangate.service" "$root/etc/systemd/system/spangate.service"
ip link set lo up
chroot "$root" systemd-sysusers
exec env -i container=lab PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin chroot "$root" /lib/systemd/systemd --system --show-status=0
