import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, stat, truncate, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import type { FakeReplica } from '../fake-replica.ts';
import { quickStart } from './quick-start.ts';
import { temporaryFolder } from './temporary-folder.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
const TOKEN = 'token-of-a-small-disk';
/** A process with mounts of its own, which end with it. */
const UNSHARE = ['--mount', '--map-root-user'];
/** Room for a history and its log of writes, however slowly records come. */
const MOUNT = 'mount -t tmpfs -o size=16m,mode=700 tmpfs';

/** Why no process may have mounts of its own here, for `context.skip`; null if it may. */
export function whyNoOwnDisk(): string | null {
  const { status } = spawnSync('unshare', [...UNSHARE, 'sh', '-c', `${MOUNT} /tmp`]);
  return status === 0 ? null : 'nobody may mount a file system here (unshare --mount)';
}

/** A gateway whose state_dir is a disk of 16 MiB, which only its process has. It serves when this resolves. */
export interface GatewayOnOwnDisk {
  readonly url: string;
  /** Resolves with the exit code. */
  readonly closed: Promise<number | null>;
  readonly stderr: Promise<string>;
  /** The lines of its log on standard output. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  /** A file on the disk. */
  read(name: string): Promise<string>;
  /** Takes all the room that is left; `free` gives it back, or so many bytes of it. */
  fill(): Promise<void>;
  free(bytes?: number): Promise<void>;
  remount(mode: 'ro' | 'rw'): void;
  /** Calls the admin API; resolves with its JSON. */
  admin(method: 'GET' | 'POST', path: string): Promise<Readonly<Record<string, unknown>>>;
  /** Sends SIGTERM. */
  stop(): void;
}

/** How the gateway starts. */
export interface OwnDiskOptions {
  /** Where records go; by default to files on the disk. */
  readonly collectorUrl?: string;
  /** Whether the log is the file `log` on the disk. */
  readonly logsToDisk?: boolean;
  /** Whether the disk cannot be written from the start. The gateway then may never serve: nothing is waited for. */
  readonly isReadOnly?: boolean;
  /** Its key in the configuration. Its file is open for writing: the disk cannot become read-only meanwhile. */
  readonly history?: 'off' | { readonly max_size?: string };
}

/** Starts it. */
export async function serveOnOwnDisk(
  replica: Pick<FakeReplica, 'url'>,
  { collectorUrl, logsToDisk = false, isReadOnly = false, history = {} }: OwnDiskOptions = {},
): Promise<GatewayOnOwnDisk> {
  const folder = await temporaryFolder();
  const disk = join(folder, 'state');
  await mkdir(disk);
  const config = {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    replicas: [{ name: 'a', url: replica.url, models: ['m'], engine: 'openai' }],
    export: {
      ...(collectorUrl === undefined ? { to: 'file' } : { endpoint: collectorUrl }),
      queue_size: 50,
      batch_size: 25,
      interval: '10ms',
      retry: { initial: '10ms', max: '50ms' },
      file: { max_size: '8MiB', max_total: '16MiB' },
    },
    metrics: { otlp: false },
    history,
    log: { requests: logsToDisk },
    shutdown: { flush: '0s' },
  };
  const path = join(folder, 'gateway.yaml');
  await writeFile(path, JSON.stringify(config));
  const script = [
    `${MOUNT} ${disk}`,
    ...(isReadOnly ? [`mount -o remount,ro ${disk}`] : []),
    `exec "$@" ${logsToDisk ? `> ${disk}/log` : ''}`,
  ].join(' && ');
  const command = ['sh', '-c', script, 'sh', process.execPath, MAIN, '-config', path];
  const child = spawn('unshare', [...UNSHARE, ...command], {
    env: { ...quickStart(), PATH: process.env.PATH, SVC_ADMIN_TOKEN: TOKEN },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = once(child, 'close').then(([code]) => code as number | null);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  const stderr = text(child.stderr);
  const log: Record<string, unknown>[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => log.push(JSON.parse(line)));
  const toPath = (name: string) => join(`/proc/${child.pid}/root`, disk, name);
  const read = (name: string) => readFile(toPath(name), 'utf8');
  const readLog = logsToDisk ? async () => toLines(await read('log').catch(() => '')) : async () => log;
  const addresses = isReadOnly ? null : await untilServing(readLog, closed);
  return {
    url: `http://${addresses?.listen}`,
    closed,
    log,
    stderr,
    read,
    async fill() {
      // In steps, so that the last page is taken, too.
      for (const piece of [Buffer.alloc(1024 ** 2), Buffer.alloc(4096)]) {
        const append = () => writeFile(toPath('filling'), piece, { flag: 'a' });
        while (
          await append().then(
            () => true,
            () => false,
          )
        );
      }
    },
    async free(bytes) {
      const filling = toPath('filling');
      if (bytes === undefined) await unlink(filling);
      else await truncate(filling, (await stat(filling)).size - bytes);
    },
    remount(mode) {
      const enter = ['--target', String(child.pid), '--user', '--preserve-credentials', '--mount'];
      execFileSync('nsenter', [...enter, 'mount', '-o', `remount,${mode}`, disk]);
    },
    async admin(method, path) {
      const headers = { Authorization: `Bearer ${TOKEN}` };
      const response = await fetch(`http://${addresses?.adminListen}${path}`, { method, headers });
      return (await response.json()) as Readonly<Record<string, unknown>>;
    },
    stop: () => child.kill('SIGTERM'),
  };
}

/** More often takes as much processor time as the start of the gateway. */
const LOOK_EVERY_MS = 25;

/** The whole lines of a file of the log. */
const toLines = (log: string): readonly Record<string, unknown>[] =>
  log
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));

/** Resolves with its addresses when it serves: a port that was free before it started may be another's by then. */
async function untilServing(
  readLog: () => Promise<readonly Readonly<Record<string, unknown>>[]>,
  closed: Promise<unknown>,
): Promise<Readonly<Record<string, unknown>>> {
  let hasEnded = false;
  void closed.then(() => {
    hasEnded = true;
  });
  for (;;) {
    const line = (await readLog()).find(({ msg }) => msg === 'serving');
    if (line !== undefined) return line;
    if (hasEnded) throw new Error('the gateway ended instead of serving');
    await sleep(LOOK_EVERY_MS);
  }
}
