/** How often the main thread checks its workers. */
export const CHECK_INTERVAL_MS = 1_000;

/** How often a worker counts up its heartbeat. */
export const HEARTBEAT_INTERVAL_MS = 250;

/** A worker hangs after this many checks in a row without a heartbeat. */
const MISSED_CHECKS_LIMIT = 10;

/** The same before its first heartbeat, because loading its code takes seconds on a busy machine. */
const MISSED_CHECKS_LIMIT_AT_START = 60;

/**
 * Finds workers whose event loop has stopped. It counts checks, not time: while the machine is paused or the main thread
 * is blocked there are no checks, and afterwards the workers have the full time again.
 */
export class Watchdog {
  readonly #heartbeats: Int32Array;
  readonly #workers: { heartbeats: number; missedChecks: number; hasStarted: boolean }[];

  /** `heartbeats`: one word per worker, which only that worker counts up. */
  constructor(heartbeats: Int32Array) {
    this.#heartbeats = heartbeats;
    this.#workers = Array.from(heartbeats, (_, worker) => this.#initialState(worker));
  }

  /** To be called when a new thread replaces that of a worker. */
  reset(worker: number): void {
    this.#workers[worker] = this.#initialState(worker);
  }

  /** To be called every CHECK_INTERVAL_MS for each running worker. Returns whether it hangs. */
  isHung(worker: number): boolean {
    const state = this.#workers[worker];
    if (state === undefined) throw new RangeError(`there is no worker ${worker}`);
    const heartbeats = Atomics.load(this.#heartbeats, worker);
    if (heartbeats !== state.heartbeats) {
      this.#workers[worker] = { heartbeats, missedChecks: 0, hasStarted: true };
      return false;
    }
    state.missedChecks += 1;
    return state.missedChecks >= (state.hasStarted ? MISSED_CHECKS_LIMIT : MISSED_CHECKS_LIMIT_AT_START);
  }

  #initialState(worker: number) {
    return { heartbeats: Atomics.load(this.#heartbeats, worker), missedChecks: 0, hasStarted: false };
  }
}
