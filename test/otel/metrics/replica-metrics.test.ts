import { expect, test } from 'vitest';
import {
  type ReplicaState,
  toModelMetrics,
  toReplicaMetrics,
} from '../../../otel/metrics/replica-metrics.ts';
import { INTERVAL, pointsOf, totalOf } from './collected.ts';

const REPLICA: ReplicaState = {
  name: 'vllm-a',
  inflight: 0,
  background: 0,
  maxInflight: null,
  streams: { running: 0, silent: 0, oldestMs: 0 },
  drained: false,
  failing: false,
  judges: [],
  decisions: [],
  up: null,
  gpuTime: null,
};

/** The values of a metric by replica. */
function valuesOf(replicas: readonly ReplicaState[], name: string): Record<string, unknown> {
  const points = pointsOf(toReplicaMetrics(replicas, INTERVAL), name);
  return Object.fromEntries(points.map(({ attributes, value }) => [attributes['gateway.replica'], value]));
}

test('a replica has its requests in flight, their limit, its drain and its health until it is removed', () => {
  const replicas = [
    { ...REPLICA, inflight: 3, maxInflight: 8, failing: true },
    { ...REPLICA, name: 'vllm-b', drained: true },
  ];
  expect(valuesOf(replicas, 'gateway.replica.inflight')).toEqual({ 'vllm-a': 3, 'vllm-b': 0 });
  expect(valuesOf(replicas, 'gateway.replica.max_inflight')).toEqual({ 'vllm-a': 8 });
  expect(valuesOf(replicas, 'gateway.replica.drained')).toEqual({ 'vllm-a': 0, 'vllm-b': 1 });
  expect(valuesOf(replicas, 'gateway.replica.failing')).toEqual({ 'vllm-a': 1, 'vllm-b': 0 });
  expect(toReplicaMetrics([], INTERVAL)).toEqual([]);
});

test('a replica has its streams, the silent ones of them, and the age of the oldest in seconds', () => {
  const replicas = [
    { ...REPLICA, streams: { running: 9, silent: 2, oldestMs: 12_500 } },
    { ...REPLICA, name: 'vllm-b' },
  ];
  expect(valuesOf(replicas, 'gateway.replica.streams')).toEqual({ 'vllm-a': 9, 'vllm-b': 0 });
  expect(valuesOf(replicas, 'gateway.replica.silent_streams')).toEqual({ 'vllm-a': 2, 'vllm-b': 0 });
  expect(valuesOf(replicas, 'gateway.replica.silent_streams.oldest')).toEqual({
    'vllm-a': 12.5,
    'vllm-b': 0,
  });
});

test('a replica has a sample for each judge of its health, and for each kind of decision so far', () => {
  const judged: ReplicaState = {
    ...REPLICA,
    judges: [
      { judge: 'probes', isFailing: false },
      { judge: 'frozen', isFailing: true },
    ],
    decisions: [{ judge: 'frozen', verdict: 'failing', count: 2 }],
  };
  const metrics = toReplicaMetrics([judged, { ...REPLICA, name: 'vllm-b' }], INTERVAL);
  expect(pointsOf(metrics, 'gateway.replica.failing_by')).toMatchObject([
    { attributes: { 'gateway.replica': 'vllm-a', 'gateway.judge': 'probes' }, value: 0 },
    { attributes: { 'gateway.replica': 'vllm-a', 'gateway.judge': 'frozen' }, value: 1 },
  ]);
  expect(pointsOf(metrics, 'gateway.replica.health.decisions')).toMatchObject([
    {
      attributes: { 'gateway.replica': 'vllm-a', 'gateway.judge': 'frozen', 'gateway.verdict': 'failing' },
      value: 2,
    },
  ]);
});

test('a replica is up if it answers, and has no sample while that is unknown', () => {
  const replicas = [true, false, null].map((up, index) => ({ ...REPLICA, name: `vllm-${index}`, up }));
  expect(valuesOf(replicas, 'gateway.replica.up')).toEqual({ 'vllm-0': 1, 'vllm-1': 0 });
  expect(valuesOf([REPLICA], 'gateway.replica.up')).toEqual({});
});

test('the GPU time of a replica is in seconds, and absent without GPUs', () => {
  const ms = { busy: 2500, unrecorded: 125, idle: 750 };
  const replicas = [REPLICA, { ...REPLICA, name: 'vllm-b', gpuTime: { ms, cost: null } }];
  expect(valuesOf(replicas, 'gateway.replica.gpu')).toEqual({ 'vllm-b': 2.5 });
  expect(valuesOf(replicas, 'gateway.replica.gpu.unrecorded')).toEqual({ 'vllm-b': 0.125 });
  expect(valuesOf(replicas, 'gateway.replica.gpu.idle')).toEqual({ 'vllm-b': 0.75 });
});

test('the cost of a replica is in its currency, and absent without a price', () => {
  const ms = { busy: 2500, unrecorded: 125, idle: 750 };
  const cost = { busy: 2.5, unrecorded: 0.125, idle: 0.75, hourPrice: 3_600, currency: 'EUR' };
  const replicas = [
    { ...REPLICA, gpuTime: { ms, cost: null } },
    { ...REPLICA, name: 'vllm-b', gpuTime: { ms, cost } },
  ];
  const attributes = { 'gateway.replica': 'vllm-b', 'gateway.currency': 'EUR' };
  const metrics = toReplicaMetrics(replicas, INTERVAL);
  for (const [name, value] of [
    ['gateway.replica.gpu.hourly_cost', 3_600],
    ['gateway.replica.cost', 2.5],
    ['gateway.replica.cost.unrecorded', 0.125],
    ['gateway.replica.cost.idle', 0.75],
  ] as const) {
    expect(pointsOf(metrics, name)).toMatchObject([{ attributes, value }]);
  }
});

test('a model has the number of its replicas, and of those that may answer', () => {
  const metrics = toModelMetrics([{ name: '__proto__', known: 2, available: 0 }], INTERVAL);
  const model = { 'gen_ai.request.model': '__proto__' };
  expect(totalOf(metrics, 'gateway.model.replicas.known', model)).toBe(2);
  expect(pointsOf(metrics, 'gateway.model.replicas.available')).toMatchObject([
    { attributes: model, value: 0 },
  ]);
  expect(toModelMetrics([], INTERVAL)).toEqual([]);
});

test('two models whose names are shown alike are one series, because Prometheus refuses all metrics otherwise', () => {
  const models = [1, 2].map((known) => ({ name: 'alike', known, available: 1 }));
  expect(pointsOf(toModelMetrics(models, INTERVAL), 'gateway.model.replicas.known')).toHaveLength(1);
});

test('a replica with very many models does not grow the metrics without bound', () => {
  const models = Array.from({ length: 10_000 }, (_, index) => ({
    name: `lora-${index}`,
    known: 1,
    available: 1,
  }));
  const metrics = toModelMetrics(models, INTERVAL);
  expect(pointsOf(metrics, 'gateway.model.replicas.known')).toHaveLength(2000);
});
