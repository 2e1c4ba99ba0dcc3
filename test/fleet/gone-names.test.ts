import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newLogicalTimestamp } from '#replicas/drain-state';
import { createScriptedStore, emptyDisk, pass, startScripted, toLink } from './scripted-fleet.ts';

const DAY_MS = 86_400_000;
const LOOK_MS = 601_000;
const WHY = { reason: 'new weights', at: '2026-01-01T00:00:00.000Z' };
const FORGOTTEN = 'drain states forgotten: no replica has had these names for so long';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Days pass at once: the clock of the system jumps, and the gateways look again. */
async function passDays(days: number) {
  vi.setSystemTime(Date.now() + days * DAY_MS);
  await pass(LOOK_MS + 5_000);
}

/** Two gateways that drained `x` when both had it. The second can be cut from the store. */
async function startPair() {
  const { store, snapshots } = createScriptedStore();
  const a = await startScripted('gw-a', store, { names: ['x'] });
  const { link, linked } = toLink(store);
  const b = await startScripted('gw-b', linked, { names: ['x'] });
  a.fleet.set('x', true, WHY);
  await pass(LOOK_MS);
  expect(b.drains.stateOf('x').drained).toBe(true);
  return { store, snapshots, a, b, link };
}

test('a name that no gateway has had for 30 days is forgotten by all, which the log says once', async () => {
  const { snapshots, a, b } = await startPair();
  for (const { drains } of [a, b]) drains.unbind('x', 0);
  await pass(LOOK_MS);
  await passDays(29);
  for (const { drains } of [a, b]) expect(drains.isRemembered('x')).toBe(true);
  await passDays(1);
  for (const { drains, lines, disk } of [a, b]) {
    expect(drains.isRemembered('x')).toBe(false);
    expect(disk.drains.has('x')).toBe(false);
    expect(lines.filter((line) => line.startsWith(FORGOTTEN))).toEqual([
      `${FORGOTTEN} {"replicas":["x"],"count":1,"days":30}`,
    ]);
  }
  // Nothing of it stays in the store.
  for (const { drains, gone, forgotten } of snapshots.values()) {
    expect([drains.size, gone, forgotten]).toEqual([0, undefined, undefined]);
  }
  a.fleet.set('x', true, WHY);
  await pass(5_000);
  expect(b.drains.stateOf('x').drained).toBe(true);
});

test('a name that one gateway has keeps its drain everywhere, however long the others are without it', async () => {
  const { a, b } = await startPair();
  a.drains.unbind('x', 0);
  for (let months = 0; months < 3; months++) await passDays(31);
  for (const { drains } of [a, b]) expect(drains.stateOf('x').drained).toBe(true);
  a.drains.bind('x', 0);
  expect(a.drains.stateOf('x').drained).toBe(true);
});

test('a gateway that cannot be asked, or that says nothing of it, keeps it everywhere', async () => {
  const { snapshots, a, b } = await startPair();
  for (const { drains } of [a, b]) drains.unbind('x', 0);
  await pass(LOOK_MS);
  // A gateway of an earlier version, which has vanished.
  const id = newLogicalTimestamp('');
  const [{ drains } = { drains: new Map() }] = snapshots.values();
  snapshots.set(id, { id, name: 'old', revision: 1, members: new Map(), removed: [], drains });
  await pass(LOOK_MS);
  await passDays(40);
  for (const { drains: known } of [a, b]) expect(known.isRemembered('x')).toBe(true);
  expect(a.fleet.forget('old')).toBeNull();
  await pass(LOOK_MS);
  for (const { drains: known } of [a, b]) expect(known.isRemembered('x')).toBe(false);
});

test('a name that comes back while it is being forgotten stays drained, also where it was forgotten', async () => {
  const { a, b, link } = await startPair();
  for (const { drains } of [a, b]) drains.unbind('x', 0);
  await pass(LOOK_MS);
  link.isCut = true;
  await passDays(40);
  expect(a.drains.isRemembered('x')).toBe(false);
  b.drains.bind('x', 0);
  link.isCut = false;
  await pass(10_000);
  for (const { drains } of [a, b]) {
    expect(drains.stateOf('x')).toMatchObject({ drained: true, reason: 'new weights' });
  }
  b.fleet.set('x', false, WHY);
  await pass(10_000);
  for (const { drains } of [a, b]) expect(drains.stateOf('x').drained).toBe(false);
});

test('a gateway without a disk counts from when the others have been without the name', async () => {
  const { store, a, b } = await startPair();
  for (const { drains } of [a, b]) drains.unbind('x', 0);
  await pass(LOOK_MS);
  await passDays(20);
  await b.leave();
  const fresh = await startScripted('gw-b', store, { disk: emptyDisk() });
  expect(fresh.drains.isRemembered('x')).toBe(true);
  await passDays(11);
  await pass(5_000);
  for (const { drains } of [a, fresh]) expect(drains.isRemembered('x')).toBe(false);
});

test('a name that is drained again while it is gone is kept for 30 days from then', async () => {
  const { a, b } = await startPair();
  for (const { drains } of [a, b]) drains.unbind('x', 0);
  await pass(LOOK_MS);
  await passDays(29);
  a.fleet.set('x', true, WHY);
  await pass(LOOK_MS);
  await passDays(25);
  for (const { drains } of [a, b]) expect(drains.isRemembered('x')).toBe(true);
  await passDays(6);
  for (const { drains } of [a, b]) expect(drains.isRemembered('x')).toBe(false);
});
