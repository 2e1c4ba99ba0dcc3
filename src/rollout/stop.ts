/** Why a rollout stops before its end, which its exit code says. */
export type StopKind = 'failed' | 'bad' | 'undecided' | 'interrupted';

/** The exit codes of `gateway rollout`. 2 is a wrong command line. */
export const EXIT_CODES = { done: 0, failed: 1, bad: 3, undecided: 4, interrupted: 130 } as const;

/** The rollout of a replica cannot go on. `message` is one line that follows the replica's name. */
export class RolloutStop extends Error {
  readonly kind: StopKind;

  constructor(kind: StopKind, message: string) {
    super(message);
    this.name = 'RolloutStop';
    this.kind = kind;
  }
}
