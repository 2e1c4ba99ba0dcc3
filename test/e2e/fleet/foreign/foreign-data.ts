import { expect } from 'vitest';
import { type FleetGateway, startFleet, type TestFleet } from '../start-fleet.ts';

/** The hash of revisions in Redis. */
export const REVISIONS = '{spangate}:revisions';
/** The hash of snapshots in Redis. */
export const SNAPSHOTS = '{spangate}:ledgers';
const FOREIGN = 'the shared state contains data that no gateway wrote';

/** Writes bytes that a process argument cannot contain, with Lua escapes. */
export const putBytes = (key: string, field: string, value: string) =>
  ['eval', `return redis.call('hset', KEYS[1], ${field}, ${value})`, '1', key] as const;

/** Resolves when a drain by one gateway is applied and confirmed on both. */
export async function expectDrainPropagates(by: FleetGateway, other: FleetGateway): Promise<void> {
  expect(await by.drain('x')).toMatchObject({ scope: 'fleet', overtaken: false });
  await other.until('x', ({ drained }) => drained);
  for (const gateway of [by, other]) await gateway.until('x', ({ safe_to_stop }) => safe_to_stop === true);
  await by.undrain('x');
  await other.until('x', ({ drained }) => !drained);
}

/** Changes the store, and resolves when every gateway has read the change. */
export async function disturb(
  { redis }: TestFleet,
  gateways: readonly FleetGateway[],
  words: readonly string[],
) {
  await redis.command(...words);
  // The answer comes after a read that started later.
  for (const gateway of gateways) await gateway.undrain('y');
}

/** The log lines about data that no gateway wrote. */
export const linesAbout = ({ gateway }: FleetGateway) =>
  gateway.logLines.filter((line) => line.includes(FOREIGN));

/** A foreign field is named once, and drains propagate as before. `words`: the command that writes it. */
export async function expectNamedOnce(words: readonly string[], name: string): Promise<void> {
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
}
