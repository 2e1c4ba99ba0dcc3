import type { RequestRecord } from '#otel/encode/request-record.ts';
import { DurationHistogram } from './duration-histogram.ts';

/** The length of a slice: the time resolution of rates and quantiles. */
export const SLICE_MS = 5_000;
/** The figures cover the last minute: the current slice and eleven complete ones. */
const WINDOW_SLICES = 12;
/** The history covers the last five minutes. */
export const HISTORY_SLICES = 60;

/** The fields of a record that the window uses. */
export type TrafficFacts = Pick<
  RequestRecord,
  'replica' | 'status' | 'error_type' | 'truncated' | 'ttft_ms' | 'e2e_ms' | 'completion_tokens'
>;

/** The figures of an interval. Null if no request provides a value. Tokens are those that engines reported. */
export interface Traffic {
  readonly requests: number;
  /** Requests that ended with a 5xx status or an incomplete response. */
  readonly errors: number;
  readonly requestsPerSecond: number;
  readonly outputTokensPerSecond: number;
  readonly ttftP50Ms: number | null;
  readonly ttftP95Ms: number | null;
  readonly latencyP50Ms: number | null;
  readonly latencyP95Ms: number | null;
}

interface Slice {
  /** The number of the slice since time zero of the clock. */
  readonly index: number;
  readonly total: Tally;
  readonly byReplica: Map<string, Tally>;
}

/**
 * The requests that ended recently, by replica. A request adds a few numbers to the slice in which it ends; figures are
 * computed on demand. Memory depends only on the number of replicas. Times are on a monotonic clock.
 */
export class TrafficWindow {
  /** The newest is last. Slices without a request are absent. */
  readonly #slices: Slice[] = [];
  readonly #startedAtMs: number;

  constructor(startedAtMs: number) {
    this.#startedAtMs = startedAtMs;
  }

  /** Counts a request that has just ended. */
  add(facts: TrafficFacts, nowMs: number): void {
    const { total, byReplica } = this.#sliceAt(toSliceIndex(nowMs));
    total.add(facts);
    if (facts.replica === undefined) return;
    let tally = byReplica.get(facts.replica);
    if (tally === undefined) {
      tally = new Tally();
      byReplica.set(facts.replica, tally);
    }
    tally.add(facts);
  }

  /** The figures of the last minute: of all requests, and of each replica that had requests. */
  lastMinute(nowMs: number): { readonly total: Traffic; readonly byReplica: ReadonlyMap<string, Traffic> } {
    const first = toSliceIndex(nowMs) - WINDOW_SLICES + 1;
    const total = new Tally();
    const byReplica = new Map<string, Tally>();
    for (const slice of this.#slices.filter(({ index }) => index >= first)) {
      total.merge(slice.total);
      for (const [name, tally] of slice.byReplica) {
        const sum = byReplica.get(name) ?? new Tally();
        sum.merge(tally);
        byReplica.set(name, sum);
      }
    }
    const seconds = (nowMs - Math.max(first * SLICE_MS, this.#startedAtMs)) / 1000;
    return {
      total: total.toTraffic(seconds),
      byReplica: new Map([...byReplica].map(([name, tally]) => [name, tally.toTraffic(seconds)])),
    };
  }

  /** The figures of one complete slice; zero or null if no request ended in it. */
  slice(index: number): Traffic {
    const tally = this.#slices.find((slice) => slice.index === index)?.total ?? new Tally();
    return tally.toTraffic(SLICE_MS / 1000);
  }

  #sliceAt(index: number): Slice {
    const newest = this.#slices.at(-1);
    if (newest !== undefined && newest.index >= index) return newest;
    const slice = { index, total: new Tally(), byReplica: new Map<string, Tally>() };
    this.#slices.push(slice);
    while ((this.#slices[0]?.index ?? index) <= index - HISTORY_SLICES - 1) this.#slices.shift();
    // The history needs only the total.
    this.#slices.at(-1 - WINDOW_SLICES)?.byReplica.clear();
    return slice;
  }
}

/** The slice that a time belongs to. */
export function toSliceIndex(nowMs: number): number {
  return Math.floor(nowMs / SLICE_MS);
}

class Tally {
  #requests = 0;
  #errors = 0;
  #outputTokens = 0;
  readonly #ttft = new DurationHistogram();
  readonly #latency = new DurationHistogram();

  add({ status, error_type, truncated, ttft_ms, e2e_ms, completion_tokens }: TrafficFacts): void {
    this.#requests += 1;
    const isBroken = status < 400 && (truncated === true || error_type !== undefined);
    if (status >= 500 || (isBroken && error_type !== 'client_closed')) this.#errors += 1;
    this.#outputTokens += completion_tokens ?? 0;
    if (ttft_ms !== undefined) this.#ttft.add(ttft_ms);
    this.#latency.add(e2e_ms);
  }

  merge(other: Tally): void {
    this.#requests += other.#requests;
    this.#errors += other.#errors;
    this.#outputTokens += other.#outputTokens;
    this.#ttft.merge(other.#ttft);
    this.#latency.merge(other.#latency);
  }

  toTraffic(seconds: number): Traffic {
    const perSecond = (count: number): number => count / Math.max(seconds, 1);
    return {
      requests: this.#requests,
      errors: this.#errors,
      requestsPerSecond: perSecond(this.#requests),
      outputTokensPerSecond: perSecond(this.#outputTokens),
      ttftP50Ms: this.#ttft.quantile(0.5),
      ttftP95Ms: this.#ttft.quantile(0.95),
      latencyP50Ms: this.#latency.quantile(0.5),
      latencyP95Ms: this.#latency.quantile(0.95),
    };
  }
}
