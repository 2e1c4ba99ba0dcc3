import { ConditionBoard, type Finding } from '#conditions';
import { toConditionsJson } from '../../src/admin/condition-schema.ts';
import { type Overview, overviewSchema } from '../../src/admin/dashboard/overview.ts';

export type { Overview };
/** A replica, a record or some traffic of an overview. */
export type OverviewReplica = Overview['replicas'][number];
export type OverviewRecord = Overview['records'][number];
type Traffic = Overview['last_minute'];
type ReplicaTraffic = OverviewReplica['last_minute'];

/** The time of each made overview. */
export const MADE_AT = '2026-11-21T12:10:00.000Z';
const MADE_AT_MS = Date.parse(MADE_AT);
/** The time so many seconds before it. */
export const secondsAgo = (seconds: number): string => new Date(MADE_AT_MS - seconds * 1_000).toISOString();

/** Traffic of the last minute without failures, with these changes. */
export const makeTraffic = (changes: Partial<Traffic> = {}): Traffic => {
  const { requests = 240 } = changes;
  return {
    requests,
    errors: 0,
    client_errors: 0,
    canceled: 0,
    requests_per_s: requests / 60,
    output_tokens_per_s: requests * 3.2,
    gpu_seconds: requests * 0.9,
    cost: requests * 0.9 * (2.49 / 3_600),
    currency: 'EUR',
    ttft_p50_ms: 118,
    ttft_p95_ms: 290,
    latency_p50_ms: 1_240,
    latency_p95_ms: 3_480,
    ...changes,
  };
};

/**
 * Attempts at a replica in the last minute, without failures, with these changes: each request took one, unless `attempts`
 * says otherwise. Errors are answers with 5xx, unless `outcomes` says otherwise.
 */
export const makeReplicaTraffic = ({
  outcomes,
  ...changes
}: Partial<Omit<ReplicaTraffic, 'outcomes'>> & {
  readonly outcomes?: Partial<ReplicaTraffic['outcomes']>;
} = {}): ReplicaTraffic => {
  const { requests = 240, attempts = requests, errors = 0, client_errors = 0, canceled = 0 } = changes;
  return {
    ...makeTraffic(changes),
    attempts,
    attempts_per_s: attempts / 60,
    outcomes: {
      success: attempts - errors - client_errors - canceled,
      error: errors,
      not_connected: 0,
      loading: 0,
      client_error: client_errors,
      canceled,
      repeated: 0,
      other: 0,
      ...outcomes,
    },
  };
};

/** No attempt in the last minute. */
export const NO_TRAFFIC: ReplicaTraffic = makeReplicaTraffic({
  requests: 0,
  output_tokens_per_s: 0,
  gpu_seconds: null,
  cost: null,
  currency: null,
  ttft_p50_ms: null,
  ttft_p95_ms: null,
  latency_p50_ms: null,
  latency_p95_ms: null,
});

const SLICES = 60;

/** A trend around this many attempts in five seconds, of which this share failed. */
export const makeTrend = (attempts: number, errorShare = 0): OverviewReplica['trend'] => {
  const counts = Array.from({ length: SLICES }, (_, at) =>
    Math.round(attempts * (1 + 0.4 * Math.sin(at / 5))),
  );
  return { attempts: counts, errors: counts.map((count) => Math.round(count * errorShare)) };
};

/** A replica that serves the model `m`, with these changes. */
export const makeReplica = (
  changes: Partial<OverviewReplica> & { readonly name: string },
): OverviewReplica => ({
  url: `http://${changes.name}.example:8000`,
  host: 'gpu-node-1',
  gpu_model: 'H100',
  gpu_count: 8,
  drained: false,
  shadow: null,
  inflight: 2,
  background: 0,
  background_unknown: 0,
  silent_streams: { count: 0, running: 2, oldest_ms: null },
  max_inflight: null,
  health: 'ok',
  health_reasons: [],
  health_since: null,
  reachability: 'reachable',
  reachability_since: secondsAgo(3_600),
  reachability_reason: null,
  models: ['m'],
  engine: 'vllm',
  since: null,
  reason: null,
  safe_to_stop: false,
  ramp: null,
  removing: false,
  last_minute: makeReplicaTraffic(),
  trend: makeTrend(20),
  ...changes,
});

/** A record of a request that succeeded, with these changes. Each has another request id. */
export const makeRecord = (number: number, changes: Partial<OverviewRecord> = {}): OverviewRecord => ({
  request_id: `request-${number}`,
  trace_id: number.toString(16).padStart(32, '0'),
  ts: secondsAgo(300 - number),
  replica: 'a',
  model: 'm',
  endpoint: '/v1/chat/completions',
  tenant: 'acme',
  prompt_tokens: 312,
  completion_tokens: 128,
  ttft_ms: 120,
  e2e_ms: 1_400,
  status: 200,
  stream: true,
  ...changes,
});

/** Longer than any condition waits, and shorter than any that lasts. */
const TOLD_AFTER_MS = 60_000;

/** These conditions as an overview has them: sentences, severities and order are those of the registry and the board. */
export function makeConditions(findings: readonly Finding[]): Overview['conditions'] {
  let nowMs = 0;
  const board = new ConditionBoard({
    nowMs: () => nowMs,
    epochMs: () => MADE_AT_MS,
    toShown: (text) => text,
    onChange: () => undefined,
    onDefect: (error) => {
      throw error;
    },
  });
  board.add(() => findings);
  board.look();
  nowMs = TOLD_AFTER_MS;
  board.look();
  return toConditionsJson(board.current);
}

/** An overview in which all is well, with these changes. Throws if it is none that the admin API could answer. */
export function makeOverview(changes: Partial<Overview> = {}): Overview {
  const { replicas = [makeReplica({ name: 'a' })] } = changes;
  const history = Array.from({ length: SLICES }, (_, at) => ({
    ...makeTraffic({ requests: Math.round(100 + 40 * Math.sin(at / 5)) }),
    time: secondsAgo((SLICES - at) * 5),
    inflight: Math.round(12 + 6 * Math.sin(at / 4)),
    queued: at % 7,
  }));
  return overviewSchema.parse({
    time: MADE_AT,
    started_at: secondsAgo(11_000),
    gateway: {
      name: 'gw-a',
      host: 'edge-1',
      pid: 4_711,
      version: '0.1.0',
      workers: 2,
      started_at: secondsAgo(11_000),
      config_loaded_at: secondsAgo(600),
    },
    trace_url_template: null,
    last_minute: makeTraffic(),
    replicas,
    sources: [],
    models: [{ name: 'm', last_minute: makeTraffic() }],
    tenants: [{ name: 'acme', last_minute: makeTraffic() }],
    waiting: 0,
    saturation: {
      workers: [
        { worker: 1, event_loop_utilization: 0.31 },
        { worker: 2, event_loop_utilization: 0.24 },
      ],
      connections: { now: 312, limit: 10_000 },
      buffered_bytes: { now: 48_300_000, limit: 1_073_741_824 },
      waiting: 0,
    },
    stats: {
      recorded: 24_000,
      exported: 23_990,
      queued: 10,
      dropped: 0,
      rejected: 0,
      failed_calls: 0,
      lost: 0,
      restored: 0,
      spooled: 0,
      unreadable: 0,
    },
    queue_size: 16_384,
    export_to: 'otlp',
    collector: { state: 'taking', since: secondsAgo(10_900), failed_calls: 0 },
    history,
    records: [],
    failures: [],
    failure_reasons: [],
    conditions: [],
    last_record: 0,
    keeps_history: true,
    other_gateways: null,
    can_change: true,
    ...changes,
  } satisfies Overview);
}
