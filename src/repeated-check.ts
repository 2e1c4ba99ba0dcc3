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

  constructor(collaborators: RepeatedCheckCollaborators) {
    this.#collaborators = collaborators;
  }

  start(): void {
    const { inTurn, intervalMs } = this.#collaborators;
    this.#timer = setInterval(() => void inTurn(() => this.#check()), intervalMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
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
