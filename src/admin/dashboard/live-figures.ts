import type { ExportStats } from '#otel/queue/export-stats.ts';
import { type CollectorState, nextCollectorState } from './collector-state.ts';
import {
  HISTORY_SLICES,
  SLICE_MS,
  type Traffic,
  type TrafficFacts,
  TrafficWindow,
  toSliceIndex,
} from './traffic-window.ts';

/** What is looked at from time to time, since nobody tells of its changes. */
export interface Gauges {
  readonly stats: ExportStats;
  /** Requests in flight on all replicas. */
  readonly inflight: number;
}

/** The figures of one slice of the past. */
export interface PastSlice extends Traffic {
  /** How long ago the slice ended. */
  readonly agoMs: number;
  /** At its end, or when it was looked at last. */
  readonly inflight: number;
  readonly queued: number;
}

/** What the dashboard shows of the traffic and the export. */
export interface Figures {
  readonly total: Traffic;
  readonly byReplica: ReadonlyMap<string, Traffic>;
  readonly collector: CollectorState;
  /** Oldest first, whole slices only. */
  readonly history: readonly PastSlice[];
}

interface Sample extends Gauges {
  readonly sliceIndex: number;
}

/** Keeps the figures of the last minutes. Times are in milliseconds of a monotonic clock, `time` is RFC 3339. */
export class LiveFigures {
  readonly #window: TrafficWindow;
  /** The last sample of each slice, newest last. */
  readonly #samples: Sample[];
  #collector: CollectorState;

  constructor(gauges: Gauges, at: { readonly nowMs: number; readonly time: string }) {
    this.#window = new TrafficWindow(at.nowMs);
    this.#samples = [{ ...gauges, sliceIndex: toSliceIndex(at.nowMs) }];
    this.#collector = { kind: 'idle', since: at.time, failedCalls: 0 };
  }

  /** Counts a request that has just ended. */
  add(record: TrafficFacts, nowMs: number): void {
    this.#window.add(record, nowMs);
  }

  /** Notes how things stand. */
  sample(gauges: Gauges, { nowMs, time }: { readonly nowMs: number; readonly time: string }): void {
    const last = this.#samples.at(-1);
    const sliceIndex = toSliceIndex(nowMs);
    if (last !== undefined) {
      const change = { before: last.stats, now: gauges.stats, time };
      this.#collector = nextCollectorState(this.#collector, change);
      if (last.sliceIndex === sliceIndex) this.#samples.pop();
    }
    this.#samples.push({ ...gauges, sliceIndex });
    if (this.#samples.length > HISTORY_SLICES + 1) this.#samples.shift();
  }

  /** How things are, and were. */
  figures(nowMs: number): Figures {
    const current = toSliceIndex(nowMs);
    const past = this.#samples.filter(({ sliceIndex }) => sliceIndex < current);
    return {
      ...this.#window.lastMinute(nowMs),
      collector: this.#collector,
      history: past.map(({ sliceIndex, stats, inflight }) => ({
        ...this.#window.slice(sliceIndex),
        agoMs: nowMs - (sliceIndex + 1) * SLICE_MS,
        inflight,
        queued: stats.queued,
      })),
    };
  }
}

/** The figures of a gateway that runs. */
export interface RunningFigures {
  /** Counts a request that has just ended. */
  add(record: TrafficFacts): void;
  /** How things are, and were. */
  figures(): Figures;
  stop(): void;
}

const SAMPLE_MS = 1_000;

/** Begins to keep figures. `readGauges` is called once a second. */
export function startLiveFigures(readGauges: () => Gauges): RunningFigures {
  const now = () => ({ nowMs: performance.now(), time: new Date().toISOString() });
  const live = new LiveFigures(readGauges(), now());
  const sample = () => live.sample(readGauges(), now());
  const timer = setInterval(sample, SAMPLE_MS).unref();
  return {
    add: (record) => live.add(record, performance.now()),
    figures() {
      sample();
      return live.figures(performance.now());
    },
    stop: () => clearInterval(timer),
  };
}
