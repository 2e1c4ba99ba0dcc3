import type { ConditionBoard } from '#conditions';

interface Clocks {
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
  readonly epochMs: () => number;
}

const LOOK_EVERY_MS = 1_000;
/** Time servers correct a clock by less in a second. */
const STEP_MS = 2_000;

/** Compares the wall clock with the monotonic one every second, and raises a condition when it was set. */
export class ClockWatch {
  readonly #board: Pick<ConditionBoard, 'raise'>;
  readonly #clocks: Clocks;
  /** The wall clock, less the monotonic one. */
  #offsetMs: number;
  #timer: NodeJS.Timeout | undefined;

  constructor(board: Pick<ConditionBoard, 'raise'>, clocks: Clocks) {
    this.#board = board;
    this.#clocks = clocks;
    this.#offsetMs = this.#readOffset();
  }

  start(): void {
    this.#timer = setInterval(() => this.look(), LOOK_EVERY_MS).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  look(): void {
    const offsetMs = this.#readOffset();
    const stepMs = offsetMs - this.#offsetMs;
    this.#offsetMs = offsetMs;
    if (Math.abs(stepMs) < STEP_MS) return;
    const figures = { direction: stepMs > 0 ? 'forward' : 'back', step: Math.abs(stepMs) / 1_000 };
    this.#board.raise({ id: 'clock_stepped', subject: '', figures });
  }

  #readOffset(): number {
    return this.#clocks.epochMs() - this.#clocks.nowMs();
  }
}
