import type { StopKind } from '#rollout-board/facts';

/** What the next step depends on. */
export interface StopFacts {
  readonly kind: StopKind;
  /** The replica that stopped it; null: none has begun, or somebody interrupted it. */
  readonly replica: string | null;
  /** Who restarts replicas. */
  readonly restartedBy: 'command' | 'elsewhere' | 'person';
  /** What begins a command line that goes on: `gateway rollout --resume …`. */
  readonly resume: string;
}

/** What to do after a rollout has stopped, in one paragraph: each outcome has another next step. Null: just go on. */
export function toAdvice({ kind, replica, restartedBy, resume }: StopFacts): string | null {
  const name = replica === null ? 'NAME' : toShellWord(replica);
  const skip = `leave it out with ${resume} --skip ${name}`;
  switch (kind) {
    case 'bad':
    case 'rollback_failed':
      return (
        `Find out why with: gateway timeline, and the log of its engine. Then restart it with something better: ` +
        `${resume}${restartedBy === 'command' ? " --exec '…'" : ''}, take it as it is: ${resume} --accept ${name}, or ${skip}`
      );
    case 'undecided':
      return (
        `Wait for more traffic, or send some: ${resume} --compare-timeout 30m goes on comparing. ` +
        `If it is good enough for you: ${resume} --accept ${name}`
      );
    case 'not_idle':
      return (
        'Its requests take long: gateway replicas shows how many are in flight. ' +
        `${resume} --timeout 30m waits longer, or ${skip}`
      );
    case 'command_failed':
      return restartedBy === 'command'
        ? `Read what it printed where the rollout runs. ${resume} runs it again, ${resume} --exec '…' another one; or ${skip}`
        : `Restart it, then: ${resume}; or ${skip}`;
    case 'not_ready':
      return (
        `Read the log of its engine. When it answers, or to wait longer: ${resume} --restart-timeout 1h does not restart ` +
        `it again; or ${skip}`
      );
    case 'failed':
      return `Repair what it says, then: ${resume}; or ${skip}`;
    case 'interrupted':
    case 'aborted':
      return null;
  }
}

/** One word for a shell. */
export function toShellWord(text: string): string {
  return /^[\w./~-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
