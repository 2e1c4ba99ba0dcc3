import { ATTEMPT_OUTCOMES, type AttemptOutcome, isAttemptError } from '#otel/outcome';
import { DurationHistogram } from './duration-histogram.ts';

/** What a tally counts of one request; in the tally of a replica, of one attempt. */
export interface CountedRequest {
  /** Null: a request at a replica with all of its attempts counted before. */
  readonly outcome: AttemptOutcome | null;
  /** Whether it is counted as a request: an attempt before the last one is not. */
  readonly isRequest: boolean;
  readonly outputTokens: number;
  /** Whether its GPU time is known, which is counted by itself in the slices in which it was used. */
  readonly hasGpuTime: boolean;
  /** The currency of its cost, which is counted likewise; null: it has none. */
  readonly currency: string | null;
  /** The bucket of the time to first token of a success; -1 without one. */
  readonly ttftBucket: number;
  /** The bucket of the latency of a success; -1 without one. */
  readonly latencyBucket: number;
}

/** The figures of an interval. Null if no request provides a value. Tokens are those that engines reported. */
export interface Traffic {
  readonly requests: number;
  /** `RequestOutcome` and `AttemptOutcome` define these three. */
  readonly errors: number;
  readonly clientErrors: number;
  readonly canceled: number;
  readonly requestsPerSecond: number;
  readonly outputTokensPerSecond: number;
  readonly gpuSeconds: number | null;
  /** What the GPU time costs. */
  readonly cost: { readonly amount: number; readonly currency: string } | null;
  /** Of successes only: a failure that comes fast would make the others look fast. */
  readonly ttftP50Ms: number | null;
  readonly ttftP95Ms: number | null;
  readonly latencyP50Ms: number | null;
  readonly latencyP95Ms: number | null;
}

/** How many attempts had each outcome. */
export type OutcomeCounts = Readonly<Record<AttemptOutcome, number>>;

/** The figures of a replica in an interval. Errors, client errors and cancellations are those of its attempts. */
export interface ReplicaFigures extends Traffic {
  readonly attempts: number;
  readonly attemptsPerSecond: number;
  readonly outcomes: OutcomeCounts;
}

const NO_OUTCOMES: OutcomeCounts = {
  success: 0,
  error: 0,
  not_connected: 0,
  loading: 0,
  client_error: 0,
  canceled: 0,
  repeated: 0,
  other: 0,
};

/** Counts the requests of an interval, or the attempts at a replica. Takes at most 1.8 kB for any number of them. */
export class Tally {
  #requests = 0;
  readonly #outcomes: Record<AttemptOutcome, number> = { ...NO_OUTCOMES };
  #outputTokens = 0;
  /** Requests whose GPU time is known, and the GPU time that was used in the interval. */
  #gpuRequests = 0;
  #gpuSeconds = 0;
  /** Requests whose cost is known, and the cost of the GPU time that was used in the interval. */
  #costRequests = 0;
  #cost = 0;
  #currency = '';
  readonly #ttft = new DurationHistogram();
  readonly #latency = new DurationHistogram();

  get requests(): number {
    return this.#requests;
  }

  /** All that have an outcome: in the tally of a replica, its attempts. */
  get attempts(): number {
    return ATTEMPT_OUTCOMES.reduce((sum, outcome) => sum + this.#outcomes[outcome], 0);
  }

  get errors(): number {
    return ATTEMPT_OUTCOMES.reduce(
      (sum, outcome) => (isAttemptError(outcome) ? sum + this.#outcomes[outcome] : sum),
      0,
    );
  }

  add(counted: CountedRequest): void {
    const { outcome, isRequest, outputTokens, hasGpuTime, currency, ttftBucket, latencyBucket } = counted;
    if (isRequest) this.#requests += 1;
    if (outcome !== null) this.#outcomes[outcome] += 1;
    this.#outputTokens += outputTokens;
    if (hasGpuTime) this.#gpuRequests += 1;
    if (currency !== null) this.#costRequests += 1;
    this.#currency = currency ?? this.#currency;
    if (ttftBucket >= 0) this.#ttft.add(ttftBucket);
    if (latencyBucket >= 0) this.#latency.add(latencyBucket);
  }

  /** Counts GPU time, and what it costs, of a request that ends in this interval or later. */
  addGpuTime(seconds: number, cost: number): void {
    this.#gpuSeconds += seconds;
    this.#cost += cost;
  }

  /** Adds the counts of another tally. */
  merge(other: Tally): void {
    this.#addCounts(other, 1);
    this.#ttft.merge(other.#ttft);
    this.#latency.merge(other.#latency);
  }

  /** Takes away the counts of another tally, which were added before. */
  subtract(other: Tally): void {
    this.#addCounts(other, -1);
    this.#ttft.subtract(other.#ttft);
    this.#latency.subtract(other.#latency);
  }

  /** Forgets all requests and keeps the memory. */
  clear(): void {
    this.#requests = 0;
    Object.assign(this.#outcomes, NO_OUTCOMES);
    this.#outputTokens = 0;
    this.#gpuRequests = 0;
    this.#gpuSeconds = 0;
    this.#costRequests = 0;
    this.#cost = 0;
    this.#ttft.clear();
    this.#latency.clear();
  }

  #addCounts(other: Tally, sign: 1 | -1): void {
    this.#requests += sign * other.#requests;
    for (const outcome of ATTEMPT_OUTCOMES) this.#outcomes[outcome] += sign * other.#outcomes[outcome];
    this.#outputTokens += sign * other.#outputTokens;
    this.#gpuRequests += sign * other.#gpuRequests;
    this.#gpuSeconds += sign * other.#gpuSeconds;
    this.#costRequests += sign * other.#costRequests;
    this.#cost += sign * other.#cost;
    this.#currency ||= other.#currency;
  }

  /** The figures of an interval of this length. Rates divide by at least one second. */
  toTraffic(seconds: number): Traffic {
    return {
      requests: this.#requests,
      errors: this.errors,
      clientErrors: this.#outcomes.client_error,
      canceled: this.#outcomes.canceled,
      requestsPerSecond: toRate(this.#requests, seconds),
      // A sum beyond 2^53 is not exact, and neither is what is left of it.
      outputTokensPerSecond: toRate(Math.max(0, this.#outputTokens), seconds),
      // What is left after sums were taken away can be a little below zero.
      gpuSeconds: this.#gpuRequests === 0 ? null : Math.max(0, this.#gpuSeconds),
      cost: this.#costRequests === 0 ? null : { amount: Math.max(0, this.#cost), currency: this.#currency },
      ttftP50Ms: this.#ttft.quantile(0.5),
      ttftP95Ms: this.#ttft.quantile(0.95),
      latencyP50Ms: this.#latency.quantile(0.5),
      latencyP95Ms: this.#latency.quantile(0.95),
    };
  }

  /** The figures of a replica, whose attempts were counted. */
  toReplicaFigures(seconds: number): ReplicaFigures {
    const { attempts } = this;
    return {
      ...this.toTraffic(seconds),
      attempts,
      attemptsPerSecond: toRate(attempts, seconds),
      outcomes: { ...this.#outcomes },
    };
  }
}

function toRate(count: number, seconds: number): number {
  return count / Math.max(seconds, 1);
}
