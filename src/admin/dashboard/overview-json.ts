import { roundTo3 } from '../shown-record.ts';
import type { Overview } from './overview.ts';
import type { Figures } from './traffic/live-figures.ts';
import { HISTORY_SLICES } from './traffic/slices.ts';
import { type ReplicaFigures, Tally, type Traffic } from './traffic/tally.ts';
import type { NamedTraffic } from './traffic/traffic-window.ts';

type FiguresJson = Pick<
  Overview,
  'time' | 'last_minute' | 'models' | 'tenants' | 'collector' | 'history' | 'failure_reasons'
>;

/** Converts the figures to their part of the overview. `nowEpochMs` is the time of the figures. */
export function toFiguresJson(
  { total, byModel, byTenant, failureReasons, collector, history }: Figures,
  nowEpochMs: number,
): FiguresJson {
  return {
    time: new Date(nowEpochMs).toISOString(),
    last_minute: toTrafficJson(total),
    models: byModel.map(toNamedJson),
    tenants: byTenant.map(toNamedJson),
    collector: { state: collector.kind, since: collector.since, failed_calls: collector.failedCalls },
    history: history.map((past) => ({
      ...toTrafficJson(past),
      time: new Date(nowEpochMs - past.agoMs).toISOString(),
      inflight: past.inflight,
      queued: past.queued,
    })),
    failure_reasons: failureReasons,
  };
}

/** The figures of a replica. */
export function toReplicaFiguresJson(
  { byReplica }: Figures,
  name: string,
): Pick<Overview['replicas'][number], 'last_minute' | 'trend'> {
  const { traffic, trend } = byReplica.get(name) ?? NO_ATTEMPTS;
  return { last_minute: toReplicaTrafficJson(traffic), trend };
}

const NO_ATTEMPTS = {
  traffic: new Tally().toReplicaFigures(1),
  trend: {
    attempts: Array.from({ length: HISTORY_SLICES }, () => 0),
    errors: Array.from({ length: HISTORY_SLICES }, () => 0),
  },
} as const;

function toNamedJson({ name, traffic }: NamedTraffic): Overview['models'][number] {
  return { name, last_minute: toTrafficJson(traffic) };
}

function toTrafficJson(traffic: Traffic): Overview['last_minute'] {
  return {
    requests: traffic.requests,
    errors: traffic.errors,
    client_errors: traffic.clientErrors,
    canceled: traffic.canceled,
    requests_per_s: roundTo3(traffic.requestsPerSecond),
    output_tokens_per_s: roundTo3(traffic.outputTokensPerSecond),
    gpu_seconds: traffic.gpuSeconds === null ? null : roundTo3(traffic.gpuSeconds),
    cost: traffic.cost?.amount ?? null,
    currency: traffic.cost?.currency ?? null,
    ttft_p50_ms: toShownMs(traffic.ttftP50Ms),
    ttft_p95_ms: toShownMs(traffic.ttftP95Ms),
    latency_p50_ms: toShownMs(traffic.latencyP50Ms),
    latency_p95_ms: toShownMs(traffic.latencyP95Ms),
  };
}

function toReplicaTrafficJson(figures: ReplicaFigures): Overview['replicas'][number]['last_minute'] {
  return {
    ...toTrafficJson(figures),
    attempts: figures.attempts,
    attempts_per_s: roundTo3(figures.attemptsPerSecond),
    outcomes: figures.outcomes,
  };
}

function toShownMs(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 10) / 10;
}
