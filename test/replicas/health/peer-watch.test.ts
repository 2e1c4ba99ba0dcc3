import { describe, expect, test } from 'vitest';
import { Lease } from '#replicas';
import type { HealthDecision } from '#replicas/health-state';
import { createPools, type PoolOptions, toReplicaConfig } from '#testkit/pool.ts';
import { toRandom } from '#testkit/random.ts';
import { PLAIN, simulateSeconds } from '#testkit/verdict/workload.ts';
import type { Observation } from '#verdict/blocks';
import { type PeerSettings, PeerWatch } from '../../../src/replicas/health/peer-watch.ts';

const NAMES = ['r0', 'r1', 'r2', 'r3'] as const;
type Name = (typeof NAMES)[number];

const SETTINGS: PeerSettings = {
  toleranceShare: 0.05,
  maxFailingShare: 0.5,
  coolDownMs: 60_000,
  rampMs: 60_000,
};

/** How a replica differs: its times by a factor, and the share of its requests that fail. */
interface Fault {
  readonly slowness?: number;
  readonly errorShare?: number;
}

/**
 * Replicas of one model under simulated requests, which go where the pool of a worker sends them, and the watch over
 * them. `faults` may change at any time.
 */
function createScene(
  names: readonly Name[] = NAMES,
  { seed = 1, policy }: { seed?: number; policy?: PoolOptions['policy'] } = {},
) {
  let nowMs = 1_000_000;
  const configs = names.map((name) => toReplicaConfig(name));
  const pools = createPools(configs, 1, {
    nowMs: () => nowMs,
    ...(policy === undefined ? {} : { policy }),
  });
  const { pool, registry, shared } = pools;
  shared.health.configure({
    passive: false,
    active: false,
    failures: 3,
    coolDownMs: 0,
    frozenAfterMs: null,
    peers: SETTINGS,
  });
  const faults = new Map<Name, Fault>();
  const decisions: (HealthDecision & { readonly atS: number })[] = [];
  let elapsedS = 0;
  const watch = new PeerWatch({
    registry,
    shared,
    onSwitch: () => undefined,
    policy: () => policy ?? 'round_robin',
    decisions: { note: (decision) => void decisions.push({ ...decision, atS: elapsedS }) },
  });
  const random = toRandom(seed);
  const turns = new Map<string, number>();
  const choose = () => {
    const lease = pool.acquire('m', new Set());
    if (!(lease instanceof Lease)) throw new Error('no replica took a request');
    using held = lease;
    const { name } = held.replica;
    turns.set(name, (turns.get(name) ?? 0) + 1);
    return Number(name.slice(1));
  };
  const seconds = simulateSeconds({ ...PLAIN, requestsPerSecond: 80 }, random, choose);
  return {
    ...pools,
    watch,
    faults,
    decisions,
    shared,
    /** So many seconds pass. Returns how many requests each replica got meanwhile. */
    pass(count: number, settings = SETTINGS): Readonly<Record<string, number>> {
      turns.clear();
      for (let second = 0; second < count; second++) {
        const { own = [], peers = [] } = seconds.next().value ?? {};
        for (const observation of [...own, ...peers]) {
          const { slowness = 1, errorShare = 0 } = faults.get(observation.replica as Name) ?? {};
          const { ttftMs, gapMs, e2eMs } = observation;
          watch.observe({
            ...observation,
            ttftMs: ttftMs === null ? null : slowness * ttftMs,
            gapMs: gapMs === null ? null : slowness * gapMs,
            e2eMs: slowness * e2eMs,
            ...(random() < errorShare ? { outcome: 'error' as const, finish: null } : {}),
          });
        }
        elapsedS++;
        for (let quarter = 0; quarter < 4; quarter++) {
          nowMs += 250;
          watch.look(settings);
        }
      }
      return Object.fromEntries(turns);
    },
    /** What was decided so far, as `r0 failing slow`. */
    log: () => decisions.map(({ replica, verdict, judge }) => `${replica} ${verdict} ${judge}`),
    slotOf: (name: Name) => registry.find(name)?.slot ?? -1,
    healthOf: (name: Name) => registry.find(name)?.health ?? null,
  };
}

describe('a replica like its peers', () => {
  test.each([1, 2])('is not found bad in ten minutes (seed %i)', (seed) => {
    const { pass, log } = createScene(NAMES, { seed });
    pass(600);
    expect(log()).toEqual([]);
  });

  test('is not found bad because all are slow, or fail, together', () => {
    const { pass, log, faults } = createScene();
    pass(60);
    for (const name of NAMES) faults.set(name, { slowness: 3 });
    pass(300);
    for (const name of NAMES) faults.set(name, { errorShare: 0.5 });
    pass(300);
    expect(log()).toEqual([]);
  });
});

describe('a replica that is worse than its peers', () => {
  test('is tried last when it is 20 % slower, within two minutes', () => {
    const { pass, faults, decisions, healthOf } = createScene();
    pass(60);
    faults.set('r0', { slowness: 1.2 });
    for (let second = 0; second < 120 && decisions.length === 0; second++) pass(1);
    expect(decisions).toMatchObject([{ replica: 'r0', judge: 'slow', verdict: 'failing' }]);
    expect(decisions[0]?.reason).toMatch(/gaps \d\d % longer.*\([\d,]+ requests\)$/);
    expect(decisions[0]?.forMs).toBeLessThan(120_000);
    expect(healthOf('r0')).toMatchObject({ state: 'failing', failingBy: ['slow'] });
  });

  test('is tried last when 5 % of its requests fail, within a minute', () => {
    const { pass, faults, decisions, healthOf } = createScene();
    pass(60);
    faults.set('r2', { errorShare: 0.05 });
    for (let second = 0; second < 60 && decisions.length === 0; second++) pass(1);
    expect(decisions).toMatchObject([{ replica: 'r2', judge: 'errors', verdict: 'failing' }]);
    expect(decisions[0]?.reason).toMatch(/% of attempts fail \(peers/);
    expect(healthOf('r2')).toMatchObject({ state: 'failing', failingBy: ['errors'] });
    expect(pass(5).r2).toBeUndefined();
  });

  test('gets turns again after the cool-down, few at first, and all of them when it is well', () => {
    const { pass, faults, log, registry } = createScene();
    faults.set('r0', { errorShare: 0.3 });
    pass(30);
    expect(log()).toEqual(['r0 failing errors']);
    faults.clear();
    while (log().length === 1) pass(1);
    expect(log()[1]).toBe('r0 probation errors');
    const { r0: few = 0, r1: even = 1 } = pass(5);
    expect(few / even).toBeGreaterThan(0.02);
    expect(few / even).toBeLessThan(0.3);
    expect(registry.find('r0')?.ramp?.durationMs).toBe(60_000);

    while (log().length === 2) pass(1);
    expect(log()).toEqual(['r0 failing errors', 'r0 probation errors', 'r0 ok errors']);
    const { r0, r1 } = pass(4);
    expect(r0).toBe(r1);
  });

  test('is found again sooner, and is away longer each time, so that it does not flap', () => {
    const { pass, faults, decisions } = createScene();
    faults.set('r0', { errorShare: 0.05 });
    pass(2_700);
    const failing = decisions.filter(({ verdict }) => verdict === 'failing');
    const back = decisions.filter(({ verdict }) => verdict === 'probation');
    const away = back.map(({ atS }, index) => atS - (failing[index]?.atS ?? 0));
    expect(away.slice(0, 5)).toEqual([60, 120, 240, 480, 960].map((s) => expect.closeTo(s, -0.5)));
    expect(failing.length).toBeLessThanOrEqual(7);
    expect(new Set(decisions.map(({ replica }) => replica))).toEqual(new Set(['r0']));
  });

  test('is found slow again while its share of turns still grows', () => {
    const { pass, faults, decisions, registry } = createScene();
    faults.set('r0', { slowness: 1.5 });
    while (decisions.length < 3) pass(1, { ...SETTINGS, rampMs: 600_000 });
    expect(decisions.map(({ verdict, judge }) => `${verdict} ${judge}`)).toEqual([
      'failing slow',
      'probation slow',
      'failing slow',
    ]);
    const [, back, again] = decisions;
    expect((again?.atS ?? 0) - (back?.atS ?? 0)).toBeLessThan(300);
    expect(registry.find('r0')?.ramp?.durationMs).toBe(600_000);
  });

  test('is not slow because of the load that others left to it', () => {
    const { pass, faults, log } = createScene(['r0', 'r1']);
    faults.set('r1', { errorShare: 0.2 });
    pass(20);
    expect(log()).toEqual(['r1 failing errors']);
    // Alone, r0 is slower; r1 comes back to few requests, and is fast.
    faults.set('r1', {});
    faults.set('r0', { slowness: 2 });
    while (log().length === 1) pass(1);
    pass(55);
    expect(log()).toEqual(['r1 failing errors', 'r1 probation errors']);
  });
});

describe('a request that a time-out ends after it hung all the time', () => {
  const hung = (replica: string, e2eMs: number): Observation => ({
    replica,
    model: 'm',
    endpoint: '/v1/chat/completions',
    stream: false,
    promptTokens: 10,
    cachedTokens: null,
    completionTokens: null,
    maxTokens: null,
    ttftMs: null,
    gapMs: null,
    e2eMs,
    outcome: 'error',
    finish: null,
  });

  test('is an error of its replica', () => {
    const { pass, log, watch } = createScene();
    for (let second = 0; second < 60; second++) {
      pass(1);
      for (let count = 0; count < 5; count++) watch.observe(hung('r0', 10_000), true);
    }
    expect(log()).toEqual(['r0 failing errors']);
  });

  test('says nothing of its replica if it began to hang before that was last found failing', () => {
    const { pass, log, watch, shared, slotOf } = createScene();
    pass(30);
    shared.health.markFailing(slotOf('r0'), 'probes');
    pass(2);
    shared.health.clearFailing(slotOf('r0'), 'probes');
    for (let second = 1; second <= 60; second++) {
      pass(1);
      for (let count = 0; count < 5; count++) watch.observe(hung('r0', second * 1_000 + 1), true);
    }
    expect(log()).toEqual([]);
  });
});

describe('how many replicas may be tried last', () => {
  test('ends at the share of max_failing: the next one is kept, which is said once', () => {
    const { pass, faults, log } = createScene();
    for (const name of ['r0', 'r1', 'r2'] as const) {
      faults.set(name, { errorShare: 0.4 });
      pass(15);
    }
    pass(10);
    expect(log()).toEqual(['r0 failing errors', 'r1 failing errors', 'r2 kept errors']);
  });

  test.each([1, 2] as const)('is none of the last replica that serves, of %i', (count) => {
    const { pass, faults, log, setDrained } = createScene(count === 1 ? ['r0'] : ['r0', 'r1']);
    faults.set('r0', { errorShare: 0.5 });
    if (count === 2) {
      pass(1);
      setDrained('r1', true);
    }
    pass(120);
    expect(log()).toEqual([]);
  });

  test('counts replicas that are drained', () => {
    const { pass, faults, log, setDrained } = createScene();
    for (const name of ['r2', 'r3']) setDrained(name, true);
    faults.set('r0', { errorShare: 0.3 });
    pass(60);
    expect(log()).toEqual(['r0 kept errors']);
  });
});

describe('a drain', () => {
  test('of a replica that is tried last outlasts its cool-down, and its undrain begins anew', () => {
    const { pass, faults, log, setDrained, registry, healthOf } = createScene();
    faults.set('r0', { errorShare: 0.3 });
    pass(30);
    expect(log()).toEqual(['r0 failing errors']);
    setDrained('r0', true);
    expect(pass(300).r0).toBeUndefined();
    expect(registry.find('r0')?.drain.drained).toBe(true);
    expect(log()).toEqual(['r0 failing errors']);

    faults.clear();
    setDrained('r0', false);
    expect(healthOf('r0')).toMatchObject({ state: 'ok', failingBy: [] });
    const { r0, r1 } = pass(4);
    expect(r0).toBe(r1);
    pass(300);
    expect(log()).toEqual(['r0 failing errors']);
  });

  test('and an undrain between two looks forget it as well', () => {
    const { pass, faults, log, setDrained } = createScene();
    faults.set('r0', { errorShare: 0.3 });
    pass(30);
    setDrained('r0', true);
    setDrained('r0', false);
    faults.clear();
    pass(300);
    expect(log()).toEqual(['r0 failing errors']);
  });
});

describe('after an undrain with a ramp', () => {
  function createRamping(fault: Fault) {
    const scene = createScene();
    scene.setDrained('r0', true);
    scene.pass(4);
    scene.drains.set('r0', false, { reason: null, at: '2026-01-01T00:00:00.000Z', rampMs: 300_000 });
    scene.faults.set('r0', fault);
    return scene;
  }

  test('a cold replica is not called slow while the ramp lasts, and is when it stays slow', () => {
    const { pass, log } = createRamping({ slowness: 2 });
    pass(295);
    expect(log()).toEqual([]);
    pass(120);
    expect(log()[0]).toBe('r0 failing slow');
  });

  test('errors count at once', () => {
    const { pass, log } = createRamping({ errorShare: 0.5 });
    pass(60);
    expect(log()).toEqual(['r0 failing errors']);
  });
});

test('with prefix_affinity only errors count, because each replica has prompts of its own', () => {
  const { pass, faults, log } = createScene(NAMES, { policy: 'prefix_affinity' });
  faults.set('r0', { slowness: 3 });
  pass(300);
  expect(log()).toEqual([]);
  faults.set('r0', { errorShare: 0.3 });
  pass(60);
  expect(log()[0]).toBe('r0 failing errors');
});

test('the tolerance is how much slower a replica may be', () => {
  const { pass, faults, log } = createScene();
  faults.set('r0', { slowness: 1.2 });
  pass(600, { ...SETTINGS, toleranceShare: 0.3 });
  expect(log()).toEqual([]);
});
