import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ReplicaPool } from '#replicas';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import { carryCursor } from '../../../src/replicas/registry/cursor-allocator.ts';

/** Acquires a lease and releases it. */
function pickOnce(pool: ReplicaPool, model = 'm'): string {
  const lease = pool.acquire(model, new Set());
  if (typeof lease === 'string') return lease;
  using held = lease;
  return held.replica.name;
}

describe('a cursor whose candidates change points', () => {
  test.each([
    ['to the candidate that would have been next', [1, 2, 3], 2, [2, 3], 1],
    ['to the first one after it that is still there', [1, 2, 3], 1, [1, 3], 1],
    ['to the beginning when all later ones are gone', [1, 2, 3], 2, [1, 2], 0],
    ['to the beginning when no candidate stays', [1, 2, 3], 2, [4, 5], 0],
    ['to the same one when others are inserted before it', [2, 3], 1, [1, 2, 3], 2],
  ])('%s', (_what, previous, start, next, expected) => {
    expect(carryCursor(previous, start, next)).toBe(expected);
  });

  test('always to a candidate, and to the next one if that stays', () => {
    const slots = fc.uniqueArray(fc.nat({ max: 9 }), { minLength: 1 });
    fc.assert(
      fc.property(slots, slots, fc.nat({ max: 20 }), (previous, next, start) => {
        const index = carryCursor(previous, start, next);
        expect(index).toBeLessThan(next.length);
        const wasNext = previous[start % previous.length] ?? -1;
        if (next.includes(wasNext)) expect(next[index]).toBe(wasNext);
      }),
    );
  });
});

describe('a rotation whose candidates change', () => {
  test('picks no replica twice before it has picked all others', () => {
    const { pool, registry, publish } = createPools(['a', 'b', 'c'].map((name) => toReplicaConfig(name)));
    expect([1, 2].map(() => pickOnce(pool))).toEqual(['a', 'b']);
    registry.configure(
      ['b', 'c', 'd'].map((name) => toReplicaConfig(name)),
      '2026-01-01T00:00:00.000Z',
    );
    publish();
    expect([1, 2, 3].map(() => pickOnce(pool))).toEqual(['c', 'd', 'b']);
  });

  test('continues when a model appears on one replica and disappears from another', () => {
    const { pool, registry, publish } = createPools(
      ['a', 'b', 'c'].map((name) => toReplicaConfig(name, 'auto')),
    );
    const serve = (name: string, models: string[]) => registry.find(name)?.learn({ models, engine: 'vllm' });
    for (const name of ['a', 'b']) serve(name, ['m', 'x']);
    serve('c', ['x']);
    publish();
    expect(pickOnce(pool, 'm')).toBe('a');
    serve('a', ['x']);
    serve('c', ['m', 'x']);
    publish();
    expect([1, 2, 3].map(() => pickOnce(pool, 'm'))).toEqual(['b', 'c', 'b']);
    expect([1, 2, 3].map(() => pickOnce(pool, 'x'))).toEqual(['a', 'b', 'c']);
  });
});
