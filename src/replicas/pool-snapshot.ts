import type { Engine, ReplicaConfig } from '../config/config.ts';

/** What a replica told of itself, or the configuration before any probe. */
export interface ReplicaKnowledge {
  /** `null`: not known yet. `['*']`: serves any name. */
  readonly models: readonly string[] | null;
  /** `null`: not known yet; treated as `openai`. */
  readonly engine: Engine | null;
  /** The release of a vLLM, three numbers; `null`: not known, or another engine. */
  readonly engineVersion: string | null;
}

/** One replica as every thread knows it. The slot is its place in shared memory, and its identity. */
export interface ReplicaSnapshot {
  readonly slot: number;
  readonly config: ReplicaConfig;
  readonly knowledge: ReplicaKnowledge;
}

/**
 * Which replicas there are and what they serve, at one time: a plain message from the control plane to whoever
 * serves clients. Two replicas with the same slot in successive topologies are the same replica.
 */
export interface PoolSnapshot {
  /** Grows with every topology. */
  readonly version: number;
  /** In the order of their turns. */
  readonly replicas: readonly ReplicaSnapshot[];
  /** False while a name that was never resolved may stand for more of them, and for other models. */
  readonly isComplete: boolean;
  /** The shared cursor of each model that a replica is known to serve. */
  readonly cursors: ReadonlyMap<string, number>;
}
