import { describe, expect, onTestFinished, test } from 'vitest';
import { createFleetStore } from '../../../src/fleet/store.ts';
import { newStamp } from '../../../src/replicas/shared/stamp.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { type FleetGateway, startFleet, type TestFleet } from './start-fleet.ts';

const REVISIONS = '{spangate}:revisions';
const LEDGERS = '{spangate}:ledgers';
const FOREIGN = 'the shared state holds what no gateway wrote';

/** Puts bytes that no argument of a process can hold; Lua has escapes for them. */
const putBytes = (key: string, field: string, value: string) =>
  ['eval', `return redis.call('hset', KEYS[1], ${field}, ${value})`, '1', key] as const;

/** Resolves when a drain by one of them holds on both, and is known to. */
async function expectDrainSpreads(by: FleetGateway, other: FleetGateway): Promise<void> {
  expect(await by.drain('x')).toMatchObject({ scope: 'fleet', overtaken: false });
  await other.until('x', ({ drained }) => drained);
  for (const gateway of [by, other]) await gateway.until('x', ({ safe_to_stop }) => safe_to_stop === true);
  await by.undrain('x');
  await other.until('x', ({ drained }) => !drained);
}

/** Does something to the store, and resolves when every gateway has read what came of it. */
async function disturb({ redis }: TestFleet, gateways: readonly FleetGateway[], words: readonly string[]) {
  await redis.command(...words);
  // Answered after a reading that began later.
  for (const gateway of gateways) await gateway.undrain('y');
}

const namings = ({ gateway }: FleetGateway) => gateway.logLines.filter((line) => line.includes(FOREIGN));

describe.concurrent('what no gateway wrote into the shared state', () => {
  test.each([
    ['a field', ['hset', REVISIONS, 'foo', '1'], `${REVISIONS} foo`],
    ['a field named like a part of every object', ['hset', REVISIONS, '__proto__', '1'], '__proto__'],
    ['a field named like a method of every object', ['hset', REVISIONS, 'constructor', '1'], 'constructor'],
    ['a field that is no text', putBytes(REVISIONS, `'\\255\\254'`, `'1'`), `${REVISIONS} `],
    ['a gateway whose revision is no number', ['hset', REVISIONS, newStamp(''), 'NaN'], REVISIONS],
    ['a gateway whose revision is negative', ['hset', REVISIONS, newStamp(''), '-1'], REVISIONS],
  ])('%s is named once, and drains spread as before', async (_, words, name) => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    await disturb(fleet, [a, b], words);
    await expectDrainSpreads(a, b);
    await expectDrainSpreads(b, a);
    expect(namings(a)).toMatchObject([expect.stringContaining(name)]);
    // Who starts meanwhile is not concerned, nor who starts again.
    const c = await fleet.start('gw-c');
    await b.gateway.close();
    const again = await fleet.start('gw-b');
    await expectDrainSpreads(again, c);
    expect((await a.gateways()).map(({ name: known }) => known)).toEqual(['gw-a', 'gw-b', 'gw-c']);
  });

  test('a value of 20 MB is ignored, however long it takes to read it', async () => {
    await using fleet = await startFleet('gw-a', 'gw-b');
    const [a, b] = fleet.gateways;
    await fleet.redis.command(...putBytes(REVISIONS, `'foo'`, `string.rep('x', 20000000)`));
    await a.drain('x');
    await b.until('x', ({ drained }) => drained);
    for (const gateway of [a, b]) await gateway.until('x', ({ safe_to_stop }) => safe_to_stop === true);
    expect(namings(a).length).toBe(1);
  });

  test('of a gateway that is there keeps others from believing it, until it writes again by itself', async () => {
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
    await disturb(fleet, [a, b], ['hset', LEDGERS, own, '{"id":12}']);
    // It cannot join before it has read what gw-b knows.
    const c = await fleet.start('gw-c');
    await disturb(fleet, [a], ['hset', REVISIONS, own, '9007199254740000']);
    await disturb(fleet, [a], ['del', `{spangate}:beat:${own}`]);
    await disturb(fleet, [a], ['rpush', `{spangate}:beat:${own}`, '1']);
    await expectDrainSpreads(a, b);
    await expectDrainSpreads(c, b);
  });

  test.each([
    ['revisions', REVISIONS],
    ['ledgers', LEDGERS],
  ])(
    'a text in the place of the %s is named, and what was shared is shared again when it is gone',
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
      await expectDrainSpreads(a, b);
      expect(namings(a).length).toBe(1);
      await expectDrainSpreads(await fleet.start('gw-c'), b);
    },
  );
});

test('what is not of a fleet is told beside what is', async () => {
  const redis = await startRedisServer();
  onTestFinished(() => redis[Symbol.asyncDispose]());
  const store = createFleetStore({ url: (await redis.openLink()).url, prefix: 'spangate' });
  onTestFinished(() => store.close());
  const [one, two] = [newStamp(''), newStamp('')];
  for (let index = 0; index < 300; index++) await redis.command('hset', REVISIONS, `f\u001b${index}`, '1');
  for (const id of [one, two]) await redis.command('hset', REVISIONS, id, '1');
  await redis.command(...putBytes(LEDGERS, `'${one}'`, `string.rep('x', 9000000)`));
  await redis.command('set', `{spangate}:beat:${two}`, `{"id":"${one}"}`);
  const { revisions, ledgers, beats, foreign } = await store.read(new Map());
  expect([[...revisions.keys()].sort(), ledgers, beats]).toEqual([[one, two].sort(), [], []]);
  expect(foreign.length).toBe(100);
  expect(foreign.every((name) => /^[ -~]{1,120}$/.test(name))).toBe(true);
});
