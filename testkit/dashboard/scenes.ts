import {
  makeConditions,
  makeOverview,
  makeRecord,
  makeReplica,
  makeReplicaTraffic,
  makeTraffic,
  makeTrend,
  NO_TRAFFIC,
  type Overview,
  type OverviewRecord,
  type OverviewReplica,
  secondsAgo,
} from './made-overview.ts';

/** Overviews as an operator meets them, for tests of the whole page. */

const LLAMA = 'meta-llama/Llama-3.3-70B-Instruct-FP8';
const QWEN = 'Qwen/Qwen3-235B-A22B-Instruct-2507-FP8';
const EMBED = 'BAAI/bge-m3';

const DEPLOYMENTS = [
  {
    models: [LLAMA],
    prefix: 'vllm-llama-3-3-70b-instruct-fp8-6d5f8c9b7d',
    count: 24,
    requests: 260,
    gpus: 4,
  },
  {
    models: [QWEN, `${QWEN}-lora-support`],
    prefix: 'sglang-qwen3-235b-a22b-7c9fdb4c6f',
    count: 18,
    requests: 150,
    gpus: 8,
  },
  { models: [EMBED], prefix: 'embeddings-bge-m3', count: 8, requests: 900, gpus: 1 },
] as const;

/** A pod's random ending. The same for the same number. */
const toPodEnding = (number: number): string =>
  Array.from(
    { length: 5 },
    (_, at) => 'bcdfghjklmnpqrstvwxz2456789'[(number * 31 + at * 17 + number ** 2 * at) % 27],
  ).join('');

function toPod(
  { models, prefix, requests, gpus }: (typeof DEPLOYMENTS)[number],
  at: number,
): OverviewReplica {
  const name = prefix.startsWith('embeddings') ? `${prefix}-${at}` : `${prefix}-${toPodEnding(at)}`;
  const load = Math.round(requests * (0.7 + ((at * 37) % 60) / 100));
  const errors = at === 5 ? Math.ceil(load * 0.012) : 0;
  return makeReplica({
    name,
    models,
    url: `http://10.42.${at}.${gpus}:8000`,
    host: `ip-10-42-${at}-117.eu-central-1.compute.internal`,
    gpu_model: 'NVIDIA H100 80GB HBM3',
    gpu_count: gpus,
    inflight: Math.round(load / 20),
    max_inflight: 64,
    last_minute: makeReplicaTraffic({ requests: load, errors, client_errors: at % 4 }),
    trend: makeTrend(load / 12, errors / load),
  });
}

function sumOf(replicas: readonly OverviewReplica[]): Overview['last_minute'] {
  const sum = (field: 'requests' | 'errors' | 'client_errors' | 'canceled') =>
    replicas.reduce((total, { last_minute }) => total + last_minute[field], 0);
  return makeTraffic({
    requests: sum('requests'),
    errors: sum('errors'),
    client_errors: sum('client_errors'),
    canceled: sum('canceled'),
  });
}

function withTotals(replicas: readonly OverviewReplica[], changes: Partial<Overview> = {}): Overview {
  const total = sumOf(replicas);
  const models = [...new Set(replicas.flatMap((replica) => replica.models ?? []))];
  const share = total.errors / Math.max(total.requests, 1);
  const base = makeOverview();
  return makeOverview({
    replicas,
    last_minute: total,
    history: base.history.map((past, at) => {
      const requests = Math.round((total.requests / 12) * (1 + 0.3 * Math.sin(at / 5)));
      const errors = at > 35 ? Math.round(requests * share * 1.4) : 0;
      const { time, inflight, queued } = past;
      return { ...makeTraffic({ requests, errors, requests_per_s: requests / 5 }), time, inflight, queued };
    }),
    models: models.map((name) => ({
      name,
      last_minute: sumOf(replicas.filter((replica) => replica.models?.includes(name))),
    })),
    tenants: ['acme-production', 'initech', 'globex-batch', 'hooli', 'umbrella-research-eu', '_OTHER'].map(
      (name, at) => ({
        name,
        last_minute: makeTraffic({
          requests: Math.round(total.requests / 2 ** (at + 1)),
          errors: Math.round((share * total.requests) / 2 ** (at + 1)),
        }),
      }),
    ),
    trace_url_template: 'http://jaeger.example:16686/trace/{trace_id}',
    ...changes,
  });
}

const TENANTS = ['acme-production', 'initech', 'globex-batch', 'umbrella-research-eu'];

function makeRecords(
  replicas: readonly OverviewReplica[],
  change: (number: number) => Partial<OverviewRecord>,
) {
  const records = Array.from({ length: 60 }, (_, at) => {
    const replica = replicas[(at * 7) % replicas.length];
    const [model] = replica?.models ?? [];
    const tenant = TENANTS[at % TENANTS.length];
    return makeRecord(60 - at, {
      ...(replica === undefined ? {} : { replica: replica.name }),
      ...(model === undefined ? {} : { model }),
      ...(tenant === undefined ? {} : { tenant }),
      ...change(at),
    });
  });
  return { records, failures: records.filter(({ status }) => status >= 400), last_record: 60 };
}

/** Fifty replicas with the names of pods and of models on Hugging Face. All of them serve. */
export function fiftyReplicas(): Overview {
  const replicas = DEPLOYMENTS.flatMap((deployment) =>
    Array.from({ length: deployment.count }, (_, at) => toPod(deployment, at)),
  );
  const base = makeOverview();
  return withTotals(replicas, {
    gateway: {
      ...base.gateway,
      name: 'inference-eu-central-1',
      host: 'spangate-5f7c9d8b6-hx2vq',
      workers: 8,
    },
    saturation: {
      ...base.saturation,
      workers: Array.from({ length: 8 }, (_, at) => ({
        worker: at + 1,
        event_loop_utilization: 0.42 + ((at * 13) % 20) / 100,
      })),
      connections: { now: 2_180, limit: 10_000 },
    },
    failure_reasons: [
      { code: 'upstream_failed', status: 502, replica: replicas[5]?.name ?? null, model: LLAMA, count: 4 },
      { code: '422', status: 422, replica: replicas[30]?.name ?? null, model: QWEN, count: 3 },
      {
        code: 'model_not_found',
        status: 404,
        replica: null,
        model: 'meta-llama/Llama-3.1-70B-Instruct',
        count: 2,
      },
    ],
    ...makeRecords(replicas, (at) =>
      at % 19 === 3 ? { status: 502, error_type: 'upstream_failed', attempts: 2 } : {},
    ),
  });
}

/** Six replicas: one unreachable, one that fails 30 % of its requests, one drained, one loading, two in order. */
export function troubledFleet(): Overview {
  const replicas = [
    makeReplica({ name: 'llama-a', models: [LLAMA], host: 'gpu-node-1' }),
    makeReplica({
      name: 'llama-b',
      models: [LLAMA],
      host: 'gpu-node-2',
      inflight: 5,
      last_minute: makeReplicaTraffic({ requests: 240, errors: 72 }),
      trend: makeTrend(20, 0.3),
    }),
    makeReplica({
      name: 'llama-c',
      models: [LLAMA],
      host: 'gpu-node-3',
      inflight: 0,
      drained: true,
      safe_to_stop: true,
      since: secondsAgo(540),
      reason: 'driver update',
      health: null,
      reachability: 'unknown',
      reachability_since: null,
      last_minute: NO_TRAFFIC,
      trend: makeTrend(0),
    }),
    makeReplica({
      name: 'llama-d',
      models: [LLAMA],
      host: 'gpu-node-4',
      inflight: 3,
      drained: true,
      safe_to_stop: false,
      since: secondsAgo(12),
      reason: 'driver update',
      health: null,
    }),
    makeReplica({
      name: 'qwen-a',
      models: [QWEN],
      host: 'gpu-node-5',
      inflight: 0,
      reachability: 'loading',
      reachability_since: secondsAgo(95),
      reachability_reason: 'loading_model',
      last_minute: NO_TRAFFIC,
      trend: makeTrend(0),
    }),
    makeReplica({ name: 'qwen-b', models: [QWEN], host: 'gpu-node-6', inflight: 7, max_inflight: 8 }),
    makeReplica({
      name: 'embed-a',
      models: [EMBED],
      host: 'gpu-node-7',
      inflight: 0,
      reachability: 'unreachable',
      reachability_since: secondsAgo(190),
      reachability_reason: 'connection_refused',
      last_minute: makeReplicaTraffic({
        requests: 31,
        errors: 31,
        outcomes: { error: 0, not_connected: 31 },
        ttft_p95_ms: null,
        ttft_p50_ms: null,
        latency_p50_ms: null,
        latency_p95_ms: null,
      }),
      trend: makeTrend(3, 1),
      gpu_model: 'L4',
      gpu_count: 1,
    }),
    makeReplica({ name: 'embed-b', models: [EMBED], host: 'gpu-node-8', gpu_model: 'L4', gpu_count: 1 }),
  ];
  const failed = { status: 502, error_type: 'upstream_failed', attempts: 2 } as const;
  return withTotals(replicas, {
    conditions: makeConditions([
      {
        id: 'requests_failing',
        subject: '',
        figures: { share: 0.084, requests: 1_231 },
        sinceEpochMs: Date.parse(secondsAgo(170)),
      },
      {
        id: 'replica_unreachable',
        subject: 'embed-a',
        figures: { reason: 'connection refused' },
        sinceEpochMs: Date.parse(secondsAgo(190)),
      },
      {
        id: 'replica_attempts_failing',
        subject: 'llama-b',
        figures: { share: 0.3, attempts: 240 },
        sinceEpochMs: Date.parse(secondsAgo(160)),
      },
      {
        id: 'replica_loading',
        subject: 'qwen-a',
        figures: {},
        sinceEpochMs: Date.parse(secondsAgo(95)),
      },
    ]),
    failure_reasons: [
      { code: 'upstream_failed', status: 502, replica: 'llama-b', model: LLAMA, count: 72 },
      { code: 'upstream_unreachable', status: 502, replica: 'embed-a', model: EMBED, count: 31 },
    ],
    ...makeRecords(replicas, (at) =>
      at % 5 === 1
        ? {
            ...failed,
            failed_attempts: [
              { replica: 'embed-a', failure: 'not_connected', status: null, after_ms: 0.4, duration_ms: 1.2 },
            ],
          }
        : {},
    ),
  });
}

/** A fleet in order whose collector does not take records: the queue grows, and some were dropped. */
export function collectorDown(): Overview {
  const replicas = ['llama-a', 'llama-b', 'llama-c'].map((name) => makeReplica({ name, models: [LLAMA] }));
  const overview = withTotals(replicas);
  return {
    ...overview,
    stats: { ...overview.stats, queued: 12_840, dropped: 412, failed_calls: 118 },
    collector: { state: 'failing', since: secondsAgo(420), failed_calls: 118 },
    conditions: makeConditions([
      { id: 'records_dropped', subject: '', figures: { dropped: 412 } },
      {
        id: 'collector_away',
        subject: '',
        figures: {
          reason: 'ECONNREFUSED',
          queued: 12_840,
          failed_calls: 118,
          collector: 'http://127.0.0.1:4318/v1/traces',
          advice: 'start the collector',
        },
        sinceEpochMs: Date.parse(secondsAgo(420)),
      },
    ]),
    history: overview.history.map((past, at) => ({ ...past, queued: at * 214 })),
    ...makeRecords(replicas, () => ({})),
  };
}

/** An evening with more conditions than fit on the line, of subjects of all kinds and with names that take much room. */
export function troubledEvening(): Overview {
  const overview = troubledFleet();
  const name = 'vllm-llama-3-3-70b-instruct-fp8-6d5f8c9b7d-hx2vq';
  const replica = makeReplica({ name, models: [LLAMA], inflight: 41 });
  return {
    ...overview,
    replicas: [...overview.replicas, replica],
    conditions: makeConditions([
      {
        id: 'replica_streams_silent',
        subject: name,
        figures: { silent: 31, running: 41, oldest: 312 },
        sinceEpochMs: Date.parse(secondsAgo(330)),
      },
      {
        id: 'tenant_limit_reached',
        subject: 'acme-production',
        figures: {
          limit: 'max_inflight',
          allowed: 32,
          used: 32,
          refused: 418,
          silent: 31,
          held: `, 31 places are held by silent streams at ${name}`,
        },
        sinceEpochMs: Date.parse(secondsAgo(240)),
      },
      {
        id: 'certificate_ended',
        subject: '/etc/spangate/tls/fullchain.pem',
        figures: { ago: 400, ends: '2026-11-01T00:00:00.000Z' },
      },
      {
        id: 'state_not_stored',
        subject: '/var/lib/spangate/state/drains.json',
        figures: { reason: 'ENOSPC' },
      },
      { id: 'model_unavailable', subject: QWEN, figures: { drained: 1, away: 1 } },
      { id: 'replica_unreachable', subject: 'embed-a', figures: { reason: 'connection refused' } },
      { id: 'health_checks_off', subject: '', figures: { replicas: 'embed-a, llama-c' } },
      { id: 'redis_away', subject: '', figures: { reason: 'Redis does not answer (ECONNREFUSED)' } },
      { id: 'drain_old', subject: 'llama-c', figures: { age: 5_400, reason: ': driver update' } },
      { id: 'config_not_loaded', subject: '/etc/spangate/gateway.yaml', figures: {} },
    ]),
  };
}
