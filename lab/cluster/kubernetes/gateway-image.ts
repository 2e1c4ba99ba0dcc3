import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Child, startChild } from '#testkit/programs/child.ts';
import { ROOT } from '#testkit/programs/results.ts';
import { HOST_IP } from './control-plane.ts';
import type { Container, Image, Surroundings } from './kubelet.ts';
import type { Pod } from './pod.ts';

const run = promisify(execFile);

/** The container of a gateway: a process in a network and a file system of its own. */
export interface GatewayContainer {
  readonly pod: Pod;
  readonly url: string;
  readonly adminUrl: string;
  readonly pid: number;
  /** Its log: JSON. */
  readonly lines: readonly string[];
  readonly hasExited: boolean;
  /** Cuts its network, or joins it again. */
  link(state: 'up' | 'down'): Promise<void>;
}

/** How the gateway's pods are played, with those that run. */
export interface GatewayImage extends Image {
  /** By the name of the pod. */
  readonly running: ReadonlyMap<string, GatewayContainer>;
}

const BRIDGE = 'pods';

/** The network of the pods on this side: a bridge for those with a network of their own, and `lo` for the others. */
export async function prepareNetwork(): Promise<void> {
  const commands = [
    'mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns',
    'ip link set lo up && ip address add 10.99.0.1/16 dev lo',
    `ip link add ${BRIDGE} type bridge && ip address add ${HOST_IP}/16 dev ${BRIDGE} && ip link set ${BRIDGE} up`,
  ];
  for (const command of commands) await run('sh', ['-c', command]);
}

/**
 * As the kubelet starts the chart's pod: no file is writable but the volumes, the user is 1000 without any capability,
 * and the network has the pod's address alone.
 */
const START = `set -e
root=$1 hosts=$2 node=$3; shift 3
mkdir -p "$root"; mount -t tmpfs tmpfs "$root"
for each in usr bin lib lib64 dev proc; do [ ! -e "/$each" ] || { mkdir "$root/$each"; mount --rbind "/$each" "$root/$each"; }; done
mkdir -p "$root/etc" "$root/app" "$root/tmp"; cp "$hosts" "$root/etc/hosts"
mount --rbind "$CHECKOUT" "$root/app"; touch "$root/node"; mount --bind "$node" "$root/node"
while [ "$1" != -- ]; do mkdir -p "$root$1"; mount --bind "$2" "$root$1"; shift 2; done
shift; mount -o remount,ro "$root"
exec env -u CHECKOUT chroot "$root" setpriv --reuid=1000 --regid=1000 --clear-groups --no-new-privs --bounding-set=-all \\
  /node --disable-sigusr1 /app/src/main.ts "$@"`;

/** Plays the pods of the chart. `folder`: for their file systems. */
export function createGatewayImage(folder: string): GatewayImage {
  const running = new Map<string, GatewayContainer>();
  let count = 0;
  return {
    running,
    isOf: ({ image }) => image.startsWith('spangate:'),
    nextIp: () => `10.97.1.${++count}`,
    async start(pod, { ip, env, volumes, hostsPath }: Surroundings): Promise<Container> {
      const { name, uid = '' } = pod.metadata;
      const network = `g${ip.split('.').at(-1)}`;
      await connect(network, ip);
      const script = join(folder, 'start.sh');
      await mkdir(folder, { recursive: true });
      await writeFile(script, START);
      const mounts = [...volumes].flat();
      const args = pod.spec.containers[0].args ?? [];
      const child = startChild(
        {
          file: 'nsenter',
          args: [
            ...[`--net=/run/netns/${network}`, 'unshare', '--mount', 'sh', script],
            ...[join(folder, uid), hostsPath, process.execPath, ...mounts, '--', ...args],
          ],
          // Those of the image, as the Dockerfile sets them.
          env: {
            CHECKOUT: ROOT,
            NODE_ENV: 'production',
            STATE_DIRECTORY: '/var/lib/spangate',
            container: 'oci',
            ...env,
          },
          isIsolated: true,
        },
        { stdout: 'lines', logPath: join(folder, `${name}.err`) },
      );
      running.set(name, toGateway(pod, ip, child, network));
      return {
        async stop(graceMs) {
          const killer = setTimeout(() => void child.end('SIGKILL'), graceMs);
          await child.end('SIGTERM');
          clearTimeout(killer);
          if (running.get(name)?.pid === child.pid) running.delete(name);
          await run('ip', ['netns', 'delete', network]).catch(() => undefined);
        },
      };
    },
  };
}

function toGateway(pod: Pod, ip: string, child: Child, network: string): GatewayContainer {
  return {
    pod,
    url: `http://${ip}:8080`,
    adminUrl: `http://${ip}:9090`,
    pid: child.pid,
    lines: child.lines,
    get hasExited() {
      return child.hasExited;
    },
    link: async (state) => void (await run('ip', ['link', 'set', `v-${network}`, state])),
  };
}

async function connect(network: string, ip: string): Promise<void> {
  const inside = ['-n', network];
  await run('ip', ['netns', 'add', network]);
  await run('ip', ['link', 'add', `v-${network}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', network]);
  await run('ip', ['link', 'set', `v-${network}`, 'master', BRIDGE, 'up']);
  await run('ip', [...inside, 'address', 'add', `${ip}/16`, 'dev', 'eth0']);
  for (const device of ['lo', 'eth0']) await run('ip', [...inside, 'link', 'set', device, 'up']);
  await run('ip', [...inside, 'route', 'add', 'default', 'via', HOST_IP]);
}
