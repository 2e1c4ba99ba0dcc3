import type { RequestRecord } from '#otel/record/registry';
import { toRandom } from '#testkit/random.ts';

/*
 * The requests of a day, planned in advance. All times are milliseconds since the day began.
 */

const HOUR_MS = 3_600_000;

/** A replica, with its price at the beginning; null: it has none. */
export const REPLICAS = [
  { name: 'r0', gpuCount: 8, gpuHourPrice: 2.5 },
  { name: 'r1', gpuCount: 4, gpuHourPrice: 3.1 },
  { name: 'r2', gpuCount: 1, gpuHourPrice: null },
] as const;

const TENANTS = ['acme', 'acme', 'globex', 'initech', 'ünï ✓', '__proto__', 'constructor', null];
const CLIENTS = ['search', 'batch', 'toString', null];
const MODELS = ['large', 'large', 'small', 'hasOwnProperty'];

/** A place that a request had at a replica. */
export interface Lease {
  readonly replica: number;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** How the history counts a request that did not succeed. */
export type FailedOutcome = 'errors' | 'client_errors' | 'canceled';

/** A request, as its client, its replicas and the day have it. */
export interface DayRequest {
  readonly arriveMs: number;
  readonly endMs: number;
  readonly leases: readonly Lease[];
  /** What its record has beside its times, its number, and its part of GPUs. */
  readonly fields: Readonly<Partial<RequestRecord>> & Pick<RequestRecord, 'endpoint' | 'status' | 'stream'>;
  /** Null: none of these. */
  readonly outcome: FailedOutcome | null;
  /** Why, by the name that the history has for it. */
  readonly why: string | null;
  /** Whether its record becomes a span, and whether that is exported. */
  readonly fate: 'queued' | 'dropped' | 'unencodable';
  /** Its record has so many hashes: it is long. */
  readonly hashCount: number;
}

/** One kind of request. */
interface Kind {
  readonly weight: number;
  readonly endpoint?: RequestRecord['endpoint'];
  readonly status?: number;
  readonly stream?: boolean;
  readonly errorType?: string;
  readonly outcome?: FailedOutcome;
  readonly why?: string;
  /** At how many replicas one after the other. Default: 1. */
  readonly attempts?: number;
  readonly tokens?: 'all' | 'prompt' | 'none';
  readonly truncated?: boolean;
}

const CHAT = '/v1/chat/completions';

const KINDS: readonly Kind[] = [
  { weight: 25 },
  { weight: 38, stream: true },
  { weight: 8, endpoint: '/v1/embeddings', tokens: 'prompt' },
  { weight: 5, endpoint: '/v1/completions' },
  { weight: 2, tokens: 'none' },
  { weight: 5, attempts: 2 },
  { weight: 2, stream: true, attempts: 3 },
  // Streams that their client left: with running figures, and without.
  ...(['all', 'none'] as const).map((tokens) => ({
    weight: 3,
    stream: true,
    tokens,
    errorType: 'client_closed',
    outcome: 'canceled' as const,
    why: 'client_closed',
  })),
  { weight: 3, status: 499, errorType: 'client_closed', tokens: 'none', outcome: 'canceled' },
  { weight: 2, status: 500, tokens: 'none', outcome: 'errors', why: '500' },
  {
    weight: 1,
    status: 502,
    attempts: 3,
    errorType: 'no_replica_reachable',
    tokens: 'none',
    outcome: 'errors',
  },
  { weight: 1, status: 503, attempts: 0, errorType: 'overloaded', tokens: 'none', outcome: 'errors' },
  { weight: 1, status: 504, errorType: 'upstream_timeout', tokens: 'none', outcome: 'errors' },
  { weight: 1, stream: true, truncated: true, errorType: 'upstream_failed', outcome: 'errors' },
  { weight: 1, stream: true, errorType: 'upstream_error', outcome: 'errors' },
  {
    weight: 1,
    status: 429,
    attempts: 0,
    errorType: 'rate_limit_exceeded',
    tokens: 'none',
    outcome: 'client_errors',
  },
  {
    weight: 1,
    status: 404,
    attempts: 0,
    errorType: 'model_not_found',
    tokens: 'none',
    outcome: 'client_errors',
  },
  { weight: 0.5, status: 307, tokens: 'none' },
];

/** The sum of the weights up to each kind. */
const WEIGHTS = KINDS.map((_, index) =>
  KINDS.slice(0, index + 1).reduce((sum, { weight }) => sum + weight, 0),
);

function pickWeighted(random: () => number): number {
  const at = random() * (WEIGHTS.at(-1) ?? 0);
  return WEIGHTS.findIndex((weight) => at < weight);
}

/** A span of the day in which a client sends many long requests. */
export interface Burst {
  readonly fromMs: number;
  readonly untilMs: number;
  readonly perSecond: number;
}

/** Plans the requests of the day, in the order of their arrival. */
export function planTraffic(
  seed: number,
  { dayMs, perHour, burst }: { readonly dayMs: number; readonly perHour: number; readonly burst: Burst },
): readonly DayRequest[] {
  const random = toRandom(seed);
  const requests: DayRequest[] = [];
  for (let arriveMs = 0; ; ) {
    const isBurst = arriveMs >= burst.fromMs && arriveMs < burst.untilMs;
    const perMs = isBurst ? burst.perSecond / 1_000 : (perHour * toLoad(arriveMs)) / HOUR_MS;
    arriveMs += Math.ceil(-Math.log(1 - random()) / perMs);
    if (arriveMs >= dayMs) return requests;
    const request = plan(arriveMs, random);
    requests.push(isBurst ? { ...request, hashCount: 110 } : request);
  }
}

/** Few requests at the ends, most in the middle of the day. The mean is 1. */
function toLoad(ms: number): number {
  return 1 - 0.8 * Math.cos((ms / (24 * HOUR_MS)) * 2 * Math.PI);
}

function plan(arriveMs: number, random: () => number): DayRequest {
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T;
  const whole = (most: number) => Math.floor(random() * most);
  const kind = KINDS[pickWeighted(random)] as Kind;
  const { status = 200, stream = false, tokens = 'all', attempts = 1, errorType, outcome = null } = kind;
  const leases: Lease[] = [];
  let endMs = arriveMs + 1 + whole(20);
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const isLast = attempt === attempts;
    // From milliseconds to a minute; what failed, failed soon.
    const untilMs = endMs + Math.ceil(isLast ? 30 * 2_000 ** random() : 5 + whole(2_000));
    leases.push({ replica: whole(REPLICAS.length), fromMs: endMs, untilMs });
    endMs = untilMs + whole(3);
  }
  const [tenant, client] = [pick(TENANTS), pick(CLIENTS)];
  const replica = REPLICAS[leases.at(-1)?.replica ?? -1]?.name;
  const promptTokens = 1 + whole(4_000);
  const fields: DayRequest['fields'] = {
    endpoint: kind.endpoint ?? CHAT,
    status,
    stream,
    e2e_ms: endMs - arriveMs,
    model: errorType === 'model_not_found' ? `unknown-${whole(5)}` : pick(MODELS),
    ...(tenant !== null && { tenant }),
    ...(client !== null && { client }),
    ...(replica !== undefined && { replica }),
    ...(attempts > 0 && { attempts }),
    ...(errorType !== undefined && { error_type: errorType }),
    ...(kind.truncated && { truncated: true }),
    ...(stream && { ttft_ms: Math.ceil((endMs - arriveMs) * random()) }),
    ...(tokens !== 'none' && { prompt_tokens: promptTokens }),
    ...(tokens !== 'none' && random() < 0.4 && { cached_tokens: whole(promptTokens) }),
    ...(tokens === 'all' && { completion_tokens: whole(900) }),
    ...(tokens === 'all' && random() < 0.2 && { reasoning_tokens: whole(500) }),
  };
  const chance = random();
  return {
    arriveMs,
    endMs,
    leases,
    fields,
    outcome,
    hashCount: 0,
    why: outcome === null ? null : (kind.why ?? errorType ?? null),
    fate: chance < 0.0005 ? 'unencodable' : chance < 0.01 ? 'dropped' : 'queued',
  };
}
