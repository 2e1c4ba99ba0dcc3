import { expect, test } from 'vitest';
import { createBacklogProducer } from '../../../src/gateway/conditions/replica-conditions.ts';
import { type MadeReplica, madeRegistry } from './made-registry.ts';

const findingsOf = (...replicas: MadeReplica[]) => [...createBacklogProducer(madeRegistry(replicas))()];

test('a replica with four times what its peers have in flight, and sixteen more, has a backlog', () => {
  const b = { name: 'b', inflight: 6 };
  const c = { name: 'c', inflight: 5 };
  expect(findingsOf({ name: 'a', inflight: 24 }, b, c)).toEqual([
    { id: 'replica_backlog', subject: 'a', figures: { inflight: 24, peers: 6 } },
  ]);
  expect(findingsOf({ name: 'a', inflight: 23 }, b, c)).toEqual([]);
  const idle = { name: 'b', inflight: 0 };
  expect(findingsOf({ name: 'a', inflight: 15 }, idle)).toEqual([]);
  expect(findingsOf({ name: 'a', inflight: 16 }, idle)).toHaveLength(1);
});

test('it is compared with those that do the same work alone', () => {
  const a = { name: 'a', inflight: 40 };
  for (const other of [
    { models: ['other'] },
    { maxInflight: 8 },
    { gpuModel: 'L4' },
    { drained: true },
    { reason: 'connection_refused' },
    { health: 'failing' },
    { isRamping: true },
    { isShadow: true },
  ] as const) {
    expect(findingsOf(a, { name: 'b', inflight: 0, ...other }), JSON.stringify(other)).toEqual([]);
  }
  expect(findingsOf(a, { name: 'b', inflight: 0 })).toHaveLength(1);
  expect(findingsOf({ ...a, drained: true }, { name: 'b', inflight: 0 })).toEqual([]);
});
