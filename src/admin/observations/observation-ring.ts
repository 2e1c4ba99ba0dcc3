import type { RequestRecord } from '#otel/record/registry';
import type { Observation } from '#verdict';
import { type OutcomeReading, toObservations } from './to-observations.ts';

/**
 * A 4xx status of a replica counts as an error: a replica that refuses what its peers take is wrong, and what all of
 * them refuse is no difference. So does a connection that it refuses: it was ready when its comparison began.
 */
const READING: OutcomeReading = {
  success: 'ok',
  error: 'error',
  not_connected: 'error',
  loading: null,
  client_error: 'error',
  canceled: 'unclear',
  repeated: null,
  other: 'unclear',
};

/** Attempts that are kept: at 1,000 per second those of a minute. Each takes about 200 bytes. */
const CAPACITY = 65_536;

/** How long after a call the gateway goes on, for the next one. */
const KEPT_AFTER_CALL_MS = 60_000;

/** The most attempts in one answer. */
const MAX_ANSWER = 10_000;

/** What a call gets. */
export interface ObservationPage {
  readonly observations: readonly Observation[];
  /** The number of the last one, or of the newest if there is none. The next call names it. */
  readonly last: number;
  /** How many came after the number that the call named, but are not kept any more. */
  readonly missed: number;
}

/**
 * The facts of the latest attempts, for comparisons of replicas. It keeps nothing until somebody asks, and stops a minute
 * after the last call. The attempts are numbered from 1 in the order in which their requests ended.
 */
export class ObservationRing {
  readonly #nowMs: () => number;
  #kept: Observation[] = [];
  /** The number of the oldest that is kept. */
  #first = 1;
  #calledAtMs = Number.NEGATIVE_INFINITY;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Takes the record of a request that has ended. */
  add(record: Readonly<RequestRecord>): void {
    if (this.#calledAtMs === Number.NEGATIVE_INFINITY) return;
    if (this.#nowMs() - this.#calledAtMs > KEPT_AFTER_CALL_MS) {
      this.#calledAtMs = Number.NEGATIVE_INFINITY;
      this.#dropOldest(this.#kept.length);
      return;
    }
    for (const observation of toObservations(record, READING)) this.#kept.push(observation);
    // Now and then, because it moves all others.
    if (this.#kept.length >= 2 * CAPACITY) this.#dropOldest(this.#kept.length - CAPACITY);
  }

  /** Those after this number, oldest first. The first call begins to keep them, and finds none. */
  after(number: number): ObservationPage {
    this.#calledAtMs = this.#nowMs();
    const newest = this.#first + this.#kept.length - 1;
    const from = Math.max(number + 1, this.#first);
    const observations = this.#kept.slice(from - this.#first, from - this.#first + MAX_ANSWER);
    const last = observations.length === 0 ? newest : from + observations.length - 1;
    return { observations, last, missed: Math.max(0, Math.min(from, newest + 1) - number - 1) };
  }

  #dropOldest(count: number): void {
    this.#kept = this.#kept.slice(count);
    this.#first += count;
  }
}
