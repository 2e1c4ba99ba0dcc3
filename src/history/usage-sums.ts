import { toFailureType, toOutcome } from '#otel/outcome';
import type { RequestRecord } from '#otel/record/registry';
import { toBucket } from './histogram.ts';

/** By what requests are summed, in the order of a key. */
export const DIMENSIONS = ['tenant', 'client', 'model', 'replica', 'endpoint'] as const;

export type Dimension = (typeof DIMENSIONS)[number];

/** What is summed, by the names of its columns. */
export const SUMS = [
  'requests',
  'attempts',
  'errors',
  'client_errors',
  'canceled',
  'without_usage',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'gpu_seconds',
  'e2e_ms',
  'ttft_ms',
] as const;

export type SumName = (typeof SUMS)[number];

/** The sums of some requests. */
export interface RequestSums {
  readonly sums: Record<SumName, number>;
  /** How many requests failed or were canceled, by why. */
  readonly failures: Map<string, number>;
  /** What they cost, by currency: a reload may change it. */
  readonly costs: Map<string, number>;
  /** The bucket of each duration of a success, and of each time to the first token: a fast refusal is no fast answer. */
  readonly durations: number[];
  readonly firstTokens: number[];
}

/** The sums of the requests of one key that arrived in one minute. */
export interface UsageDelta extends RequestSums {
  /** When the minute began: epoch milliseconds. */
  readonly minuteMs: number;
  /** The values of DIMENSIONS, with line breaks between them; one that is unknown is empty. */
  readonly key: string;
}

const MINUTE_MS = 60_000;
/** `2026-11-21T08:00` of an RFC 3339 time. */
const MINUTE_CHARS = 16;

/** Sums records until they are taken. */
export class UsageSums {
  #minutes = new Map<number, Map<string, UsageDelta>>();
  /** The minute of the last record: most records are of the same. */
  #minuteText = '-';
  #minuteMs = 0;
  #keys = new Map<string, UsageDelta>();

  add(record: Readonly<RequestRecord>): void {
    if (!record.ts.startsWith(this.#minuteText)) this.#beginMinute(record.ts);
    const { tenant, client, model, replica, endpoint, ttft_ms, gpu_seconds, cost, currency } = record;
    const { prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens } = record;
    const key = `${tenant ?? ''}\n${client ?? ''}\n${model ?? ''}\n${replica ?? ''}\n${endpoint}`;
    let delta = this.#keys.get(key);
    if (delta === undefined) {
      delta = { minuteMs: this.#minuteMs, key, ...createSums() };
      this.#keys.set(key, delta);
    }
    const { sums } = delta;
    sums.requests += 1;
    sums.attempts += record.attempts ?? 0;
    sums.e2e_ms += record.e2e_ms;
    if (ttft_ms !== undefined) {
      sums.ttft_ms += ttft_ms;
      delta.firstTokens.push(toBucket(ttft_ms));
    }
    if (prompt_tokens !== undefined) sums.prompt_tokens += prompt_tokens;
    if (completion_tokens !== undefined) sums.completion_tokens += completion_tokens;
    if (cached_tokens !== undefined) sums.cached_tokens += cached_tokens;
    if (reasoning_tokens !== undefined) sums.reasoning_tokens += reasoning_tokens;
    if (gpu_seconds !== undefined) sums.gpu_seconds += gpu_seconds;
    if (cost !== undefined) addTo(delta.costs, currency ?? '', cost);
    const outcome = toOutcome(record);
    if (outcome === 'success') {
      delta.durations.push(toBucket(record.e2e_ms));
      if (prompt_tokens === undefined && completion_tokens === undefined) sums.without_usage += 1;
    } else if (outcome !== 'other') countFailure(delta, outcome, record);
  }

  /** Returns the sums so far, and begins anew. */
  take(): readonly UsageDelta[] {
    const deltas = [...this.#minutes.values()].flatMap((keys) => [...keys.values()]);
    this.#minutes = new Map();
    this.#minuteText = '-';
    return deltas;
  }

  #beginMinute(ts: string): void {
    this.#minuteText = ts.slice(0, MINUTE_CHARS);
    this.#minuteMs = Math.floor(Date.parse(ts) / MINUTE_MS) * MINUTE_MS;
    this.#keys = this.#minutes.get(this.#minuteMs) ?? new Map();
    this.#minutes.set(this.#minuteMs, this.#keys);
  }
}

/** Sums of no request. */
export function createSums(): RequestSums {
  const sums = Object.fromEntries(SUMS.map((name) => [name, 0])) as Record<SumName, number>;
  return { sums, failures: new Map(), costs: new Map(), durations: [], firstTokens: [] };
}

/** Adds sums to others. */
export function addSums(to: RequestSums, added: RequestSums): void {
  for (const name of SUMS) to.sums[name] += added.sums[name];
  for (const [why, count] of added.failures) addTo(to.failures, why, count);
  for (const [currency, cost] of added.costs) addTo(to.costs, currency, cost);
  for (const bucket of added.durations) to.durations.push(bucket);
  for (const bucket of added.firstTokens) to.firstTokens.push(bucket);
}

function countFailure(
  { sums, failures }: UsageDelta,
  outcome: 'error' | 'client_error' | 'canceled',
  record: Readonly<RequestRecord>,
): void {
  if (outcome === 'error') sums.errors += 1;
  else if (outcome === 'client_error') sums.client_errors += 1;
  else sums.canceled += 1;
  const why = toFailureType(record) ?? record.error_type ?? String(record.status);
  addTo(failures, why, 1);
}

/** Adds to one of several sums. */
export function addTo(sums: Map<string, number>, name: string, value: number): void {
  sums.set(name, (sums.get(name) ?? 0) + value);
}
