/** Something that waits for something else, and not for ever. */
export interface Timed {
  /** When the wait is over, on the clock of `performance.now()`; Infinity while there is nothing to wait for. */
  deadlineMs: number;
  /** Its place in the clock that watches it; -1: none does. Written by the clock alone. */
  clockIndex: number;
  /** Called when the deadline has passed; the deadline is Infinity then. */
  onDeadline(): void;
}

/** Where the time comes from. Replaced by a simulation. */
export interface TimeSource {
  /** Monotonic milliseconds. */
  nowMs(): number;
  /** Calls back again and again until the returned function is called. */
  every(intervalMs: number, callback: () => void): () => void;
  /** Calls back when what has arrived by now was read. */
  afterReads(callback: () => void): void;
}

/** The system's time. */
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
 * One coarse clock for all connections of a thread, in place of a timer per request: to move a deadline is to write a
 * number. A deadline is noticed up to one tick late, never early.
 */
export class DeadlineClock {
  readonly #time: TimeSource;
  readonly #watched: Timed[] = [];
  #tickMs: number;
  #stop: (() => void) | null = null;
  #recentMs: number;

  constructor(tickMs: number, time: TimeSource = SYSTEM_TIME) {
    this.#tickMs = tickMs;
    this.#time = time;
    this.#recentMs = time.nowMs();
  }

  /** Monotonic milliseconds, exact. To be called when something has arrived. */
  nowMs(): number {
    this.#recentMs = this.#time.nowMs();
    return this.#recentMs;
  }

  /** What `nowMs` said last: good enough for a deadline, and free. */
  get recentMs(): number {
    return this.#recentMs;
  }

  /** Changes how often deadlines are looked at. */
  setTick(tickMs: number): void {
    if (tickMs === this.#tickMs) return;
    this.#tickMs = tickMs;
    if (this.#stop === null) return;
    this.#stop();
    this.#stop = this.#time.every(tickMs, () => this.#tick());
  }

  /** Watches the deadlines of a thing until `unwatch`. */
  watch(timed: Timed): void {
    if (timed.clockIndex !== -1) return;
    timed.clockIndex = this.#watched.push(timed) - 1;
    this.#stop ??= this.#time.every(this.#tickMs, () => this.#tick());
  }

  /** Stops watching; the last one moves to its place. */
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
    // After a stall, what is waited for may lie in the socket already: it is read first.
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

/** How often deadlines have to be looked at so that the shortest of these is at most a tenth late. */
export function toTickMs(timeoutsMs: readonly number[]): number {
  const shortestMs = Math.min(...timeoutsMs.filter((timeoutMs) => timeoutMs > 0));
  return Math.min(500, Math.max(5, Math.floor(shortestMs / 10)));
}
