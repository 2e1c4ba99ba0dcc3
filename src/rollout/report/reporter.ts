import type { Phase } from '#rollout-board/facts';

/** What is known of a replica in numbers, by their names in the admin API. */
export type Figures = Readonly<Record<string, number>>;

/** Tells people or programs how a rollout goes. */
export interface Reporter {
  /** A replica is in a phase. `text`: one line; it may change many times in a phase. */
  show(name: string, phase: Phase, text: string, figures?: Figures): void;
  /** A line that the command of a replica has printed. */
  output(name: string, line: string): void;
  /** A line about the rollout. */
  say(line: string): void;
  /** Asks a question. Resolves with what was typed before Enter; null at the end of the input. */
  ask(question: string): Promise<string | null>;
  /** Leaves what was shown last. */
  end(): void;
}

/** Reads what somebody types, line by line; null at the end of the input. */
export type LineReader = () => Promise<string | null>;
