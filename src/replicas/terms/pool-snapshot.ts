import type { Engine, ReplicaConfig } from './replica-config.ts';
import type { ShadowRole } from './shadow-role.ts';

/** What is known of a replica, from the configuration or from probes. */
export interface ReplicaKnowledge {
  /** `null`: unknown. `['*']`: serves any name. */
  readonly models: readonly string[] | null;
  /** `null`: unknown; treated as `openai`. */
  readonly engine: Engine | null;
  /** The release of a vLLM, three numbers; `null`: unknown, or another engine. */
  readonly engineVersion: string | null;
}

/** One replica at one time. Its slot is its row in shared memory, and its identity. */
export interface ReplicaSnapshot {
  readonly slot: number;
  readonly config: ReplicaConfig;
  readonly knowledge: ReplicaKnowledge;
  /** Null: it serves clients. */
  readonly shadow: ShadowRole | null;
}

/**
 * Which replicas exist and what they serve, at one time: the message from the control plane to each data plane. A slot
 * that is in two successive snapshots is the same replica.
 */
export interface PoolSnapshot {
  /** Grows with every snapshot. */
  readonly version: number;
  /** In configured order. */
  readonly replicas: readonly ReplicaSnapshot[];
  /** False while a name that was never resolved may stand for more replicas, with other models. */
  readonly isComplete: boolean;
  /** The shared cursor of each model that a replica is known to serve. */
  readonly cursors: ReadonlyMap<string, number>;
}
