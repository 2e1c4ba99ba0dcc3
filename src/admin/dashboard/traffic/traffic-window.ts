import {
  type RequestOutcome,
  toFailedAttemptOutcome,
  toLastAttemptOutcome,
  toMsBeforeLastAttempt,
  toOutcome,
} from '#otel/outcome';
import type { RequestRecord } from '#otel/record/registry';
import { toBucket } from './duration-histogram.ts';
import { type CountedReason, FailureReasons } from './failure-reasons.ts';
import { GpuTimeSlices } from './gpu-time-slices.ts';
import { HISTORY_SLICES, SLICE_MS, SlicedTally, toSliceIndex, WINDOW_SLICES } from './slices.ts';
import { type CountedRequest, type ReplicaFigures, Tally, type Traffic } from './tally.ts';
import { OTHER_NAMES, TopNames } from './top-names.ts';

/** The fields of a record that the window uses. */
export type TrafficFacts = Pick<
  RequestRecord,
  | 'replica'
  | 'model'
  | 'tenant'
  | 'status'
  | 'error_type'
  | 'truncated'
  | 'ttft_ms'
  | 'e2e_ms'
  | 'completion_tokens'
  | 'gpu_seconds'
  | 'cost'
  | 'currency'
  | 'background_ms'
  | 'attempts'
  | 'failed_attempts'
  | 'queue_ms'
>;

/** The figures of a name. */
export interface NamedTraffic {
  readonly name: string;
  readonly traffic: Traffic;
}

/** The figures of a replica. Its times have no part that went before its attempt. */
export interface ReplicaTraffic {
  readonly traffic: ReplicaFigures;
  readonly trend: TrendFigures;
}

/** The figures of the last minute. */
export interface LastMinute {
  readonly total: Traffic;
  /** The replicas that had attempts in the last five minutes. */
  readonly byReplica: ReadonlyMap<string, ReplicaTraffic>;
  /** Most requests first, at most 50 and then `_OTHER`. */
  readonly byModel: readonly NamedTraffic[];
  readonly byTenant: readonly NamedTraffic[];
  /** Most frequent first, at most 50. */
  readonly failureReasons: readonly CountedReason[];
}

const MAX_LISTED_REASONS = 50;

interface ReplicaCounts {
  readonly slices: SlicedTally;
  readonly trend: Trend;
}

/**
 * The requests that ended recently: all, and by model and tenant; by replica, their attempts. A request adds a few
 * numbers to the slice in which it ends; figures are computed on demand. Times are on a monotonic clock.
 *
 * Memory depends only on the number of replicas: at most 26 kB for each that had attempts in the last five minutes, and
 * 7 MB for all else.
 */
export class TrafficWindow {
  readonly #startedAtMs: number;
  #current: number;
  readonly #total = new SlicedTally(WINDOW_SLICES);
  /** The slices that have ended. */
  readonly #history = new SlicedTally(HISTORY_SLICES);
  readonly #replicas = new Map<string, ReplicaCounts>();
  readonly #models = new TopNames();
  readonly #tenants = new TopNames();
  readonly #failureReasons = new FailureReasons();
  readonly #gpuTime = new GpuTimeSlices();

  constructor(startedAtMs: number) {
    this.#startedAtMs = startedAtMs;
    this.#current = toSliceIndex(startedAtMs);
  }

  /** Counts a request that has just ended. */
  add(facts: TrafficFacts, nowMs: number): void {
    const slice = toSliceIndex(nowMs);
    if (slice !== this.#current) this.#advanceTo(slice);
    const { replica, model, tenant } = facts;
    const outcome = toOutcome(facts);
    const request = toCounted(facts, outcome);
    this.#total.at(slice).add(request);
    this.#addToReplicas(facts, slice, request);
    const shownModel = model === undefined ? null : this.#models.add(model, slice, request);
    const shownTenant = tenant === undefined ? null : this.#tenants.add(tenant, slice, request);
    if (facts.gpu_seconds !== undefined) this.#addGpuTime(facts, { shownModel, shownTenant }, nowMs);
    if (outcome !== 'error' && outcome !== 'client_error') return;
    const code = facts.error_type ?? (facts.status >= 400 ? String(facts.status) : OTHER_NAMES);
    const reason = { code, status: facts.status, replica: replica ?? null, model: shownModel };
    this.#failureReasons.add(reason, slice);
  }

  /** Takes the numbers of GPUs of the replicas that have any. */
  useGpuCounts(gpuCounts: ReadonlyMap<string, number>, nowMs: number): void {
    this.#gpuTime.configure(gpuCounts, nowMs);
  }

  /** The figures of the last minute. */
  lastMinute(nowMs: number): LastMinute {
    const current = toSliceIndex(nowMs);
    this.#advanceTo(current);
    const first = current - WINDOW_SLICES + 1;
    const seconds = (nowMs - Math.max(first * SLICE_MS, this.#startedAtMs)) / 1000;
    const toNamed = (names: TopNames) =>
      names.sumsUntil(current).map(([name, sum]) => ({ name, traffic: sum.toTraffic(seconds) }));
    return {
      total: this.#total.sumUntil(current).toTraffic(seconds),
      byReplica: new Map(
        [...this.#replicas].map(([name, { slices, trend }]) => [
          name,
          { traffic: slices.sumUntil(current).toReplicaFigures(seconds), trend: trend.figures(current) },
        ]),
      ),
      byModel: toNamed(this.#models),
      byTenant: toNamed(this.#tenants),
      failureReasons: this.#failureReasons.listFrom(first, MAX_LISTED_REASONS),
    };
  }

  /** The figures of one complete slice; zero or null if no request ended in it. */
  slice(index: number): Traffic {
    const tally = this.#history.find(index) ?? this.#total.find(index) ?? new Tally();
    return tally.toTraffic(SLICE_MS / 1000);
  }

  /** Counts the GPU time and the cost of a request, which was counted before, in the slices in which it was used. */
  #addGpuTime(
    { replica, gpu_seconds = 0, cost: wholeCost = 0, e2e_ms, background_ms = e2e_ms }: TrafficFacts,
    { shownModel, shownTenant }: { readonly shownModel: string | null; readonly shownTenant: string | null },
    nowMs: number,
  ): void {
    const used = { replica, seconds: gpu_seconds, durationMs: background_ms };
    const slices = replica === undefined ? undefined : this.#replicas.get(replica)?.slices;
    this.#gpuTime.spread(used, nowMs, (slice, seconds) => {
      const cost = (wholeCost * seconds) / gpu_seconds;
      this.#total.addGpuTime(slice, seconds, cost);
      if (slice < this.#current) this.#history.addGpuTime(slice, seconds, cost);
      slices?.addGpuTime(slice, seconds, cost);
      if (shownModel !== null) this.#models.addGpuTime(shownModel, slice, seconds, cost);
      if (shownTenant !== null) this.#tenants.addGpuTime(shownTenant, slice, seconds, cost);
    });
  }

  /** Counts each attempt at its replica, and the request at that of the last one. */
  #addToReplicas(facts: TrafficFacts, slice: number, request: CountedRequest): void {
    const { replica, failed_attempts = [] } = facts;
    for (const failed of failed_attempts) {
      const attempt = { ...FAILED_ATTEMPT, outcome: toFailedAttemptOutcome(failed) };
      this.#slicesOf(failed.replica).at(slice).add(attempt);
    }
    if (replica !== undefined) this.#slicesOf(replica).at(slice).add(toLastAttempt(facts, request));
  }

  #slicesOf(replica: string): SlicedTally {
    let counts = this.#replicas.get(replica);
    if (counts === undefined) {
      counts = { slices: new SlicedTally(WINDOW_SLICES), trend: new Trend() };
      this.#replicas.set(replica, counts);
    }
    return counts.slices;
  }

  /** Ends the slices before this one. Forgets replicas without attempts: they may be configured no more. */
  #advanceTo(slice: number): void {
    const ended = this.#current;
    if (ended === slice) return;
    this.#current = slice;
    const total = this.#total.find(ended);
    if (total !== undefined) this.#history.at(ended).merge(total);
    this.#models.endSlice(ended);
    this.#tenants.endSlice(ended);
    for (const [name, { slices, trend }] of this.#replicas) {
      const tally = slices.find(ended);
      if (tally !== undefined) trend.endSlice(ended, tally);
      if (slices.newest < slice - HISTORY_SLICES) this.#replicas.delete(name);
    }
  }
}

/** What is counted of an attempt that failed, besides its outcome. */
const FAILED_ATTEMPT = {
  isRequest: false,
  outputTokens: 0,
  hasGpuTime: false,
  currency: null,
  ttftBucket: -1,
  latencyBucket: -1,
} as const;

function toCounted(facts: TrafficFacts, outcome: RequestOutcome): CountedRequest {
  const { completion_tokens, gpu_seconds, cost, currency = '' } = facts;
  return {
    outcome,
    isRequest: true,
    outputTokens: completion_tokens ?? 0,
    hasGpuTime: gpu_seconds !== undefined,
    currency: cost === undefined ? null : currency,
    ...toBuckets(facts, outcome, 0),
  };
}

/** What is counted of a request at the replica of its last attempt. */
function toLastAttempt(facts: TrafficFacts, request: CountedRequest): CountedRequest {
  const outcome = toLastAttemptOutcome(facts);
  const beforeMs = toMsBeforeLastAttempt(facts);
  if (outcome === request.outcome && beforeMs === 0) return request;
  return { ...request, outcome, ...toBuckets(facts, outcome, beforeMs) };
}

/** The buckets of the times of a success, without what went before. */
function toBuckets(
  { ttft_ms, e2e_ms }: TrafficFacts,
  outcome: CountedRequest['outcome'],
  beforeMs: number,
): Pick<CountedRequest, 'ttftBucket' | 'latencyBucket'> {
  const isSuccess = outcome === 'success';
  return {
    ttftBucket: isSuccess && ttft_ms !== undefined ? toBucket(ttft_ms - beforeMs) : -1,
    latencyBucket: isSuccess ? toBucket(e2e_ms - beforeMs) : -1,
  };
}

/** Two counts for each complete slice of the last five minutes, oldest first. */
interface TrendFigures {
  readonly attempts: readonly number[];
  readonly errors: readonly number[];
}

/** The attempts at a replica and its errors of the last five minutes in 480 bytes. Slices are given in ascending order. */
export class Trend {
  readonly #attempts = new Uint32Array(HISTORY_SLICES);
  readonly #errors = new Uint32Array(HISTORY_SLICES);
  #newest = -1;

  /** Takes the counts of a slice that has ended. */
  endSlice(slice: number, counts: { readonly attempts: number; readonly errors: number }): void {
    const skipped = Math.min(slice - this.#newest, HISTORY_SLICES);
    for (let back = 1; back < skipped; back++) this.#write(slice - back, { attempts: 0, errors: 0 });
    this.#write(slice, counts);
    this.#newest = slice;
  }

  /** The counts of the slices before `current`. */
  figures(current: number): TrendFigures {
    const first = current - HISTORY_SLICES;
    return { attempts: this.#read(this.#attempts, first), errors: this.#read(this.#errors, first) };
  }

  #read(counts: Uint32Array, first: number): readonly number[] {
    const read: number[] = [];
    for (let slice = first; slice < first + HISTORY_SLICES; slice++) {
      const isKept = slice >= 0 && slice <= this.#newest;
      read.push(isKept ? (counts[slice % HISTORY_SLICES] ?? 0) : 0);
    }
    return read;
  }

  #write(slice: number, { attempts, errors }: { readonly attempts: number; readonly errors: number }): void {
    if (slice < 0) return;
    this.#attempts[slice % HISTORY_SLICES] = attempts;
    this.#errors[slice % HISTORY_SLICES] = errors;
  }
}
