import type { Signals } from '#cli/command';
import type { Environment } from '#config/secrets';
import type { RolloutGateways } from './gateways/gateways.ts';
import type { ReplicaState } from './progress-file/state-file.ts';
import type { Reporter } from './report/reporter.ts';
import type { RolloutTrace } from './rollout-trace.ts';
import type { RolloutSettings } from './settings.ts';

/** What the rollout of each replica works with. */
export interface RollContext {
  readonly settings: RolloutSettings;
  /** The mark of this rollout, and then those of the rollouts that it replaces. */
  readonly marks: readonly [own: string, ...givenUp: string[]];
  readonly gateways: RolloutGateways;
  readonly trace: RolloutTrace;
  readonly reporter: Reporter;
  readonly env: Environment;
  readonly signal: AbortSignal;
  readonly sendToGroup: Signals['sendToGroup'];
  readonly isUnderWay: (name: string) => boolean;
  /** Whether a replica is taken as it is, whatever its verdict. */
  readonly isAccepted: (name: string) => boolean;
  /** Of one replica's comparison. */
  readonly falseAlarm: number;
  /** Asks a person to restart a replica, one at a time. */
  readonly askPerson: (question: string) => Promise<string | null>;
  /** Stores how far a replica is. What is not given stays. */
  readonly store: (name: string, changes: Partial<Omit<ReplicaState, 'name'>>) => Promise<void>;
}

/** How the rollout of a replica ended. */
export interface RollEnd {
  readonly kind: 'done' | 'warned' | 'rolled_back';
  readonly sentence: string;
}
