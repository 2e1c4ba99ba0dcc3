import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { DrainState } from '#replicas/drain-state';
import { allocateSharedState, SharedState } from '#replicas/shared';
import { parseDrainStates, printDrainStates } from '../../../src/replicas/drains/drain-file.ts';
import { forgetGoneNames } from '../../../src/replicas/drains/forget-gone.ts';
import { Drains } from '../../../src/replicas/drains/replica-drains.ts';

const DAY_MS = 86_400_000;
const START = Date.parse('2026-01-01T00:00:00.000Z');
const WHY = { reason: null, at: '2026-01-01T00:00:00.000Z' };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A gateway with this file, whose clock the test moves. */
async function start(file: string | null, nowEpochMs: () => number) {
  let text = file;
  const logged: object[] = [];
  const drains = new Drains({
    shared: new SharedState(allocateSharedState(4)),
    file: {
      read: async () => (text === null ? new Map() : (parseDrainStates(text)?.value ?? new Map())),
      write: async (states: ReadonlyMap<string, DrainState>) => {
        text = printDrainStates(states);
      },
      close: async () => undefined,
    },
    barrier: async () => [],
    log: { debug: () => undefined },
  });
  await drains.restore(nowEpochMs());
  const forgetting = forgetGoneNames(drains, {
    epochMs: nowEpochMs,
    log: { info: (fields) => logged.push(fields) },
  });
  return { drains, logged, forgetting, file: () => text };
}

const look = () => vi.advanceTimersByTime(600_000);

test('a name that is gone for 30 days is forgotten over restarts, and the log says so; others are kept', async () => {
  let nowMs = START;
  const first = await start(null, () => nowMs);
  for (const [slot, name] of ['gone', 'back', 'here'].entries()) {
    first.drains.bind(name, slot);
    first.drains.set(name, true, WHY);
  }
  first.drains.unbind('gone', 0);
  first.drains.unbind('back', 1);
  look();
  first.forgetting[Symbol.dispose]();

  nowMs += 29 * DAY_MS;
  const second = await start(first.file(), () => nowMs);
  second.drains.bind('here', 2);
  look();
  expect(second.drains.stateOf('gone').drained).toBe(true);
  second.drains.bind('back', 1);
  second.drains.unbind('back', 1);
  look();
  nowMs += DAY_MS;
  look();
  expect(second.logged).toEqual([{ replicas: ['gone'], count: 1, days: 30 }]);
  expect(second.drains.isRemembered('gone')).toBe(false);
  expect(second.drains.isConfirmed('gone')).toBe(true);
  for (const name of ['back', 'here']) expect(second.drains.stateOf(name).drained).toBe(true);
  expect([...(parseDrainStates(second.file() ?? '')?.value.keys() ?? [])]).toEqual(['back', 'here']);

  nowMs += 28 * DAY_MS;
  look();
  expect(second.logged).toHaveLength(1);
  nowMs += DAY_MS;
  look();
  expect(second.logged.at(-1)).toEqual({ replicas: ['back'], count: 1, days: 30 });
  second.forgetting[Symbol.dispose]();
  // It has ended, and looks no more.
  expect(first.logged).toEqual([]);
});

test('a name that is drained or undrained while it is gone is kept for 30 days from then', async () => {
  let nowMs = START;
  const { drains, logged } = await start(null, () => nowMs);
  drains.set('gone', true, WHY);
  look();
  nowMs += 20 * DAY_MS;
  drains.set('gone', false, WHY);
  expect(drains.stateOf('gone')).not.toHaveProperty('goneSince');
  look();
  nowMs += 20 * DAY_MS;
  look();
  expect(drains.isRemembered('gone')).toBe(true);
  nowMs += 10 * DAY_MS;
  look();
  expect(logged).toHaveLength(1);
});
