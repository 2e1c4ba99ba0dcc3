/** Something to inspect. The larger it is, the longer it takes. */
interface Sized {
  readonly sizeBytes: number;
}

/** How a queue receives and runs jobs. */
export interface InspectionSteps<Job extends Sized> {
  /** The next job that has arrived; undefined if there is none. */
  receive(): Job | undefined;
  /**
   * Runs a job. It calls `giveWay` now and then, where other jobs may run; the call returns when they are done.
   * `depth`: how many jobs have given way to this one.
   */
  carryOut(job: Job, giveWay: () => void, depth: number): void;
}

/** A job gives way to jobs of at most this fraction of its size. */
const MUCH_SMALLER = 0.5;

/**
 * The jobs of a thread. The smallest runs first, and a running job gives way to much smaller ones, so that no request
 * waits long for a larger one. A job makes progress between two yields, so that it ends however many others arrive.
 */
export class InspectionQueue<Job extends Sized> {
  readonly #steps: InspectionSteps<Job>;
  /** The smallest first; jobs of the same size in the order of arrival. */
  readonly #waiting: Job[] = [];
  #depth = 0;

  constructor(steps: InspectionSteps<Job>) {
    this.#steps = steps;
  }

  /** Runs a job and all that arrive in the meantime. */
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
