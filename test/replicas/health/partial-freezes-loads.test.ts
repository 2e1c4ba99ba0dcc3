import { describe, expect, test } from 'vitest';
import type { HealthDecision } from '#replicas/health-state';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import { toRandom } from '#testkit/random.ts';
import { CHANGING_LOADS, SILENCE_LOADS, type SilenceLoad } from '#testkit/silence/loads.ts';
import { SIMULATED_REPLICAS } from '#testkit/silence/run-silences.ts';
import { SimulatedEngine, STREAM_KIND } from '#testkit/silence/simulated-engine.ts';
import { DeadlineClock } from '#wire';
import { SilenceSampler } from '../../../src/replicas/data/silence-sampler.ts';
import { PartialFreezes } from '../../../src/replicas/health/partial-freezes.ts';
import { StreamSilenceLearner } from '../../../src/replicas/health/stream-silence-learner.ts';

/** 400 replica-days were simulated once, without an alarm. */
const HOURS = 2;
const STEPS_PER_SECOND = 2;
const GIVEN_UP_AFTER_MS = 15 * 60_000;
const SETTINGS = { coolDownMs: 10_000, maxFailingShare: 0.5 };

/** Runs a load in virtual time. From then on `r0` forgets this share of its streams. Returns what was found, with seconds. */
function run(
  load: SilenceLoad,
  hours: number,
  { seed = 1, sticksFromS = Number.POSITIVE_INFINITY, share = 1 / 3 } = {},
) {
  let nowMs = 1_000_000;
  const random = toRandom(seed);
  const configs = SIMULATED_REPLICAS.map((name) => toReplicaConfig(name));
  const { registry, shared, pool } = createPools(configs, 1, { nowMs: () => nowMs });
  pool.close();
  const { health: table, silences, ramps, silenceLimits } = shared;
  const times = new StreamSilenceLearner(silenceLimits, () => nowMs);
  times.take(new Map([['m', STREAM_KIND]]));
  const engines = SIMULATED_REPLICAS.map(() => new SimulatedEngine(load.engine));
  for (const engine of engines) engine.onStreamEnd = (ended) => times.add({ model: 'm', ...ended });
  const found: string[] = [];
  let second = 0;
  const freezes = new PartialFreezes({
    registry,
    table,
    silences,
    ramps,
    decisions: {
      note: ({ replica, verdict }: HealthDecision) => {
        if (verdict === 'failing') found.push(`${replica} after ${Math.ceil(second - sticksFromS)} s`);
      },
    },
  });
  const sampler = new SilenceSampler({
    shared,
    worker: 0,
    clock: new DeadlineClock(1, {
      nowMs: () => nowMs,
      every: () => () => undefined,
      afterReads: () => undefined,
    }),
    replicas: () =>
      engines.map((engine, index) => ({
        slot: registry.find(SIMULATED_REPLICAS[index] ?? '')?.slot ?? -1,
        upstreams: [engine],
      })),
  });
  let [turn, owed, silent] = [0, 0, 0];
  for (let step = 1; step <= hours * 3_600 * STEPS_PER_SECOND && found.length === 0; step++) {
    second = step / STEPS_PER_SECOND;
    nowMs = 1_000_000 + 1_000 * second;
    owed += load.rateAt(second) / STEPS_PER_SECOND;
    while (owed > 0) {
      const index = turn++ % engines.length;
      const engine = engines[index];
      if (engine !== undefined) {
        engine.sticksNext = index === 0 && second >= sticksFromS && random() < share;
        engine.send(load.next(random, second), nowMs);
      }
      owed += Math.log(1 - random());
    }
    for (const engine of engines) {
      engine.work(nowMs, 1 / STEPS_PER_SECOND);
      engine.giveUp(nowMs - GIVEN_UP_AFTER_MS);
    }
    if (step % STEPS_PER_SECOND !== 0) continue;
    sampler.sample();
    freezes.check(SETTINGS);
    for (const { slot } of registry.replicas) silent += silences.streamsOf(slot).silent;
  }
  return { found, silent };
}

/** Calls of tools that take longer than a stream may be silent, in a load that keeps the replicas busy. */
const [, steady] = SILENCE_LOADS[0] ?? [];
if (steady === undefined) throw new Error('no load');
const TOOLS: SilenceLoad = {
  ...steady,
  next: (random, seconds) => ({
    ...steady.next(random, seconds),
    heldShare: random() < 0.2 ? 0.5 + 0.4 * random() : 0,
  }),
};

describe('healthy replicas are not found', () => {
  test.each([...SILENCE_LOADS, ...CHANGING_LOADS])('under a load of %s', { timeout: 300_000 }, (_, load) => {
    expect(run(load, HOURS).found).toEqual([]);
  });

  test('although many calls of tools are silent for longer than is usual', { timeout: 300_000 }, () => {
    const { found, silent } = run(TOOLS, HOURS);
    expect(found).toEqual([]);
    expect(silent).toBeGreaterThan(1_000);
  });
});

test.each([1, 2, 3, 4])(
  'a busy replica that forgets a third of its streams is found within 15 s (seed %i)',
  (seed) => {
    const engine = { ...steady.engine, promptTokensPerSecond: 30_000, gapS: 0.008 };
    const { found } = run({ ...steady, engine, rateAt: () => 24 }, 1, { seed, sticksFromS: 600 });
    expect(found).toHaveLength(1);
    expect(found[0]).toMatch(/^r0 after (?:\d|1[0-5]) s$/);
  },
);
