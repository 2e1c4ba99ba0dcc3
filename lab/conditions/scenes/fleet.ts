import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ROOT } from '#testkit/programs/results.ts';
import { startRedisServer } from '#testkit/servers/redis-server.ts';
import { callAdmin } from '../act.ts';
import type { Scene } from '../scene.ts';
import { type Stage, toEntry } from '../stage.ts';

/** What gateways of a fleet have in common. */
async function openFleet(stage: Stage) {
  const redis = stage.use(await startRedisServer());
  const replicas = [toEntry(await stage.replica('a')), toEntry(await stage.replica('b'))];
  const config = async () => {
    const link = await redis.openLink();
    return { link, settings: { replicas, state: { redis: link.url } } };
  };
  return { redis, config };
}

/** A checkout of the same sources with another version. */
async function otherVersion(stage: Stage): Promise<string> {
  const folder = join(await stage.folder('other'), 'checkout');
  await mkdir(folder);
  for (const name of ['src', 'otel', 'docs', 'testkit'])
    await cp(join(ROOT, name), join(folder, name), { recursive: true });
  await symlink(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const text = await readFile(join(ROOT, 'package.json'), 'utf8');
  await writeFile(join(folder, 'package.json'), text.replace(/"version": "[^"]+"/, '"version": "0.0.9"'));
  return folder;
}

export const FLEET_SCENES: readonly Scene[] = [
  {
    id: 'redis_away',
    subject: '',
    async play(stage) {
      const { config } = await openFleet(stage);
      const { link, settings } = await config();
      const gateway = await stage.gateway(settings);
      return { gateway, bring: () => link.become('cut'), mend: () => link.become('whole') };
    },
  },
  {
    id: 'gateway_versions_differ',
    subject: '',
    isSlow: true,
    async play(stage) {
      const { config } = await openFleet(stage);
      const gateway = await stage.gateway((await config()).settings);
      const checkout = await otherVersion(stage);
      const { settings } = await config();
      let other: Awaited<ReturnType<Stage['gateway']>> | undefined;
      return {
        gateway,
        bring: async () => {
          other = await stage.gateway(settings, {}, { name: 'second', checkout });
        },
        mend: () => other?.end('SIGTERM'),
      };
    },
  },
  {
    id: 'drains_not_spread',
    subject: 'a',
    isSlow: true,
    async play(stage) {
      const { config } = await openFleet(stage);
      const gateway = await stage.gateway((await config()).settings);
      const { link, settings } = await config();
      await stage.gateway(settings, {}, { name: 'second' });
      return {
        gateway,
        async bring() {
          link.become('silent');
          await callAdmin(gateway, '/admin/replicas/a/drain');
        },
        mend: () => link.become('whole'),
      };
    },
  },
];
