import type { ReplicaJson } from '../schemas.ts';
import { roundTo3 } from '../shown-record.ts';
import type { Overview } from './overview.ts';
import type { Figures } from './traffic/live-figures.ts';
import { HISTORY_SLICES } from './traffic/slices.ts';
import type { Traffic } from './traffic/tally.ts';
import type { NamedTraffic } from './traffic/traffic-window.ts';

type FiguresJson = Pick<
  Overview,
  'time' | 'last_minute' | 'replicas' | 'models' | 'tenants' | 'collector' | 'history' | 'failure_reasons'
>;

/** Converts the figures to their part of the overview. `nowEpochMs` is the time of the figures. */
export function toFiguresJson(
  { total, byReplica, byModel, byTenant, failureReasons, collector, history }: Figures,
  replicas: readonly ReplicaJson[],
  nowEpochMs: number,
): FiguresJson {
  return {
    time: new Date(nowEpochMs).toISOString(),
    last_minute: toTrafficJson(total),
    replicas: replicas.map((replica) => {
      const { traffic, trend } = byReplica.get(replica.name) ?? NO_REQUESTS;
      return { ...replica, last_minute: toTrafficJson(traffic), trend };
    }),
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

const NO_REQUESTS = {
  traffic: {
    requests: 0,
    errors: 0,
    clientErrors: 0,
    canceled: 0,
    requestsPerSecond: 0,
    outputTokensPerSecond: 0,
    gpuSeconds: null,
    ttftP50Ms: null,
    ttftP95Ms: null,
    latencyP50Ms: null,
    latencyP95Ms: null,
  },
  trend: {
    requests: Array.from({ length: HISTORY_SLICES }, () => 0),
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
    ttft_p50_ms: toShownMs(traffic.ttftP50Ms),
    ttft_p95_ms: toShownMs(traffic.ttftP95Ms),
    latency_p50_ms: toShownMs(traffic.latencyP50Ms),
    latency_p95_ms: toShownMs(traffic.latencyP95Ms),
  };
}

function toShownMs(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms * 10) / 10;
}
