import { allocateEventLoopDelays } from '../../../otel/metrics/event-loop-delay.ts';
import type { MetricsCollaborators } from '../../../otel/metrics/start-metrics.ts';

/** A gateway with one drained replica, some load, and a worker, as the metrics see it. */
export const GATEWAY_SOURCES = {
  replicas: () => [
    {
      name: 'vllm-a',
      inflight: 2,
      background: 0,
      streams: { running: 0, silent: 0, oldestMs: 0 },
      maxInflight: 8,
      drained: true,
      failing: false,
      judges: [{ judge: 'frozen', isFailing: false }],
      decisions: [{ judge: 'frozen', verdict: 'ok', count: 1 }],
      up: true,
      gpuTime: {
        ms: { busy: 12_500, unrecorded: 250, idle: 2_000 },
        cost: { busy: 1.25, unrecorded: 0.025, idle: 0.2, hourPrice: 360, currency: 'EUR' },
      },
    },
  ],
  models: () => [{ name: 'llama-3.3-70b', known: 2, available: 1 }],
  conditions: () => [{ id: 'replica_unreachable', severity: 'warning', subject: 'a' }],
  comparisons: () => [
    {
      candidate: 'a',
      baseline: null,
      verdict: 'undecided',
      figures: { requests: 120, gaps_ratio: 1.02, error_share: 0 },
    },
  ],
  shadows: () => [{ name: 'vllm-new', copies: new Map([['ok', 4]]), skipped: new Map([['shadow_full', 2]]) }],
  sources: () => [
    {
      name: 'vllm',
      kind: 'kubernetes',
      state: 'failing',
      readinessGate: { state: 'ok', waitingCount: 2, confirmedCount: 5 },
    },
  ],
  gateway: () => ({
    waiting: { now: 7, limit: 1000 },
    connections: { now: 12, limit: 10_000 },
    bufferedBytes: { now: 4096, limit: 1_048_576 },
    workerEnds: { ended: 2, hung: 1 },
    wrongAdminTokens: 3,
  }),
  workers: () => [{ worker: 1, activeMs: 1500, idleMs: 500 }],
  eventLoopDelays: allocateEventLoopDelays(1),
  version: '1.2.3',
} as const satisfies Partial<MetricsCollaborators>;
