/** The most threads of a program. */
const MAX_THREADS = 4;
/** The most numbers that a thread returns. */
export const RESULT_COUNT = 16;

/** The cells by which a scheduler leads threads, in 32-bit numbers. */
export const CELL = {
  /** Which program runs. */
  program: 0,
  /** One STATE for each thread. */
  states: 1,
  /** One GO for each thread. */
  goes: 1 + MAX_THREADS,
  resultCounts: 1 + 2 * MAX_THREADS,
  results: 1 + 3 * MAX_THREADS,
} as const;

/** Bytes of all cells. */
export const CONTROL_BYTES = 4 * (CELL.results + MAX_THREADS * RESULT_COUNT);

/** How far a thread is. */
export const STATE = { running: 0, idle: 1, atStep: 2 } as const;

/** What a thread may do next: nothing, its next step, die before it, or end for good. */
export const GO = { none: 0, step: 1, kill: 2, end: 3 } as const;

/** What a thread begins with. */
export interface ThreadData {
  readonly control: SharedArrayBuffer;
  readonly memory: SharedArrayBuffer;
  /** The URL of a module that exports `PROGRAMS`. */
  readonly programs: string;
  readonly index: number;
}
