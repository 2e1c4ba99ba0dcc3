/** Something with a deadline. */
export interface Timed {
  /** The deadline in the time of `performance.now()`; Infinity when there is none. */
  deadlineMs: number;
  /** Its index in the clock that watches it; -1 if none does. Only the clock writes it. */
  clockIndex: number;
  /** Called when the deadline has passed. The deadline is Infinity by then. */
  onDeadline(): void;
}

/** The source of time. A simulation replaces it. */
export interface TimeSource {
  /** Monotonic milliseconds. */
  nowMs(): number;
  /** Calls back repeatedly until the returned function is called. */
  every(intervalMs: number, callback: () => void): () => void;
  /** Calls back when everything that has arrived so far has been read. */
  afterReads(callback: () => void): void;
}

/** The time of the operating system. */
const SYSTEM_TIME: TimeSource = {
  nowMs: () => performance.now(),
  every(intervalMs, callback) {
    const timer = setInterval(callback, intervalMs).unref();
    return () => clearInterval(timer);
  },
  // The event loop reads sockets between timers and immediates.
  afterReads: (callback) => void setImmediate(callback),
};

/**
 * One coarse clock for all connections of a thread, instead of a timer per request: moving a deadline is one write to a
 * number. A deadline is noticed up to one tick late, never early.
 */
export class DeadlineClock {
  readonly #time: TimeSource;
  readonly #watched: Timed[] = [];
  #tickMs: number;
  #stop: (() => void) | null = null;
  #cachedNowMs: number;

  constructor(tickMs: number, time: TimeSource = SYSTEM_TIME) {
    this.#tickMs = tickMs;
    this.#time = time;
    this.#cachedNowMs = time.nowMs();
  }

  /** The exact time in monotonic milliseconds. Call it when something has arrived. */
  nowMs(): number {
    this.#cachedNowMs = this.#time.nowMs();
    return this.#cachedNowMs;
  }

  /** The last result of `nowMs`. It is accurate enough for a deadline and costs nothing. */
  get cachedNowMs(): number {
    return this.#cachedNowMs;
  }

  /** Changes how often deadlines are checked. */
  setTick(tickMs: number): void {
    if (tickMs === this.#tickMs) return;
    this.#tickMs = tickMs;
    if (this.#stop === null) return;
    this.#stop();
    this.#stop = this.#time.every(tickMs, () => this.#tick());
  }

  /** Watches a deadline until `unwatch`. */
  watch(timed: Timed): void {
    if (timed.clockIndex !== -1) return;
    timed.clockIndex = this.#watched.push(timed) - 1;
    this.#stop ??= this.#time.every(this.#tickMs, () => this.#tick());
  }

  /** Stops watching. The last entry moves to the free place. */
  unwatch(timed: Timed): void {
    if (timed.clockIndex === -1) return;
    const last = this.#watched.pop();
    if (last !== undefined && last !== timed) {
      last.clockIndex = timed.clockIndex;
      this.#watched[last.clockIndex] = last;
    }
    timed.clockIndex = -1;
    if (this.#watched.length > 0) return;
    this.#stop?.();
    this.#stop = null;
  }

  #tick(): void {
    const nowMs = this.nowMs();
    const due = this.#watched.filter(({ deadlineMs }) => deadlineMs <= nowMs);
    // After a stall, the awaited bytes may already be in the socket. They are read first.
    if (due.length > 0) this.#time.afterReads(() => this.#expire(due));
  }

  #expire(due: readonly Timed[]): void {
    const nowMs = this.nowMs();
    for (const timed of due) {
      if (timed.clockIndex === -1 || timed.deadlineMs > nowMs) continue;
      timed.deadlineMs = Number.POSITIVE_INFINITY;
      timed.onDeadline();
    }
  }
}

/** How often to check deadlines, so that the shortest time-out is at most a tenth late. */
export function toTickMs(timeoutsMs: readonly number[]): number {
  const shortestMs = Math.min(...timeoutsMs.filter((timeoutMs) => timeoutMs > 0));
  return Math.min(500, Math.max(5, Math.floor(shortestMs / 10)));
}
