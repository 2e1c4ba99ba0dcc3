import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createScriptedStore, emptyDisk, pass, startScripted, toLink } from './scripted-fleet.ts';

const WHY = { reason: null, at: '2026-01-01T00:00:00.000Z' };
const STOPPED = 'a gateway has stopped with responses in the background';
const OVER = 'responses in the background of a gateway that has stopped are older';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Two gateways, and a drain of `x` on the second, while the first follows responses on it. */
async function startPair(limitMs = 600_000) {
  const { store, ...contents } = createScriptedStore();
  const disk = emptyDisk();
  const { link, linked } = toLink(store);
  const a = await startScripted('gw-a', linked, { disk });
  const b = await startScripted('gw-b', store);
  a.background.set('x', { running: 2, unknown: 1 });
  a.times.untilMs = performance.now() + limitMs;
  b.fleet.set('x', true, WHY);
  await pass(5_000);
  expect(b.statusOf('x')).toMatchObject({ safeToStop: false, background: { running: 2, unknown: 1 } });
  return { store, disk, a, b, link, ...contents };
}

test('what a gateway followed when it stopped is unknown to the others, until it is back and follows it', async () => {
  const { store, disk, a, b } = await startPair();
  await a.leave();
  await pass(8_000);
  const unknown = { safeToStop: null, background: { running: 0, unknown: 3 }, unconfirmed: [] };
  expect(b.statusOf('x')).toMatchObject(unknown);
  expect(b.statusOf('y')).toMatchObject({ background: { running: 0, unknown: 0 } });
  expect(b.lines.filter((line) => line.startsWith(STOPPED))).toEqual([
    `${STOPPED}: drains wait for them {"gateway":"gw-a","responses":3}`,
  ]);

  const again = await startScripted('gw-a', store, { disk });
  again.background.set('x', { running: 1, unknown: 0 });
  await pass(8_000);
  expect(b.statusOf('x')).toMatchObject({ safeToStop: false, background: { running: 1, unknown: 0 } });
  expect(b.lines).toContain(
    'a gateway goes on with its responses in the background {"gateway":"gw-a","responses":3}',
  );
  again.background.clear();
  await pass(2_000);
  expect(b.statusOf('x')).toMatchObject({ safeToStop: true });
});

test('it counts no more when the limit is over, which the log says once', async () => {
  const { a, b } = await startPair(60_000);
  await a.leave();
  await pass(45_000);
  expect(b.statusOf('x').safeToStop).toBeNull();
  await pass(40_000);
  expect(b.statusOf('x')).toMatchObject({ safeToStop: true, background: { running: 0, unknown: 0 } });
  await pass(40_000);
  expect(b.lines.filter((line) => line.startsWith(OVER))).toHaveLength(1);
  expect(b.lines.filter((line) => line.startsWith(STOPPED))).toHaveLength(1);
});

test('gateways do not teach each other again what is over', async () => {
  const { store, a, b } = await startPair(60_000);
  const c = await startScripted('gw-c', store);
  await a.leave();
  await pass(120_000);
  b.fleet.set('y', true, WHY);
  await pass(120_000);
  for (const { statusOf, lines } of [b, c]) {
    expect(statusOf('x').safeToStop).toBe(true);
    expect(lines.filter((line) => line.startsWith(STOPPED))).toHaveLength(1);
  }
});

test('a gateway that joins later, and one that has only heard of it from another, know it as well', async () => {
  const { store, snapshots, heartbeats, a, b } = await startPair();
  await a.leave();
  await pass(3_000);
  const c = await startScripted('gw-c', store);
  expect(c.statusOf('x').background).toEqual({ running: 0, unknown: 3 });
  await b.leave();
  // The store loses everything: one gateway is enough to tell the others again.
  snapshots.clear();
  heartbeats.clear();
  const d = await startScripted('gw-d', store);
  expect(d.statusOf('x')).toMatchObject({ safeToStop: null, background: { running: 0, unknown: 3 } });
});

test('a gateway that stops with nothing leaves nothing', async () => {
  const { snapshots, a, b } = await startPair();
  a.background.clear();
  await a.leave();
  await pass(8_000);
  expect(b.statusOf('x').safeToStop).toBe(true);
  expect([...snapshots.values()].every(({ left }) => left === undefined)).toBe(true);
});

test('what a gateway followed that has vanished counts when an operator forgets it, until it is back', async () => {
  const { store, disk, b, heartbeats, link } = await startPair();
  link.isCut = true;
  heartbeats.clear();
  await pass(10_000);
  expect(b.statusOf('x')).toMatchObject({ safeToStop: null, unconfirmed: ['gw-a'] });
  expect(b.fleet.forget('gw-a')).toBeNull();
  await pass(3_000);
  const unknown = { safeToStop: null, background: { running: 0, unknown: 3 }, unconfirmed: [] };
  expect(b.statusOf('x')).toMatchObject(unknown);
  await startScripted('gw-a', store, { disk: structuredClone(disk) });
  await pass(8_000);
  expect(b.statusOf('x')).toMatchObject({ safeToStop: true });
});
