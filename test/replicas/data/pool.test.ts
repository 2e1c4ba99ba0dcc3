import { describe, expect, test } from 'vitest';
import type { ReplicaPool } from '../../../src/replicas/data/pool.ts';
import type { Replica } from '../../../src/replicas/data/replica.ts';
import { createPools, toReplicaConfig } from '../../support/pool.ts';

const NONE: ReadonlySet<Replica> = new Set();
const AT = '2026-01-01T00:00:00.000Z';

const createNamed = (...names: string[]) => createPools(names.map((name) => toReplicaConfig(name)));

/** Acquires and gives back at once; the name, or why there is no lease. */
function turn(pool: ReplicaPool, model = 'm', tried: ReadonlySet<Replica> = NONE): string {
  const lease = pool.acquire(model, tried);
  if (typeof lease === 'string') return lease;
  using held = lease;
  return held.replica.name;
}

/** The replica whose turn it is, which then has had it. */
function nextReplica(pool: ReplicaPool): Replica {
  const lease = pool.acquire('m', NONE);
  if (typeof lease === 'string') throw new Error(lease);
  using held = lease;
  return held.replica;
}

describe('whose turn it is', () => {
  test('replicas take turns in the configured order', () => {
    const { pool } = createNamed('a', 'b', 'c');
    expect([1, 2, 3, 4].map(() => turn(pool))).toEqual(['a', 'b', 'c', 'a']);
  });

  test('turns stay even when one replica refuses every request, at any concurrency', () => {
    for (const concurrency of [1, 2, 3, 7, 100]) {
      const { pool } = createNamed('a', 'b', 'c', 'd');
      const counts = new Map<string, number>();
      const waiting: Set<Replica>[] = [];
      for (let begun = 0; begun < 100 || waiting.length > 0; ) {
        const fresh = begun < 100 && waiting.length < concurrency;
        if (fresh) begun++;
        const tried = fresh ? new Set<Replica>() : (waiting.shift() ?? new Set());
        const lease = pool.acquire('m', tried);
        if (typeof lease === 'string') throw new Error(lease);
        using held = lease;
        if (held.replica.name === 'c') waiting.push(tried.add(held.replica));
        else counts.set(held.replica.name, (counts.get(held.replica.name) ?? 0) + 1);
      }
      const served = [...counts.values()];
      expect(Math.max(...served) - Math.min(...served)).toBeLessThanOrEqual(1);
      expect(counts.has('c')).toBe(false);
    }
  });

  test('a drained replica is passed over and the others stay even', () => {
    const { pool, setDrained } = createNamed('a', 'b', 'c');
    setDrained('b', true);
    expect([1, 2, 3, 4].map(() => turn(pool))).toEqual(['a', 'c', 'a', 'c']);
    setDrained('b', false);
    expect([1, 2, 3].map(() => turn(pool))).toEqual(['a', 'b', 'c']);
  });

  test('the last ones drained, the turn goes round to the first', () => {
    const { pool, setDrained } = createNamed('a', 'b', 'c', 'd');
    setDrained('c', true);
    setDrained('d', true);
    expect([1, 2, 3].map(() => turn(pool))).toEqual(['a', 'b', 'a']);
  });

  test('each model has turns of its own', () => {
    const { pool } = createPools([toReplicaConfig('a', ['m', 'x']), toReplicaConfig('b', ['m', 'x'])]);
    expect([turn(pool, 'm'), turn(pool, 'x'), turn(pool, 'm'), turn(pool, 'x')]).toEqual([
      'a',
      'a',
      'b',
      'b',
    ]);
  });

  test('several workers go by one cursor: their turns together are even', () => {
    const { pools } = createPools(
      ['a', 'b', 'c'].map((name) => toReplicaConfig(name)),
      3,
    );
    const [first, second, third] = pools as [ReplicaPool, ReplicaPool, ReplicaPool];
    const turns = [first, first, second, third, first, second, second].map((pool) => turn(pool));
    expect(turns).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a']);
  });

  test('a thousand replicas, all but one drained or tried: the one is found', () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `r${index}`);
    const { pool, setDrained } = createNamed(...names);
    const tried = new Set(Array.from({ length: 500 }, () => nextReplica(pool)));
    for (const name of names.slice(500, 999)) setDrained(name, true);
    expect([1, 2].map(() => turn(pool, 'm', tried))).toEqual(['r999', 'r999']);
  });
});

describe('who serves a model', () => {
  test('nobody: the model is not found', () => {
    expect(turn(createNamed('a').pool, 'other')).toBe('model_not_found');
  });

  test('a wildcard serves any name, beside those that list it', () => {
    const { pool } = createPools([toReplicaConfig('a'), toReplicaConfig('any', ['*'])]);
    expect([turn(pool), turn(pool), turn(pool, 'other'), turn(pool, 'other')]).toEqual([
      'a',
      'any',
      'any',
      'any',
    ]);
  });

  test('a replica with an unknown list is a candidate only when none is known to serve the model', () => {
    const { pool, registry, publish } = createPools([toReplicaConfig('a'), toReplicaConfig('u', 'auto')]);
    expect([turn(pool), turn(pool), turn(pool, 'other')]).toEqual(['a', 'a', 'u']);
    registry.find('u')?.learn({ models: ['m'], engine: 'vllm' });
    publish();
    expect([turn(pool), turn(pool), turn(pool, 'other')]).toEqual(['a', 'u', 'model_not_found']);
    expect(registry.find('u')?.engine).toBe('vllm');
  });

  test('names that nobody serves cost no memory: they share one rotation', () => {
    const { pool } = createPools([toReplicaConfig('a', ['*']), toReplicaConfig('b', ['*'])]);
    expect([turn(pool, 'one'), turn(pool, 'two'), turn(pool, 'three')]).toEqual(['a', 'b', 'a']);
  });
});

describe('why there is no lease', () => {
  test('all drained', () => {
    const { pool, setDrained } = createNamed('a', 'b');
    for (const name of ['a', 'b']) setDrained(name, true);
    expect(turn(pool)).toBe('all_replicas_drained');
  });

  test('all tried, or tried and drained', () => {
    const { pool, setDrained } = createNamed('a', 'b');
    const [a, b] = [nextReplica(pool), nextReplica(pool)];
    expect(turn(pool, 'm', new Set([a, b]))).toBe('no_replica_reachable');
    setDrained('b', true);
    expect(turn(pool, 'm', new Set([a]))).toBe('no_replica_reachable');
  });
});

describe('a lease', () => {
  test('counts once and is given back once', () => {
    const { pool, registry } = createNamed('a');
    const lease = pool.acquire('m', NONE);
    if (typeof lease === 'string') throw new Error(lease);
    expect(registry.find('a')?.inflight).toBe(1);
    lease[Symbol.dispose]();
    lease[Symbol.dispose]();
    expect(registry.find('a')?.inflight).toBe(0);
  });

  test('counts whichever worker holds it, until that worker is gone', () => {
    const { pools, registry, shared } = createPools([toReplicaConfig('a')], 2);
    for (const pool of pools) pool.acquire('m', NONE);
    expect(registry.find('a')?.inflight).toBe(2);
    shared.clearWorker(1);
    expect(registry.find('a')?.inflight).toBe(1);
  });
});

describe('another topology', () => {
  test('keeps the replicas that stay, their connections and their turns', () => {
    const { pool, registry, publish } = createNamed('a', 'b');
    const a = nextReplica(pool);
    registry.configure(
      ['a', 'b', 'c'].map((name) => toReplicaConfig(name)),
      AT,
    );
    publish();
    expect([1, 2].map(() => turn(pool))).toEqual(['b', 'c']);
    expect(nextReplica(pool)).toBe(a);
  });

  test('takes over what has changed of a replica that stays', () => {
    const { pool, registry, publish } = createNamed('a');
    const a = nextReplica(pool);
    registry.configure([toReplicaConfig('a', ['m'], { apiKey: 'k', engine: 'vllm' })], AT);
    publish();
    expect(nextReplica(pool)).toBe(a);
    expect([a.config.apiKey, a.engine]).toEqual(['k', 'vllm']);
  });

  test('gives no lease on a replica that it leaves out, and counts what that still has in flight', () => {
    const { pool, registry, shared, publish } = createNamed('a', 'b');
    const lease = pool.acquire('m', NONE);
    if (typeof lease === 'string') throw new Error(lease);
    registry.configure([toReplicaConfig('b')], AT);
    publish();
    expect([1, 2].map(() => turn(pool))).toEqual(['b', 'b']);
    expect(shared.inflightOf(lease.replica.slot)).toBe(1);
    lease[Symbol.dispose]();
    expect(shared.inflightOf(lease.replica.slot)).toBe(0);
  });

  test('an url that changed is another replica by the same name: what is drained stays so', () => {
    const { pool, registry, setDrained, publish } = createNamed('a', 'b');
    const before = nextReplica(pool);
    setDrained('a', true);
    registry.configure([toReplicaConfig('a', ['m'], { url: 'http://moved.test' }), toReplicaConfig('b')], AT);
    publish();
    expect([1, 2].map(() => turn(pool))).toEqual(['b', 'b']);
    setDrained('a', false);
    expect(turn(pool)).toBe('a');
    expect(before.isDrained).toBe(true);
  });

  test('a drain holds for a removed replica too, while workers may still send to it', () => {
    const { pool, registry, setDrained } = createNamed('a', 'b');
    registry.configure([toReplicaConfig('b')], AT);
    // Nothing is published: the workers do not know yet that it was removed.
    setDrained('a', true);
    expect([1, 2].map(() => turn(pool))).toEqual(['b', 'b']);
  });

  test('what is in flight is told by name, with that on removed replicas', () => {
    const { pool, registry, publish } = createNamed('a', 'b');
    const held = [pool.acquire('m', NONE), pool.acquire('m', NONE), pool.acquire('m', NONE)];
    registry.configure([toReplicaConfig('a', ['m'], { url: 'http://moved.test' })], AT);
    publish();
    held.push(pool.acquire('m', NONE));
    expect(registry.inflightByName()).toEqual(
      new Map([
        ['a', 3],
        ['b', 1],
      ]),
    );
  });

  test('a slot is used again only when nothing is in flight on it any more', () => {
    const { pool, registry, publish } = createNamed('a');
    const lease = pool.acquire('m', NONE);
    if (typeof lease === 'string') throw new Error(lease);
    const slotsOf = (...names: string[]) => {
      registry.configure(
        names.map((name) => toReplicaConfig(name)),
        AT,
      );
      publish();
      return registry.replicas.map(({ slot }) => slot);
    };
    for (const name of ['b', 'c', 'd']) expect(slotsOf(name)).not.toContain(lease.replica.slot);
    lease[Symbol.dispose]();
    expect(slotsOf('e', 'f', 'g', 'h')).toContain(lease.replica.slot);
  });
});

describe('drains', () => {
  test('draining twice keeps the time of the first, and tells the state before', () => {
    const { drains } = createNamed('a');
    expect(drains.set('a', true, { reason: null, at: 'first' }).before.drained).toBe(false);
    expect(drains.set('a', true, { reason: null, at: 'second' }).before.drained).toBe(true);
    expect(drains.stateOf('a')).toMatchObject({ drained: true, since: 'first', reason: null });
  });

  test('a reason that is given later is kept', () => {
    const { drains } = createNamed('a');
    drains.set('a', true, { reason: 'new driver', at: 'first' });
    drains.set('a', true, { reason: null, at: 'second' });
    const first = drains.stateOf('a');
    expect(first).toMatchObject({ since: 'first', reason: 'new driver' });
    drains.set('a', true, { reason: 'new kernel', at: 'third' });
    expect(drains.stateOf('a')).toMatchObject({ since: 'first', reason: 'new kernel' });
    expect(drains.stateOf('a').version > first.version).toBe(true);
  });

  test('a name that is not configured is drained when it comes', () => {
    const { pool, registry, setDrained, publish } = createNamed('a');
    setDrained('b', true);
    registry.configure([toReplicaConfig('a'), toReplicaConfig('b')], AT);
    publish();
    expect([1, 2].map(() => turn(pool))).toEqual(['a', 'a']);
    expect(registry.find('b')?.drain.drained).toBe(true);
  });
});

test('a path in the url becomes a prefix without a trailing slash', () => {
  const { pool } = createPools([toReplicaConfig('a', ['m'], { url: 'http://a.test/base/' })]);
  expect(nextReplica(pool).pathPrefix).toBe('/base');
});
