/** How often the main thread looks whether its workers live. */
export const LOOK_EVERY_MS = 1_000;

/** How often a worker shows that it does. */
export const BEAT_EVERY_MS = 250;

/** Looks in a row without a sign of life after which a worker hangs. */
const LOOKS_WITHOUT_LIFE = 10;

/** The same before its first sign: it loads its code, which takes seconds on a busy machine. */
const LOOKS_WITHOUT_BEGIN = 60;

/**
 * Finds the worker whose event loop has stopped. Looks are counted, not time: while the machine is paused, or the main
 * thread itself stands still, nobody looks, and the workers have their whole time again.
 */
export class HangWatch {
  readonly #beats: Int32Array;
  readonly #seen: { beats: number; looksWithoutLife: number; hasBegun: boolean }[];

  /** `beats`: one word a worker, which only it counts up. */
  constructor(beats: Int32Array) {
    this.#beats = beats;
    this.#seen = Array.from(beats, (_, worker) => this.#unseen(worker));
  }

  /** Another thread takes this worker's place. */
  begin(worker: number): void {
    this.#seen[worker] = this.#unseen(worker);
  }

  /** To be called every LOOK_EVERY_MS for each worker that runs; answers whether it hangs. */
  look(worker: number): boolean {
    const seen = this.#seen[worker];
    if (seen === undefined) throw new RangeError(`there is no worker ${worker}`);
    const beats = Atomics.load(this.#beats, worker);
    if (beats !== seen.beats) {
      this.#seen[worker] = { beats, looksWithoutLife: 0, hasBegun: true };
      return false;
    }
    seen.looksWithoutLife += 1;
    return seen.looksWithoutLife >= (seen.hasBegun ? LOOKS_WITHOUT_LIFE : LOOKS_WITHOUT_BEGIN);
  }

  #unseen(worker: number) {
    return { beats: Atomics.load(this.#beats, worker), looksWithoutLife: 0, hasBegun: false };
  }
}
