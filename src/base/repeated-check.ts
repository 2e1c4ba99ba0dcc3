import type { InTurn } from './in-turn.ts';
import { StartError } from './start-error.ts';

export interface RepeatedCheckCollaborators {
  readonly intervalMs: number;
  /** Checks run in turn with what else changes the configuration in effect. */
  readonly inTurn: InTurn;
  /** Looks for new contents, and has them used. Rejects with a StartError if they cannot be used. */
  readonly check: () => Promise<void>;
}

/**
 * Looks at files again and again, for new contents. Kubernetes replaces a mounted secret by renaming a folder, which no
 * watch of the system would see.
 */
export class RepeatedCheck {
  readonly #collaborators: RepeatedCheckCollaborators;
  #problem: string | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isUnderWay = false;
  #isStopped = false;

  constructor(collaborators: RepeatedCheckCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Why the last check has failed; null: it has not. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Whether what a check that is under way finds must not be used any more. */
  get isStopped(): boolean {
    return this.#isStopped;
  }

  start(): void {
    this.#timer = setInterval(() => void this.#checkInTurn(), this.#collaborators.intervalMs).unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  /** What was wrong is over: a reload has had the contents used. */
  succeed(): void {
    this.#problem = null;
  }

  /** Does nothing while a check is under way: on a file system that hangs, they would pile up. */
  async #checkInTurn(): Promise<void> {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    await this.#collaborators.inTurn(() => this.#check());
    this.#isUnderWay = false;
  }

  /** Rejects on a defect only. */
  async #check(): Promise<void> {
    try {
      await this.#collaborators.check();
      this.#problem = null;
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      this.#problem = error.message;
    }
  }
}
