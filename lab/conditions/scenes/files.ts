import { spawnSync } from 'node:child_process';
import { appendFile, mkdir, readdir, rm, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { askAdmin, type GatewayProcess } from '#testkit/programs/gateway-process.ts';
import { tryAdmin } from '../act.ts';
import type { Scene } from '../scene.ts';
import { type Stage, toEntry } from '../stage.ts';
import { sentenceOf } from '../surfaces.ts';

/** A process with mounts of its own, which end with it. */
const UNSHARE = ['unshare', '--mount', '--map-root-user', 'sh', '-c'];
const MOUNT = 'mount -t tmpfs -o size=2m,mode=700 tmpfs';

function whyNoDisk(): string | null {
  const [file = '', ...args] = UNSHARE;
  return spawnSync(file, [...args, `${MOUNT} /tmp`]).status === 0
    ? null
    : 'nobody may mount a file system here (unshare --mount)';
}

/** A gateway whose folder `disk` is a disk of 2 MiB. */
async function onSmallDisk(stage: Stage, config: (disk: string) => object) {
  const disk = await stage.folder('disk');
  const prefix = [...UNSHARE, `${MOUNT} '${disk}' && exec "$@"`, 'sh'];
  const gateway = await stage.gateway(
    { replicas: [toEntry(await stage.replica('a'))], ...config(disk) },
    {},
    { prefix },
  );
  const filling = join(`/proc/${gateway.pid}/root`, disk, 'filling');
  return {
    gateway,
    async fill() {
      for (const size of [2 * 1024 * 1024, 4_096])
        await appendFile(filling, Buffer.alloc(size)).catch(() => undefined);
    },
    free: () => unlink(filling),
  };
}

/** The bytes of the records that wait for the history; 0 until it is told that it cannot be written. */
async function waitingBytesOf({ adminUrl }: GatewayProcess): Promise<number> {
  const { conditions } = (await askAdmin(adminUrl, 'GET', '/admin/conditions')) as {
    readonly conditions: readonly { readonly id: string; readonly figures: { readonly waiting?: number } }[];
  };
  return conditions.find(({ id }) => id === 'history_not_written')?.figures.waiting ?? 0;
}

export const FILE_SCENES: readonly Scene[] = [
  {
    id: 'clients_file_unusable',
    subject: /./,
    async play(stage) {
      const path = join(await stage.folder('clients'), 'clients.yaml');
      const text = `- { name: a, key_sha256: ${'5e88'.repeat(16)} }\n`;
      await writeFile(path, text);
      const gateway = await stage.gateway({ clients_file: path });
      return {
        gateway,
        bring: () => writeFile(path, '- { name: a }\n'),
        mend: () => writeFile(path, text),
      };
    },
  },
  {
    id: 'state_not_stored',
    subject: /drains/,
    async play(stage) {
      const gateway = await stage.gateway();
      const path = join(await stage.folder('gateway'), 'state/drains.json');
      return {
        gateway,
        async bring() {
          await rm(path, { force: true });
          await mkdir(join(path, 'in-the-way'), { recursive: true });
          await tryAdmin(gateway, '/admin/replicas/a/drain');
        },
        mend: () => rm(path, { recursive: true }),
      };
    },
  },
  {
    id: 'records_not_written',
    subject: /./,
    whyNot: whyNoDisk,
    async play(stage) {
      const { gateway, fill, free } = await onSmallDisk(stage, (disk) => ({
        state_dir: disk,
        export: { to: 'file', interval: '100ms' },
      }));
      stage.traffic(gateway, 10);
      return { gateway, bring: fill, mend: free };
    },
  },
  {
    id: 'history_not_written',
    subject: /history\.db$/,
    whyNot: whyNoDisk,
    async play(stage) {
      const { gateway, fill, free } = await onSmallDisk(stage, (disk) => ({ state_dir: disk }));
      stage.traffic(gateway, 100);
      return { gateway, bring: fill, mend: free };
    },
  },
  {
    id: 'history_incomplete',
    subject: /history\.db$/,
    isSlow: true,
    whyNot: whyNoDisk,
    async play(stage) {
      const { gateway, fill } = await onSmallDisk(stage, (disk) => ({ state_dir: disk }));
      await fill();
      const traffic = stage.traffic(gateway, 1_000);
      // 32 MiB of records wait before any is left out.
      while ((await waitingBytesOf(gateway)) < 28 * 1024 ** 2) await sleep(500);
      traffic.stop();
      return { gateway, bring: () => void stage.traffic(gateway, 1_000) };
    },
  },
  {
    id: 'history_set_aside',
    subject: /history\.db$/,
    async play(stage) {
      const state = join(await stage.folder('gateway'), 'state');
      await mkdir(state, { recursive: true, mode: 0o700 });
      await writeFile(join(state, 'history.db'), 'no history\n'.repeat(1_000));
      return { gateway: await stage.gateway() };
    },
  },
  {
    id: 'log_lines_lost',
    subject: '',
    without: 'log',
    isSlow: true,
    async play(stage) {
      const gateway = await stage.gateway({ log: { requests: true, level: 'debug' } });
      const wanted = { id: 'log_lines_lost', subject: '' } as const;
      return {
        gateway,
        // Until the pipe and what waits behind it are full. Then the log goes on, and tells.
        async bring() {
          gateway.holdLog(true);
          const traffic = stage.traffic(gateway, 300);
          while ((await sentenceOf(wanted, gateway)) === null) await sleep(200);
          traffic.stop();
          gateway.holdLog(false);
        },
      };
    },
  },
  {
    id: 'spool_unreadable',
    subject: /./,
    isSlow: true,
    async play(stage) {
      const collector = await stage.collector();
      collector.answerAlways({ status: 503 });
      const config = { export: { endpoint: collector.url, interval: '100ms' }, shutdown: { flush: '0s' } };
      const first = await stage.gateway(config);
      await (
        await fetch(`${first.url}/v1/chat/completions`, {
          method: 'POST',
          body: JSON.stringify({ model: 'm', messages: [] }),
        })
      ).arrayBuffer();
      await first.end('SIGTERM');
      const spool = join(await stage.folder('gateway'), 'state/spool');
      for (const name of await readdir(spool)) await writeFile(join(spool, name), 'no record\n');
      collector.answerAlways({});
      return { gateway: await stage.gateway(config) };
    },
  },
];
