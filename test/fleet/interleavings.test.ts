import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import { runs } from '#testkit/runs.ts';
import { calls, history, runHistory } from './model/histories.ts';
import { SCENARIOS } from './model/scenarios.ts';

// Hundreds of histories take seconds, and longer on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

/** The seed decides when messages arrive. */
const SEEDS = Array.from({ length: 60 }, (_, seed) => seed);

describe('a fleet', () => {
  test('never reports a replica as safe to stop while a gateway has a request on it or can start one', () => {
    fc.assert(
      fc.property(history, (past) => {
        expect(runHistory(past).violations).toEqual([]);
      }),
      { numRuns: runs(300) },
    );
  });

  test('never answers a drain with "fleet" while a gateway that the answer does not name can start a request', () => {
    fc.assert(
      fc.property(history, (past) => {
        expect(runHistory(past).drainViolations).toEqual([]);
      }),
      { numRuns: runs(150) },
    );
  });

  test('ends in the state of the last call if clocks agree, and no answer claims more than is true', () => {
    let confirmedAnswers = 0;
    fc.assert(
      fc.property(calls, (past) => {
        const world = runHistory(past, { doClocksAgree: true });
        confirmedAnswers += world.confirmedAnswers;
        world.healAll();
        expect([world.violations, world.drainViolations, world.unpublishedAnswers]).toEqual([[], [], []]);
        for (const drains of world.describe().drains) {
          for (const [replica, drained] of JSON.parse(drains))
            expect(world.lastCalls.get(replica)).toBe(drained);
        }
      }),
      { numRuns: runs(100) },
    );
    expect(confirmedAnswers).toBeGreaterThan(runs(300));
  });

  test('converges when its faults are over, and then knows what is safe to stop', () => {
    fc.assert(
      fc.property(history, (past) => {
        const world = runHistory(past);
        world.healAll();
        const { drains, safe } = world.describe();
        expect(new Set(drains).size).toBe(1);
        expect(safe.every((answer) => answer === true)).toBe(true);
      }),
      { numRuns: runs(200) },
    );
  });

  test('reports a replica as safe to stop despite faults that do not affect it', () => {
    // A fleet that never says yes is never wrong: without this test the property above would be worth nothing.
    const worlds = fc.sample(history, { numRuns: runs(300), seed: 1 }).map((past) => runHistory(past));
    expect(
      worlds.filter(({ safeAnswersDuringFaults }) => safeAnswersDuringFaults > 0).length,
    ).toBeGreaterThan(runs(30));
  });

  test.each(SCENARIOS)('$title', ({ gatewayCount, events }) => {
    for (const seed of SEEDS) expect(runHistory({ gatewayCount, seed, events }).violations).toEqual([]);
  });
});
