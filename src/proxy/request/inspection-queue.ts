/** Something to be inspected, which takes the longer the larger it is. */
interface Sized {
  readonly sizeBytes: number;
}

/** What a queue works with. */
export interface InspectionSteps<Job extends Sized> {
  /** The next job that has arrived meanwhile; undefined if there is none. */
  receive(): Job | undefined;
  /**
   * Does a job. It calls `giveWay` every now and then, at a place where others may be done: it is not called again
   * before these are done. `depth`: how many jobs are under way that have given way to this one.
   */
  carryOut(job: Job, giveWay: () => void, depth: number): void;
}

/** A job gives way to those that are at most this much of its size. */
const MUCH_SMALLER = 0.5;

/**
 * The jobs of a thread, the smallest first, and one that is under way gives way to those that are much smaller: nobody
 * waits long for what takes longer than his own. Each time it does so it goes on for a while, so that it comes to its
 * end however many there are.
 */
export class InspectionQueue<Job extends Sized> {
  readonly #steps: InspectionSteps<Job>;
  /** The smallest first; of the same size, in the order in which they came. */
  readonly #waiting: Job[] = [];
  #depth = 0;

  constructor(steps: InspectionSteps<Job>) {
    this.#steps = steps;
  }

  /** Takes a job, and does it and all that arrive meanwhile. */
  run(job: Job): void {
    this.#add(job);
    this.#runUpTo(Number.POSITIVE_INFINITY);
  }

  #runUpTo(maxBytes: number): void {
    for (;;) {
      this.#receiveAll();
      const [next] = this.#waiting;
      if (next === undefined || next.sizeBytes > maxBytes) return;
      this.#waiting.shift();
      const giveWay = () => this.#runUpTo(next.sizeBytes * MUCH_SMALLER);
      this.#steps.carryOut(next, giveWay, this.#depth++);
      this.#depth--;
    }
  }

  #receiveAll(): void {
    for (let job = this.#steps.receive(); job !== undefined; job = this.#steps.receive()) this.#add(job);
  }

  #add(job: Job): void {
    const larger = this.#waiting.findIndex(({ sizeBytes }) => sizeBytes > job.sizeBytes);
    this.#waiting.splice(larger === -1 ? this.#waiting.length : larger, 0, job);
  }
}
