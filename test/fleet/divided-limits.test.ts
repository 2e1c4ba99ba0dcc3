import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createScriptedStore, pass, startScripted, toLink } from './scripted-fleet.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

async function startPair() {
  const { store, snapshots, heartbeats } = createScriptedStore();
  const [ofA, ofB] = [toLink(store), toLink(store)];
  const a = await startScripted('gw-a', ofA.linked);
  const b = await startScripted('gw-b', ofB.linked);
  await pass(5_000);
  expect([a.division, b.division]).toEqual([{ gatewayCount: 2 }, { gatewayCount: 2 }]);
  return { a, b, links: [ofA.link, ofB.link], snapshots, heartbeats };
}

test('gateways divide limits as before when the store has lost its data, until all have written again', async () => {
  const { a, b, snapshots, heartbeats } = await startPair();
  snapshots.clear();
  heartbeats.clear();
  const seen = new Set<number>();
  for (let step = 0; step < 100; step++) {
    await pass(100);
    for (const { division } of [a, b]) seen.add(division.gatewayCount);
  }
  expect([...seen]).toEqual([2]);
});

test('they do when it was away for longer than heartbeats are valid, and comes back empty', async () => {
  const { a, b, links, snapshots, heartbeats } = await startPair();
  for (const link of links) link.isCut = true;
  await pass(20_000);
  snapshots.clear();
  heartbeats.clear();
  const seen = new Set<number>();
  for (let step = 0; step < 100; step++) {
    for (const [at, link] of links.entries()) link.isCut &&= step < 9 * at;
    await pass(100);
    for (const { division } of [a, b]) seen.add(division.gatewayCount);
  }
  expect([...seen]).toEqual([2]);
});

test('a gateway that stops has no part of them at once, and one that is cut off when its heartbeat is over', async () => {
  const stopping = await startPair();
  await stopping.a.leave();
  await pass(1_000);
  expect(stopping.b.division).toEqual({ gatewayCount: 1 });

  const { b, links, heartbeats } = await startPair();
  for (const link of links.slice(0, 1)) link.isCut = true;
  await pass(6_250);
  const [first] = heartbeats.keys();
  heartbeats.delete(first ?? '');
  await pass(1_000);
  expect(b.division).toEqual({ gatewayCount: 1 });
});
