import type { InTurn } from './in-turn.ts';
import { StartError } from './start-error.ts';

export interface RepeatedCheckCollaborators {
  readonly intervalMs: number;
  /** Checks run in turn with what else changes the configuration in effect. */
  readonly inTurn: InTurn;
  /** Looks for new contents, and has them used. Rejects with a StartError if they cannot be used. */
  readonly check: () => Promise<void>;
  /** Called with each problem, once as long as it stays the same. */
  readonly onProblem: (problem: string) => void;
}

/**
 * Looks at files again and again, for new contents. Kubernetes replaces a mounted secret by renaming a folder, which no
 * watch of the system would see.
 */
export class RepeatedCheck {
  readonly #collaborators: RepeatedCheckCollaborators;
  #lastProblem: string | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isUnderWay = false;
  #isStopped = false;

  constructor(collaborators: RepeatedCheckCollaborators) {
    this.#collaborators = collaborators;
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

  /** Does nothing while a check is under way: on a file system that hangs, they would pile up. */
  async #checkInTurn(): Promise<void> {
    if (this.#isUnderWay) return;
    this.#isUnderWay = true;
    await this.#collaborators.inTurn(() => this.#check());
    this.#isUnderWay = false;
  }

  /** Rejects on a defect only. */
  async #check(): Promise<void> {
    const { check, onProblem } = this.#collaborators;
    try {
      await check();
      this.#lastProblem = null;
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      if (error.message !== this.#lastProblem) onProblem(error.message);
      this.#lastProblem = error.message;
    }
  }
}
