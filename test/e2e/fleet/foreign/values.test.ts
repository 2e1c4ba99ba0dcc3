import { describe, expect, onTestFinished, test } from 'vitest';
import { createRedisStore } from '#fleet';
import { newLogicalTimestamp } from '#replicas/drain-state';
import { startRedisServer } from '#testkit/servers/redis-server.ts';
import { startFleet } from '../start-fleet.ts';
import {
  disturb,
  expectDrainPropagates,
  linesAbout,
  putBytes,
  REVISIONS,
  SNAPSHOTS,
} from './foreign-data.ts';

describe('foreign data in the shared state', () => {
  test('a value of 20 MB is ignored, even if reading it takes long', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    await fleet.redis.command(...putBytes(REVISIONS, `'foo'`, `string.rep('x', 20000000)`));
    await a.drain('x');
    await b.until('x', ({ drained }) => drained);
    for (const gateway of [a, b]) await gateway.until('x', ({ safe_to_stop }) => safe_to_stop === true);
    expect(linesAbout(a).length).toBe(1);
  });

  test('in place of the messages of a gateway makes it count as not alive until it writes again', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    const ids = Object.fromEntries(
      (
        (await (await a.gateway.admin('/admin/gateways')).json()) as {
          gateways: { name: string; id: string }[];
        }
      ).gateways.map(({ name, id }) => [name, id]),
    );
    const own = ids['gw-b'] ?? '';
    await disturb(fleet, [a, b], ['hset', SNAPSHOTS, own, '{"id":12}']);
    // gw-c cannot join before it has read the snapshot of gw-b.
    const c = await fleet.start('gw-c');
    await disturb(fleet, [a], ['hset', REVISIONS, own, '9007199254740000']);
    await disturb(fleet, [a], ['del', `{spangate}:beat:${own}`]);
    await disturb(fleet, [a], ['rpush', `{spangate}:beat:${own}`, '1']);
    await expectDrainPropagates(a, b);
    await expectDrainPropagates(c, b);
  });
});

test('a read returns foreign names beside the messages of the fleet', async () => {
  const redis = await startRedisServer();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const { url } = await redis.openLink();
  const store = createRedisStore({ url: () => url, prefix: 'spangate' });
  onTestFinished(() => store.close());
  const [one, two] = [newLogicalTimestamp(''), newLogicalTimestamp('')];
  const putMany = `for i = 1, 300 do redis.call('hset', KEYS[1], 'f\\027' .. i, '1') end`;
  await redis.command('eval', putMany, '1', REVISIONS);
  for (const id of [one, two]) await redis.command('hset', REVISIONS, id, '1');
  await redis.command(...putBytes(SNAPSHOTS, `'${one}'`, `string.rep('x', 9000000)`));
  await redis.command('set', `{spangate}:beat:${two}`, `{"id":"${one}"}`);
  const { revisions, snapshots, heartbeats, foreign } = await store.read(new Map());
  expect([[...revisions.keys()].sort(), snapshots, heartbeats]).toEqual([[one, two].sort(), [], []]);
  expect(foreign.length).toBe(100);
  expect(foreign.every((name) => /^[ -~]{1,120}$/.test(name))).toBe(true);
});
