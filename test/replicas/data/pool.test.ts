import { describe, expect, test } from 'vitest';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import type { ReplicaPool } from '../../../src/replicas/data/pool.ts';
import type { Replica } from '../../../src/replicas/data/replica.ts';

const NONE: ReadonlySet<Replica> = new Set();
const AT = '2026-01-01T00:00:00.000Z';

const createNamed = (...names: string[]) => createPools(names.map((name) => toReplicaConfig(name)));

/** Acquires a lease and releases it. Returns the replica's name, or why there is no lease. */
function pickOnce(pool: ReplicaPool, model = 'm', tried: ReadonlySet<Replica> = NONE): string {
  const lease = pool.acquire(model, tried);
  if (typeof lease === 'string') return lease;
  using held = lease;
  return held.replica.name;
}

/** Acquires a lease and releases it. Returns the replica. */
function nextReplica(pool: ReplicaPool): Replica {
  const lease = pool.acquire('m', NONE);
  if (typeof lease === 'string') throw new Error(lease);
  using held = lease;
  return held.replica;
}

describe('round robin', () => {
  test('picks replicas in the configured order', () => {
    const { pool } = createNamed('a', 'b', 'c');
    expect([1, 2, 3, 4].map(() => pickOnce(pool))).toEqual(['a', 'b', 'c', 'a']);
  });

  test('stays even when one replica refuses every request, at any concurrency', () => {
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

  test('skips a drained replica and stays even among the others', () => {
    const { pool, setDrained } = createNamed('a', 'b', 'c');
    setDrained('b', true);
    expect([1, 2, 3, 4].map(() => pickOnce(pool))).toEqual(['a', 'c', 'a', 'c']);
    setDrained('b', false);
    expect([1, 2, 3].map(() => pickOnce(pool))).toEqual(['a', 'b', 'c']);
  });

  test('returns to the first replica when the last ones are drained', () => {
    const { pool, setDrained } = createNamed('a', 'b', 'c', 'd');
    setDrained('c', true);
    setDrained('d', true);
    expect([1, 2, 3].map(() => pickOnce(pool))).toEqual(['a', 'b', 'a']);
  });

  test('has a cursor for each model', () => {
    const { pool } = createPools([toReplicaConfig('a', ['m', 'x']), toReplicaConfig('b', ['m', 'x'])]);
    expect([pickOnce(pool, 'm'), pickOnce(pool, 'x'), pickOnce(pool, 'm'), pickOnce(pool, 'x')]).toEqual([
      'a',
      'a',
      'b',
      'b',
    ]);
  });

  test('is even over all workers, which share the cursor', () => {
    const { pools } = createPools(
      ['a', 'b', 'c'].map((name) => toReplicaConfig(name)),
      3,
    );
    const [first, second, third] = pools as [ReplicaPool, ReplicaPool, ReplicaPool];
    const picks = [first, first, second, third, first, second, second].map((pool) => pickOnce(pool));
    expect(picks).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a']);
  });

  test('finds the only one of a thousand replicas that is neither drained nor tried', () => {
    const names = Array.from({ length: 1_000 }, (_, index) => `r${index}`);
    const { pool, setDrained } = createNamed(...names);
    const tried = new Set(Array.from({ length: 500 }, () => nextReplica(pool)));
    for (const name of names.slice(500, 999)) setDrained(name, true);
    expect([1, 2].map(() => pickOnce(pool, 'm', tried))).toEqual(['r999', 'r999']);
  });
});

describe('the candidates for a model', () => {
  test('do not exist if no replica serves it: the model is not found', () => {
    expect(pickOnce(createNamed('a').pool, 'other')).toBe('model_not_found');
  });

  test('include wildcard replicas besides those that list it', () => {
    const { pool } = createPools([toReplicaConfig('a'), toReplicaConfig('any', ['*'])]);
    expect([pickOnce(pool), pickOnce(pool), pickOnce(pool, 'other'), pickOnce(pool, 'other')]).toEqual([
      'a',
      'any',
      'any',
      'any',
    ]);
  });

  test('include replicas with an unknown model list only if none is known to serve it', () => {
    const { pool, registry, publish } = createPools([toReplicaConfig('a'), toReplicaConfig('u', 'auto')]);
    expect([pickOnce(pool), pickOnce(pool), pickOnce(pool, 'other')]).toEqual(['a', 'a', 'u']);
    registry.find('u')?.learn({ models: ['m'], engine: 'vllm' });
    publish();
    expect([pickOnce(pool), pickOnce(pool), pickOnce(pool, 'other')]).toEqual(['a', 'u', 'model_not_found']);
    expect(registry.find('u')?.engine).toBe('vllm');
  });

  test('share one rotation for all unknown names, which cost no memory', () => {
    const { pool } = createPools([toReplicaConfig('a', ['*']), toReplicaConfig('b', ['*'])]);
    expect([pickOnce(pool, 'one'), pickOnce(pool, 'two'), pickOnce(pool, 'three')]).toEqual(['a', 'b', 'a']);
  });
});

describe('there is no lease because', () => {
  test('all replicas are drained', () => {
    const { pool, setDrained } = createNamed('a', 'b');
    for (const name of ['a', 'b']) setDrained(name, true);
    expect(pickOnce(pool)).toBe('all_replicas_drained');
  });

  test('all replicas are tried, or tried and drained', () => {
    const { pool, setDrained } = createNamed('a', 'b');
    const [a, b] = [nextReplica(pool), nextReplica(pool)];
    expect(pickOnce(pool, 'm', new Set([a, b]))).toBe('no_replica_reachable');
    setDrained('b', true);
    expect(pickOnce(pool, 'm', new Set([a]))).toBe('no_replica_reachable');
  });
});

describe('a lease', () => {
  test('counts once and is released once', () => {
    const { pool, registry } = createNamed('a');
    const lease = pool.acquire('m', NONE);
    if (typeof lease === 'string') throw new Error(lease);
    expect(registry.find('a')?.inflight).toBe(1);
    lease[Symbol.dispose]();
    lease[Symbol.dispose]();
    expect(registry.find('a')?.inflight).toBe(0);
  });

  test('counts for whichever worker holds it, until that worker has ended', () => {
    const { pools, registry, shared } = createPools([toReplicaConfig('a')], 2);
    for (const pool of pools) pool.acquire('m', NONE);
    expect(registry.find('a')?.inflight).toBe(2);
    shared.clearWorker(1);
    expect(registry.find('a')?.inflight).toBe(1);
  });
});

describe('a new snapshot', () => {
  test('keeps the replicas that stay, their connections and the cursor', () => {
    const { pool, registry, publish } = createNamed('a', 'b');
    const a = nextReplica(pool);
    registry.configure(
      ['a', 'b', 'c'].map((name) => toReplicaConfig(name)),
      AT,
    );
    publish();
    expect([1, 2].map(() => pickOnce(pool))).toEqual(['b', 'c']);
    expect(nextReplica(pool)).toBe(a);
  });

  test('updates a replica that stays', () => {
    const { pool, registry, publish } = createNamed('a');
    const a = nextReplica(pool);
    registry.configure([toReplicaConfig('a', ['m'], { apiKey: 'k', engine: 'vllm' })], AT);
    publish();
    expect(nextReplica(pool)).toBe(a);
    expect([a.config.apiKey, a.engine]).toEqual(['k', 'vllm']);
  });

  test('gives no lease on a replica that it leaves out, and still counts the requests in flight on it', () => {
    const { pool, registry, shared, publish } = createNamed('a', 'b');
    const lease = pool.acquire('m', NONE);
    if (typeof lease === 'string') throw new Error(lease);
    registry.configure([toReplicaConfig('b')], AT);
    publish();
    expect([1, 2].map(() => pickOnce(pool))).toEqual(['b', 'b']);
    expect(shared.inflightOf(lease.replica.slot)).toBe(1);
    lease[Symbol.dispose]();
    expect(shared.inflightOf(lease.replica.slot)).toBe(0);
  });

  test('makes another replica of a name whose url has changed, and a drained name stays drained', () => {
    const { pool, registry, setDrained, publish } = createNamed('a', 'b');
    const before = nextReplica(pool);
    setDrained('a', true);
    registry.configure([toReplicaConfig('a', ['m'], { url: 'http://moved.test' }), toReplicaConfig('b')], AT);
    publish();
    expect([1, 2].map(() => pickOnce(pool))).toEqual(['b', 'b']);
    setDrained('a', false);
    expect(pickOnce(pool)).toBe('a');
    expect(before.isDrained).toBe(true);
  });

  test('adds the requests in flight on removed replicas to those of the same name', () => {
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

  test('reuses a slot only when no request is in flight on it', () => {
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

describe('a drain', () => {
  test('holds for a removed replica too, while workers may still send to it', () => {
    const { pool, registry, setDrained } = createNamed('a', 'b');
    registry.configure([toReplicaConfig('b')], AT);
    // Nothing is published: the workers do not know yet that the replica was removed.
    setDrained('a', true);
    expect([1, 2].map(() => pickOnce(pool))).toEqual(['b', 'b']);
  });

  test('of a name that is not configured holds when a replica gets that name', () => {
    const { pool, registry, setDrained, publish } = createNamed('a');
    setDrained('b', true);
    registry.configure([toReplicaConfig('a'), toReplicaConfig('b')], AT);
    publish();
    expect([1, 2].map(() => pickOnce(pool))).toEqual(['a', 'a']);
    expect(registry.find('b')?.drain.drained).toBe(true);
  });
});

test('a path in the url becomes a prefix without a trailing slash', () => {
  const { pool } = createPools([toReplicaConfig('a', ['m'], { url: 'http://a.test/base/' })]);
  expect(nextReplica(pool).pathPrefix).toBe('/base');
});
