import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { calls, history, live } from './histories.ts';
import { STORIES } from './stories.ts';

// Hundreds of histories: seconds, and more on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

/** Chance decides what arrives when. */
const SEEDS = Array.from({ length: 60 }, (_, seed) => seed);

describe('a fleet', () => {
  test('never says that a replica is safe to stop while anybody has a request on it or can begin one', () => {
    fc.assert(
      fc.property(history, (past) => {
        expect(live(past).lies).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test('never answers a drain with "fleet" while a gateway that the answer does not name can begin a request', () => {
    fc.assert(
      fc.property(history, (past) => {
        expect(live(past).falseAnswers).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });

  test('ends as the last call says, where clocks agree, and no answer says more than is so', () => {
    let fullAnswers = 0;
    fc.assert(
      fc.property(calls, (past) => {
        const world = live(past, { doClocksAgree: true });
        fullAnswers += world.fullAnswers;
        world.healAll();
        expect([world.lies, world.falseAnswers, world.untoldAnswers]).toEqual([[], [], []]);
        for (const drains of world.describe().drains) {
          for (const [replica, drained] of JSON.parse(drains))
            expect(world.lastCalls.get(replica)).toBe(drained);
        }
      }),
      { numRuns: 100 },
    );
    expect(fullAnswers).toBeGreaterThan(300);
  });

  test('agrees when its faults are over, and then knows what is safe to stop', () => {
    fc.assert(
      fc.property(history, (past) => {
        const world = live(past);
        world.healAll();
        const { drains, safe } = world.describe();
        expect(new Set(drains).size).toBe(1);
        expect(safe.every((answer) => answer === true)).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  test('says that a replica is safe to stop in spite of faults that do not matter to it', () => {
    // Whoever never says yes never lies: the property above would be worth nothing.
    const worlds = fc.sample(history, { numRuns: 300, seed: 1 }).map((past) => live(past));
    expect(worlds.filter(({ answersInSpite }) => answersInSpite > 0).length).toBeGreaterThan(30);
  });

  test.each(STORIES)('$title', ({ gatewayCount, happenings }) => {
    for (const seed of SEEDS) expect(live({ gatewayCount, seed, happenings }).lies).toEqual([]);
  });
});
