import type { ExportStats } from '#otel/queue';
import { type EventLoopShare, EventLoopShares, type EventLoopTime } from '../event-loop-shares.ts';
import { HISTORY_SLICES, SLICE_MS, toSliceIndex } from './slices.ts';
import type { Traffic } from './tally.ts';
import { type LastMinute, type TrafficFacts, TrafficWindow } from './traffic-window.ts';

/** Values that are sampled, because their changes are not reported. */
export interface Gauges {
  readonly stats: ExportStats;
  /** Requests in flight on all replicas. */
  readonly inflight: number;
  /** The numbers of GPUs of the replicas whose number is known. */
  readonly gpuCounts: ReadonlyMap<string, number>;
  /** The times of the workers that run. */
  readonly eventLoops: readonly EventLoopTime[];
}

/** The figures of one slice of the past. */
export interface PastSlice extends Traffic {
  /** The time since the slice ended. */
  readonly agoMs: number;
  /** The value at the last sample of the slice. */
  readonly inflight: number;
  readonly queued: number;
}

/** Whether the collector accepts records, derived from the export counters, and since when (RFC 3339). */
interface CollectorState {
  /** `idle`: nothing was sent yet. `refusing`: it rejects records permanently. `failing`: export calls fail. */
  readonly kind: 'idle' | 'taking' | 'refusing' | 'failing';
  readonly since: string;
  /** Export calls that have failed since then. */
  readonly failedCalls: number;
}

/** What the dashboard shows about traffic and export. */
export interface Figures extends LastMinute {
  readonly collector: CollectorState;
  /** How busy the workers were in the last five seconds. */
  readonly eventLoops: readonly EventLoopShare[];
  /** Oldest first, whole slices only. */
  readonly history: readonly PastSlice[];
}

interface Sample {
  readonly sliceIndex: number;
  readonly stats: ExportStats;
  readonly inflight: number;
}

/** The figures of the last minutes. Times are milliseconds of a monotonic clock; `time` is RFC 3339. */
export class LiveFigures {
  readonly #window: TrafficWindow;
  /** The last sample of each slice, newest last. */
  readonly #samples: Sample[];
  readonly #eventLoops = new EventLoopShares();
  #collector: CollectorState;

  constructor(
    { stats, inflight, gpuCounts, eventLoops }: Gauges,
    at: { readonly nowMs: number; readonly time: string },
  ) {
    this.#window = new TrafficWindow(at.nowMs);
    this.#window.useGpuCounts(gpuCounts, at.nowMs);
    this.#samples = [{ stats, inflight, sliceIndex: toSliceIndex(at.nowMs) }];
    this.#eventLoops.sample(eventLoops, at.nowMs);
    this.#collector = { kind: 'idle', since: at.time, failedCalls: 0 };
  }

  /** Counts a request that has just ended. */
  add(record: TrafficFacts, nowMs: number): void {
    this.#window.add(record, nowMs);
  }

  /** Records the current gauges. */
  sample(
    { stats, inflight, gpuCounts, eventLoops }: Gauges,
    { nowMs, time }: { readonly nowMs: number; readonly time: string },
  ): void {
    const last = this.#samples.at(-1);
    const sliceIndex = toSliceIndex(nowMs);
    if (last !== undefined) {
      const change = { before: last.stats, now: stats, time };
      this.#collector = nextCollectorState(this.#collector, change);
      if (last.sliceIndex === sliceIndex) this.#samples.pop();
    }
    this.#samples.push({ stats, inflight, sliceIndex });
    this.#eventLoops.sample(eventLoops, nowMs);
    this.#window.useGpuCounts(gpuCounts, nowMs);
    if (this.#samples.length > HISTORY_SLICES + 1) this.#samples.shift();
  }

  /** The current and past figures. */
  figures(nowMs: number): Figures {
    const current = toSliceIndex(nowMs);
    const past = this.#samples.filter(({ sliceIndex }) => sliceIndex < current);
    return {
      ...this.#window.lastMinute(nowMs),
      collector: this.#collector,
      eventLoops: this.#eventLoops.shares(),
      history: past.map(({ sliceIndex, stats, inflight }) => ({
        ...this.#window.slice(sliceIndex),
        agoMs: nowMs - (sliceIndex + 1) * SLICE_MS,
        inflight,
        queued: stats.queued,
      })),
    };
  }
}

type Counters = Pick<ExportStats, 'exported' | 'rejected' | 'failedCalls'>;

/** The state after the counters changed from `before` to `now`. Accepted records outweigh failed calls. */
function nextCollectorState(
  state: CollectorState,
  { before, now, time }: { readonly before: Counters; readonly now: Counters; readonly time: string },
): CollectorState {
  const kind = toKind(before, now) ?? state.kind;
  const failedCalls = now.failedCalls - before.failedCalls;
  return kind === state.kind
    ? { ...state, failedCalls: state.failedCalls + failedCalls }
    : { kind, since: time, failedCalls };
}

/** The state between two counts; null if no export was tried. */
function toKind(before: Counters, now: Counters): CollectorState['kind'] | null {
  if (now.exported > before.exported) return 'taking';
  if (now.rejected > before.rejected) return 'refusing';
  return now.failedCalls > before.failedCalls ? 'failing' : null;
}

const SAMPLE_MS = 1_000;

const withoutCost = ({ cost: _, ...record }: TrafficFacts): TrafficFacts => record;

/** Starts to collect figures, with costs in one currency. Calls `readGauges` once per second. */
export function startLiveFigures(currency: string, readGauges: () => Gauges) {
  const now = () => ({ nowMs: performance.now(), time: new Date().toISOString() });
  const live = new LiveFigures(readGauges(), now());
  const sample = () => live.sample(readGauges(), now());
  const timer = setInterval(sample, SAMPLE_MS).unref();
  return {
    /** Counts a request that has just ended. One in the background may have begun before a restart with another currency. */
    add: (record: TrafficFacts) =>
      live.add((record.currency ?? currency) === currency ? record : withoutCost(record), performance.now()),
    /** The current and past figures. */
    figures() {
      sample();
      return live.figures(performance.now());
    },
    stop: () => clearInterval(timer),
  };
}
