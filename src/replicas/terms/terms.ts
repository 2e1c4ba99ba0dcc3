/*
 * The words that both planes, the admin API and the CLI have for a replica: its configuration, what is known of it, the
 * snapshot of a pool, how many responses go on in the background.
 *
 * It never knows how anything is found out.
 */

import type { Engine, ReplicaConfig } from './replica-config.ts';
import type { ShadowRole } from './shadow-role.ts';

export type { Engine, ReplicaConfig } from './replica-config.ts';
export type { ShadowRole } from './shadow-role.ts';

/** How many responses a server goes on with after its answers. */
export interface BackgroundCount {
  /** Those that it was said to go on with by the last answer. */
  readonly running: number;
  /** Those of which it is not known whether they have ended. */
  readonly unknown: number;
}

/** A server that goes on with nothing. */
export const NO_BACKGROUND: BackgroundCount = { running: 0, unknown: 0 };

/** Both counts together. */
export function addBackground(a: BackgroundCount, b: BackgroundCount): BackgroundCount {
  return { running: a.running + b.running, unknown: a.unknown + b.unknown };
}

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
