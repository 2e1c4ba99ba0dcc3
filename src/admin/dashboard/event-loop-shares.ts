/** How long the event loop of a worker has run callbacks and waited, since its thread started: milliseconds. */
export interface EventLoopTime {
  /** The number of the worker, from 1. */
  readonly worker: number;
  readonly activeMs: number;
  readonly idleMs: number;
}

/** How busy the event loop of a worker was, from 0 (idle) to 1 (it never waited). */
export interface EventLoopShare {
  readonly worker: number;
  readonly share: number;
}

/** The shares are those of about the last five seconds. */
const WINDOW_MS = 5_000;
/** Readings at shorter intervals are not kept. */
const INTERVAL_MS = 900;

interface Reading {
  readonly nowMs: number;
  readonly times: readonly EventLoopTime[];
}

/** Computes how busy event loops are from readings of their times. `nowMs` is on a monotonic clock. */
export class EventLoopShares {
  /** The newest is last. */
  readonly #kept: Reading[] = [];
  #latest: Reading | null = null;

  /** Takes a reading. Call it at least once per second. */
  sample(times: readonly EventLoopTime[], nowMs: number): void {
    this.#latest = { nowMs, times };
    const newest = this.#kept.at(-1);
    if (newest !== undefined && nowMs - newest.nowMs < INTERVAL_MS) return;
    this.#kept.push(this.#latest);
    while (nowMs - (this.#kept[1]?.nowMs ?? nowMs) >= WINDOW_MS) this.#kept.shift();
  }

  /** The shares of the workers in the last reading. */
  shares(): readonly EventLoopShare[] {
    const before = this.#kept[0]?.times ?? [];
    return (this.#latest?.times ?? []).map((time) => ({
      worker: time.worker,
      share: toShare(
        time,
        before.find(({ worker }) => worker === time.worker),
      ),
    }));
  }
}

/** A thread that replaced another starts with times of zero. */
function toShare(now: EventLoopTime, before: EventLoopTime | undefined): number {
  const isSameThread = before !== undefined && before.activeMs <= now.activeMs && before.idleMs <= now.idleMs;
  const activeMs = now.activeMs - (isSameThread ? before.activeMs : 0);
  const idleMs = now.idleMs - (isSameThread ? before.idleMs : 0);
  return activeMs + idleMs > 0 ? Math.min(1, Math.max(0, activeMs / (activeMs + idleMs))) : 0;
}
