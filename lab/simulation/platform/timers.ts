import type { Chance } from '../engine/chance.ts';
import type { ScheduledEvent } from '../engine/schedule.ts';

/** The thread of the timers: its events and its luck. */
export interface TimerThread {
  readonly chance: Chance;
  readonly timers: Timers;
  later(label: string, delayMs: number, run: () => void): ScheduledEvent;
  next(label: string, run: () => void): ScheduledEvent;
  cancel(event: ScheduledEvent): void;
}

type Callback = (...args: never[]) => void;

/** What setTimeout and setInterval return. */
export class SimulatedTimeout {
  readonly #thread: TimerThread;
  readonly #callback: () => void;
  readonly delayMs: number;
  readonly repeats: boolean;
  #event: ScheduledEvent | null = null;
  #hasRef = true;

  constructor(thread: TimerThread, callback: () => void, delayMs: number, repeats: boolean) {
    this.#thread = thread;
    this.#callback = callback;
    // As in Node: at least 1 ms, and whole milliseconds.
    this.delayMs = delayMs >= 1 && delayMs <= 2 ** 31 - 1 ? Math.trunc(delayMs) : 1;
    this.repeats = repeats;
    this.refresh();
  }

  get isPending(): boolean {
    return this.#event !== null;
  }

  refresh(): this {
    this.#stop();
    this.#event = this.#thread.later(this.repeats ? 'interval' : 'timeout', this.delayMs, () => {
      this.#event = null;
      if (this.repeats) this.refresh();
      else this.#thread.timers.pending.delete(this);
      this.#callback();
    });
    this.#thread.timers.pending.add(this);
    return this;
  }

  close(): this {
    this.#stop();
    return this;
  }

  ref(): this {
    this.#hasRef = true;
    return this;
  }

  unref(): this {
    this.#hasRef = false;
    return this;
  }

  hasRef(): boolean {
    return this.#hasRef;
  }

  [Symbol.dispose](): void {
    this.#stop();
  }

  #stop(): void {
    if (this.#event !== null) this.#thread.cancel(this.#event);
    this.#event = null;
    this.#thread.timers.pending.delete(this);
  }
}

/** What setImmediate returns. */
class SimulatedImmediate {
  run: (() => void) | null;

  constructor(run: () => void) {
    this.run = run;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  [Symbol.dispose](): void {
    this.run = null;
  }
}

/** The longest time that the sockets of a thread are read before its immediates run. */
const LONGEST_POLL_MS = 0.3;

/** The timers of a thread, in simulated time. */
export class Timers {
  /** The timers that will call back. */
  readonly pending = new Set<SimulatedTimeout>();
  readonly #thread: TimerThread;
  #immediates: SimulatedImmediate[] = [];
  #isCheckScheduled = false;

  constructor(thread: TimerThread) {
    this.#thread = thread;
  }

  readonly setTimeout = (callback: Callback, delayMs = 1, ...args: never[]): SimulatedTimeout =>
    new SimulatedTimeout(this.#thread, () => callback(...args), Number(delayMs), false);

  readonly setInterval = (callback: Callback, delayMs = 1, ...args: never[]): SimulatedTimeout =>
    new SimulatedTimeout(this.#thread, () => callback(...args), Number(delayMs), true);

  readonly clearTimeout = (timer?: unknown): void => {
    if (timer instanceof SimulatedTimeout) timer.close();
  };

  readonly setImmediate = (callback: Callback, ...args: never[]): SimulatedImmediate => {
    const immediate = new SimulatedImmediate(() => callback(...args));
    this.#immediates.push(immediate);
    if (!this.#isCheckScheduled) {
      this.#isCheckScheduled = true;
      // Meanwhile sockets are read, timers end, and messages arrive.
      const pollMs = this.#thread.chance.between(0, LONGEST_POLL_MS);
      this.#thread.later('check', pollMs, () => this.#check());
    }
    return immediate;
  };

  readonly clearImmediate = (immediate?: unknown): void => {
    if (immediate instanceof SimulatedImmediate) immediate.run = null;
  };

  /** The immediates of one turn run one after another, with the microtasks of each between them. */
  #check(): void {
    this.#isCheckScheduled = false;
    const [first, ...rest] = this.#immediates.splice(0);
    const run = (immediate: SimulatedImmediate | undefined, others: readonly SimulatedImmediate[]) => {
      const [second, ...further] = others;
      if (second !== undefined) this.#thread.next('immediate', () => run(second, further));
      immediate?.run?.();
    };
    run(first, rest);
  }
}
