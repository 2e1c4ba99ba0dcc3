import { describe, expect, onTestFinished, test } from 'vitest';
import { createRedisStore } from '../../../src/fleet/redis-store.ts';
import { newLogicalTimestamp } from '../../../src/replicas/control/logical-timestamp.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { type FleetGateway, startFleet, type TestFleet } from './start-fleet.ts';

const REVISIONS = '{spangate}:revisions';
const SNAPSHOTS = '{spangate}:ledgers';
const FOREIGN = 'the shared state contains data that no gateway wrote';

/** Writes bytes that a process argument cannot contain, with Lua escapes. */
const putBytes = (key: string, field: string, value: string) =>
  ['eval', `return redis.call('hset', KEYS[1], ${field}, ${value})`, '1', key] as const;

/** Resolves when a drain by one gateway is applied and confirmed on both. */
async function expectDrainPropagates(by: FleetGateway, other: FleetGateway): Promise<void> {
  expect(await by.drain('x')).toMatchObject({ scope: 'fleet', overtaken: false });
  await other.until('x', ({ drained }) => drained);
  for (const gateway of [by, other]) await gateway.until('x', ({ safe_to_stop }) => safe_to_stop === true);
  await by.undrain('x');
  await other.until('x', ({ drained }) => !drained);
}

/** Changes the store, and resolves when every gateway has read the change. */
async function disturb({ redis }: TestFleet, gateways: readonly FleetGateway[], words: readonly string[]) {
  await redis.command(...words);
  // The answer comes after a read that started later.
  for (const gateway of gateways) await gateway.undrain('y');
}

const linesAbout = ({ gateway }: FleetGateway) => gateway.logLines.filter((line) => line.includes(FOREIGN));

describe.concurrent('foreign data in the shared state', () => {
  test.each([
    ['a field', ['hset', REVISIONS, 'foo', '1'], `${REVISIONS} foo`],
    ['a field named like a part of every object', ['hset', REVISIONS, '__proto__', '1'], '__proto__'],
    ['a field named like a method of every object', ['hset', REVISIONS, 'constructor', '1'], 'constructor'],
    ['a field that is not text', putBytes(REVISIONS, `'\\255\\254'`, `'1'`), `${REVISIONS} `],
    [
      'a gateway whose revision is not a number',
      ['hset', REVISIONS, newLogicalTimestamp(''), 'NaN'],
      REVISIONS,
    ],
    ['a gateway whose revision is negative', ['hset', REVISIONS, newLogicalTimestamp(''), '-1'], REVISIONS],
  ])('%s is named once, and drains propagate as before', async (_, words, name) => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    await disturb(fleet, [a, b], words);
    await expectDrainPropagates(a, b);
    await expectDrainPropagates(b, a);
    expect(linesAbout(a)).toMatchObject([expect.stringContaining(name)]);
    // Gateways that start or restart meanwhile are not affected.
    const c = await fleet.start('gw-c');
    await b.gateway.close();
    const again = await fleet.start('gw-b');
    await expectDrainPropagates(again, c);
    expect((await a.gateways()).map(({ name: known }) => known)).toEqual(['gw-a', 'gw-b', 'gw-c']);
  });

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

  test.each([
    ['revisions', REVISIONS],
    ['snapshots', SNAPSHOTS],
  ])(
    'a string in place of the %s is named, and drains propagate again when it is removed',
    async (_, key) => {
      await using fleet = await startFleet('gw-a', 'gw-b');
      const [a, b] = fleet.gateways;
      await a.drain('y');
      await fleet.redis.command('set', key, 'foo');
      await Promise.all([a, b].map(({ gateway }) => gateway.untilLogged(`"foreign":["${key}"]`)));
      expect(await a.drain('x')).toMatchObject({ scope: 'local', replica: { drained: true } });
      await fleet.redis.command('del', key);
      for (const name of ['x', 'y']) await b.until(name, ({ safe_to_stop }) => safe_to_stop === true);
      await a.undrain('x');
      await expectDrainPropagates(a, b);
      expect(linesAbout(a).length).toBe(1);
      await expectDrainPropagates(await fleet.start('gw-c'), b);
    },
  );
});

test('a read returns foreign names beside the messages of the fleet', async () => {
  const redis = await startRedisServer();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const store = createRedisStore({ url: (await redis.openLink()).url, prefix: 'spangate' });
  onTestFinished(() => store.close());
  const [one, two] = [newLogicalTimestamp(''), newLogicalTimestamp('')];
  for (let index = 0; index < 300; index++) await redis.command('hset', REVISIONS, `f\u001b${index}`, '1');
  for (const id of [one, two]) await redis.command('hset', REVISIONS, id, '1');
  await redis.command(...putBytes(SNAPSHOTS, `'${one}'`, `string.rep('x', 9000000)`));
  await redis.command('set', `{spangate}:beat:${two}`, `{"id":"${one}"}`);
  const { revisions, snapshots, heartbeats, foreign } = await store.read(new Map());
  expect([[...revisions.keys()].sort(), snapshots, heartbeats]).toEqual([[one, two].sort(), [], []]);
  expect(foreign.length).toBe(100);
  expect(foreign.every((name) => /^[ -~]{1,120}$/.test(name))).toBe(true);
});
