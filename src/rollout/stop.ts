import type { StopKind } from '#rollout-board/facts';

/** The exit codes of `gateway rollout`. 2 is a wrong command line. */
export const EXIT_CODES: Readonly<Record<StopKind | 'done', number>> = {
  done: 0,
  failed: 1,
  not_idle: 1,
  command_failed: 1,
  not_ready: 1,
  bad: 3,
  rollback_failed: 3,
  undecided: 4,
  aborted: 5,
  interrupted: 130,
};

/** What the span of a step says of it. */
export function toOutcome(kind: StopKind): 'bad' | 'undecided' | 'failed' | 'interrupted' {
  if (kind === 'rollback_failed') return 'bad';
  if (kind === 'aborted') return 'interrupted';
  return kind === 'bad' || kind === 'undecided' || kind === 'interrupted' ? kind : 'failed';
}

/** The rollout of a replica cannot go on. `message` is one line that follows the replica's name. */
export class RolloutStop extends Error {
  readonly kind: StopKind;

  constructor(kind: StopKind, message: string) {
    super(message);
    this.name = 'RolloutStop';
    this.kind = kind;
  }
}
