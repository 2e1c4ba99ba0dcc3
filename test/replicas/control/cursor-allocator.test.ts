import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { carryCursor } from '../../../src/replicas/control/cursor-allocator.ts';
import type { ReplicaPool } from '../../../src/replicas/data/pool.ts';
import { createPools, toReplicaConfig } from '../../support/pool.ts';

/** Acquires and gives back at once. */
function takeTurn(pool: ReplicaPool, model = 'm'): string {
  const lease = pool.acquire(model, new Set());
  if (typeof lease === 'string') return lease;
  using held = lease;
  return held.replica.name;
}

describe('where turns go on when the candidates change', () => {
  test.each([
    ['with the one that would have been next', [1, 2, 3], 2, [2, 3], 1],
    ['with the first after it that is still there', [1, 2, 3], 1, [1, 3], 1],
    ['at the beginning when all that follow are gone', [1, 2, 3], 2, [1, 2], 0],
    ['at the beginning when nobody stayed', [1, 2, 3], 2, [4, 5], 0],
    ['with the same one when others came before it', [2, 3], 1, [1, 2, 3], 2],
  ])('%s', (_what, previous, turn, next, expected) => {
    expect(carryCursor(previous, turn, next)).toBe(expected);
  });

  test('always with a candidate, and with the next one wherever that stayed', () => {
    const slots = fc.uniqueArray(fc.nat({ max: 9 }), { minLength: 1 });
    fc.assert(
      fc.property(slots, slots, fc.nat({ max: 20 }), (previous, next, turn) => {
        const place = carryCursor(previous, turn, next);
        expect(place).toBeLessThan(next.length);
        const wasNext = previous[turn % previous.length] ?? -1;
        if (next.includes(wasNext)) expect(next[place]).toBe(wasNext);
      }),
    );
  });
});

describe('a rotation whose candidates change', () => {
  test('gives nobody a second turn before the others had theirs', () => {
    const { pool, registry, publish } = createPools(['a', 'b', 'c'].map((name) => toReplicaConfig(name)));
    expect([1, 2].map(() => takeTurn(pool))).toEqual(['a', 'b']);
    registry.configure(
      ['b', 'c', 'd'].map((name) => toReplicaConfig(name)),
      '2026-01-01T00:00:00.000Z',
    );
    publish();
    expect([1, 2, 3].map(() => takeTurn(pool))).toEqual(['c', 'd', 'b']);
  });

  test('goes on when a model appears on one replica and disappears from another', () => {
    const { pool, registry, publish } = createPools(
      ['a', 'b', 'c'].map((name) => toReplicaConfig(name, 'auto')),
    );
    const serve = (name: string, models: string[]) => registry.find(name)?.learn({ models, engine: 'vllm' });
    for (const name of ['a', 'b']) serve(name, ['m', 'x']);
    serve('c', ['x']);
    publish();
    expect(takeTurn(pool, 'm')).toBe('a');
    serve('a', ['x']);
    serve('c', ['m', 'x']);
    publish();
    expect([1, 2, 3].map(() => takeTurn(pool, 'm'))).toEqual(['b', 'c', 'b']);
    expect([1, 2, 3].map(() => takeTurn(pool, 'x'))).toEqual(['a', 'b', 'c']);
  });
});
