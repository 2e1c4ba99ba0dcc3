import { expect, test } from 'vitest';
import { toModelAvailabilities } from '../../../src/replicas/control/model-availability.ts';

const REPLICA = {
  models: ['m'],
  engine: 'vllm',
  drain: { drained: false },
  reachability: { state: 'reachable' },
  health: null,
} as const;

test('a replica counts for its models unless it is drained, unreachable or loading', () => {
  const replicas = [
    REPLICA,
    { ...REPLICA, reachability: { state: 'unknown' } },
    { ...REPLICA, reachability: { state: 'unreachable' } },
    { ...REPLICA, reachability: { state: 'loading' } },
    { ...REPLICA, drain: { drained: true } },
    { ...REPLICA, health: { state: 'failing' } },
  ] as const;
  expect(toModelAvailabilities(replicas)).toEqual([
    { model: 'm', known: 6, available: 3, well: 2, drained: 1 },
  ]);
});

test('a replica of unknown models counts for none, one that serves any name for all', () => {
  const replicas = [
    { ...REPLICA, reachability: { state: 'unreachable' } },
    { ...REPLICA, models: null },
    { ...REPLICA, models: ['*'] },
  ] as const;
  expect(toModelAvailabilities(replicas)).toEqual([
    { model: 'm', known: 2, available: 1, well: 1, drained: 0 },
  ]);
});
