import { describe, expect, test } from 'vitest';
import { ReplicaPool } from '../../src/replicas/pool.ts';
import { Replica } from '../../src/replicas/replica.ts';

const timeouts = { connectMs: 1_000, upstreamKeepAliveMs: 4_000 };

function createReplica(name: string, models: 'auto' | readonly string[] = ['m']): Replica {
  const config = { name, url: `http://${name}.test:8000/base/`, host: name, gpuModel: null, gpuCount: null };
  return new Replica({ ...config, models, engine: 'auto' }, timeouts);
}

function createPool(...names: string[]): ReplicaPool {
  return new ReplicaPool(names.map((name) => createReplica(name)));
}

const NONE: ReadonlySet<Replica> = new Set();

/** Acquires and gives back at once; the name, or why there is no lease. */
function turn(pool: ReplicaPool, model = 'm', tried: ReadonlySet<Replica> = NONE): string {
  const lease = pool.acquire(model, tried);
  if (typeof lease === 'string') return lease;
  using held = lease;
  return held.replica.name;
}

describe('whose turn it is', () => {
  test('replicas take turns in the configured order', () => {
    const pool = createPool('a', 'b', 'c');
    expect([1, 2, 3, 4].map(() => turn(pool))).toEqual(['a', 'b', 'c', 'a']);
  });

  test('turns stay even when one replica refuses every request, at any concurrency', () => {
    for (const concurrency of [1, 2, 3, 7, 100]) {
      const pool = createPool('a', 'b', 'c', 'd');
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
    const pool = createPool('a', 'b', 'c');
    const b = pool.find('b');
    if (b !== undefined) pool.setDrained(b, true, '2026-01-01T00:00:00.000Z');
    expect([1, 2, 3, 4].map(() => turn(pool))).toEqual(['a', 'c', 'a', 'c']);
    if (b !== undefined) pool.setDrained(b, false, '2026-01-01T00:00:01.000Z');
    expect([1, 2, 3].map(() => turn(pool))).toEqual(['a', 'b', 'c']);
  });

  test('each model has turns of its own', () => {
    const pool = new ReplicaPool([createReplica('a', ['m', 'x']), createReplica('b', ['m', 'x'])]);
    expect([turn(pool, 'm'), turn(pool, 'x'), turn(pool, 'm'), turn(pool, 'x')]).toEqual([
      'a',
      'a',
      'b',
      'b',
    ]);
  });
});

describe('who serves a model', () => {
  test('nobody: the model is not found', () => {
    expect(turn(createPool('a'), 'other')).toBe('model_not_found');
  });

  test('a wildcard serves any name, beside those that list it', () => {
    const pool = new ReplicaPool([createReplica('a'), createReplica('any', ['*'])]);
    expect([turn(pool), turn(pool), turn(pool, 'other'), turn(pool, 'other')]).toEqual([
      'a',
      'any',
      'any',
      'any',
    ]);
  });

  test('a replica with an unknown list is a candidate only when none is known to serve the model', () => {
    const unknown = createReplica('u', 'auto');
    const pool = new ReplicaPool([createReplica('a'), unknown]);
    expect([turn(pool), turn(pool), turn(pool, 'other')]).toEqual(['a', 'a', 'u']);
    unknown.learn({ models: ['m'], engine: 'vllm' });
    pool.refreshModels();
    expect([turn(pool), turn(pool), turn(pool, 'other')]).toEqual(['a', 'u', 'model_not_found']);
    expect(unknown.engine).toBe('vllm');
  });

  test('names that nobody serves cost no memory: they share one rotation', () => {
    const pool = new ReplicaPool([createReplica('a', ['*']), createReplica('b', ['*'])]);
    expect([turn(pool, 'one'), turn(pool, 'two'), turn(pool, 'three')]).toEqual(['a', 'b', 'a']);
  });
});

describe('why there is no lease', () => {
  test('all drained', () => {
    const pool = createPool('a', 'b');
    for (const replica of pool.replicas) pool.setDrained(replica, true, '2026-01-01T00:00:00.000Z');
    expect(turn(pool)).toBe('all_replicas_drained');
  });

  test('all tried, or tried and drained', () => {
    const pool = createPool('a', 'b');
    const [a, b] = pool.replicas;
    if (a === undefined || b === undefined) throw new Error('two replicas');
    expect(turn(pool, 'm', new Set([a, b]))).toBe('no_replica_reachable');
    pool.setDrained(b, true, '2026-01-01T00:00:00.000Z');
    expect(turn(pool, 'm', new Set([a]))).toBe('no_replica_reachable');
  });
});

describe('a lease', () => {
  test('counts once and is given back once', () => {
    const pool = createPool('a');
    const lease = pool.acquire('m', NONE);
    if (typeof lease === 'string') throw new Error(lease);
    expect(lease.replica.inflight).toBe(1);
    lease[Symbol.dispose]();
    lease[Symbol.dispose]();
    expect(lease.replica.inflight).toBe(0);
  });
});

test('draining twice keeps the time of the first, and tells the state before', () => {
  const pool = createPool('a');
  const a = pool.find('a');
  if (a === undefined) throw new Error('a');
  expect(pool.setDrained(a, true, 'first').drained).toBe(false);
  expect(pool.setDrained(a, true, 'second').drained).toBe(true);
  expect(a.drain).toEqual({ drained: true, since: 'first' });
});

test('a path in the url becomes a prefix without a trailing slash', () => {
  expect(createReplica('a').pathPrefix).toBe('/base');
});
