import type { RequestOutcome } from '#otel/outcome';
import { DurationHistogram } from './duration-histogram.ts';

/** What a tally counts of one request. */
export interface CountedRequest {
  readonly outcome: RequestOutcome;
  readonly outputTokens: number;
  /** Whether its GPU time is known, which is counted by itself in the slices in which it was used. */
  readonly hasGpuTime: boolean;
  /** The bucket of the time to first token of a success; -1 without one. */
  readonly ttftBucket: number;
  /** The bucket of the latency of a success; -1 without one. */
  readonly latencyBucket: number;
}

/** The figures of an interval. Null if no request provides a value. Tokens are those that engines reported. */
export interface Traffic {
  readonly requests: number;
  /** `RequestOutcome` defines these three. */
  readonly errors: number;
  readonly clientErrors: number;
  readonly canceled: number;
  readonly requestsPerSecond: number;
  readonly outputTokensPerSecond: number;
  readonly gpuSeconds: number | null;
  /** Of successes only: a failure that comes fast would make the others look fast. */
  readonly ttftP50Ms: number | null;
  readonly ttftP95Ms: number | null;
  readonly latencyP50Ms: number | null;
  readonly latencyP95Ms: number | null;
}

/** Counts the requests of an interval. Takes at most 1.7 kB for any number of requests. */
export class Tally {
  #requests = 0;
  #errors = 0;
  #clientErrors = 0;
  #canceled = 0;
  #outputTokens = 0;
  /** Requests whose GPU time is known, and the GPU time that was used in the interval. */
  #gpuRequests = 0;
  #gpuSeconds = 0;
  readonly #ttft = new DurationHistogram();
  readonly #latency = new DurationHistogram();

  get requests(): number {
    return this.#requests;
  }

  get errors(): number {
    return this.#errors;
  }

  add({ outcome, outputTokens, hasGpuTime, ttftBucket, latencyBucket }: CountedRequest): void {
    this.#requests += 1;
    if (outcome === 'error') this.#errors += 1;
    else if (outcome === 'client_error') this.#clientErrors += 1;
    else if (outcome === 'canceled') this.#canceled += 1;
    this.#outputTokens += outputTokens;
    if (hasGpuTime) this.#gpuRequests += 1;
    if (ttftBucket >= 0) this.#ttft.add(ttftBucket);
    if (latencyBucket >= 0) this.#latency.add(latencyBucket);
  }

  /** Counts GPU time of a request that ends in this interval or later. */
  addGpuSeconds(seconds: number): void {
    this.#gpuSeconds += seconds;
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
    this.#errors = 0;
    this.#clientErrors = 0;
    this.#canceled = 0;
    this.#outputTokens = 0;
    this.#gpuRequests = 0;
    this.#gpuSeconds = 0;
    this.#ttft.clear();
    this.#latency.clear();
  }

  #addCounts(other: Tally, sign: 1 | -1): void {
    this.#requests += sign * other.#requests;
    this.#errors += sign * other.#errors;
    this.#clientErrors += sign * other.#clientErrors;
    this.#canceled += sign * other.#canceled;
    this.#outputTokens += sign * other.#outputTokens;
    this.#gpuRequests += sign * other.#gpuRequests;
    this.#gpuSeconds += sign * other.#gpuSeconds;
  }

  /** The figures of an interval of this length. Rates divide by at least one second. */
  toTraffic(seconds: number): Traffic {
    const perSecond = (count: number): number => count / Math.max(seconds, 1);
    return {
      requests: this.#requests,
      errors: this.#errors,
      clientErrors: this.#clientErrors,
      canceled: this.#canceled,
      requestsPerSecond: perSecond(this.#requests),
      // A sum beyond 2^53 is not exact, and neither is what is left of it.
      outputTokensPerSecond: perSecond(Math.max(0, this.#outputTokens)),
      // What is left after sums were taken away can be a little below zero.
      gpuSeconds: this.#gpuRequests === 0 ? null : Math.max(0, this.#gpuSeconds),
      ttftP50Ms: this.#ttft.quantile(0.5),
      ttftP95Ms: this.#ttft.quantile(0.95),
      latencyP50Ms: this.#latency.quantile(0.5),
      latencyP95Ms: this.#latency.quantile(0.95),
    };
  }
}
