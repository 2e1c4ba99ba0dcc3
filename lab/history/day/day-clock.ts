import { setEnvironmentData } from 'node:worker_threads';
import { CLOCK } from './clock-preload.ts';

/**
 * The time of this process and of its threads: it stands still until it is moved. Timers of the main thread run when it
 * passes them.
 */
export class DayClock {
  readonly #epoch = new Float64Array(new SharedArrayBuffer(Float64Array.BYTES_PER_ELEMENT));
  readonly #timers = new Set<Timer>();
  /** Milliseconds since the day began. */
  #nowMs: number;
  /** What the clock on the wall would have shown then. */
  #startMs: number;

  constructor(nowMs: number, startMs: number) {
    this.#nowMs = nowMs;
    this.#startMs = startMs;
    setEnvironmentData(CLOCK, this.#epoch);
    const setTimer = (isRepeated: boolean) => (run: () => void, ms: number) => {
      const timer = new Timer(this.#nowMs + ms, isRepeated ? ms : null, run);
      this.#timers.add(timer);
      return timer;
    };
    const clearTimer = (timer: Timer) => void this.#timers.delete(timer);
    Object.assign(globalThis, {
      setTimeout: setTimer(false),
      clearTimeout: clearTimer,
      setInterval: setTimer(true),
      clearInterval: clearTimer,
    });
    Date.now = () => this.epochMs;
    this.#show();
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  get epochMs(): number {
    return this.#startMs + this.#nowMs;
  }

  /** Somebody sets the clock on the wall. */
  set(startMs: number): void {
    this.#startMs = startMs;
    this.#show();
  }

  /** Moves to the next timer that is due by then, and runs it; else moves there. Returns whether there was one. */
  move(untilMs: number): boolean {
    const [next] = [...this.#timers].sort((a, b) => a.atMs - b.atMs);
    const isDue = next !== undefined && next.atMs <= untilMs;
    this.#nowMs = Math.max(this.#nowMs, isDue ? next.atMs : untilMs);
    this.#show();
    if (!isDue) return false;
    if (next.everyMs === null) this.#timers.delete(next);
    else next.atMs += next.everyMs;
    next.run();
    return true;
  }

  #show(): void {
    this.#epoch[0] = this.epochMs;
  }
}

/** As much of a timer of Node as is used. */
class Timer {
  atMs: number;
  /** Null: it runs once. */
  readonly everyMs: number | null;
  readonly run: () => void;

  constructor(atMs: number, everyMs: number | null, run: () => void) {
    this.atMs = atMs;
    this.everyMs = everyMs;
    this.run = run;
  }

  unref(): this {
    return this;
  }
}
