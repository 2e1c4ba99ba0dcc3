import { isDeepStrictEqual } from 'node:util';
import type { ReplicaConfig } from '../../config/config.ts';

/** What becomes of one wanted replica. */
export interface ReplicaDiffStep {
  readonly config: ReplicaConfig;
  /**
   * `keep`: nothing changed. `configure`: what is known of it changed, not where it is. `replace`: the name has moved
   * to another server; what is under way on the former one goes on there. `add`: the name is new.
   */
  readonly action: 'keep' | 'configure' | 'replace' | 'add';
}

/** How to come from the present replicas to the wanted ones. */
export interface ReplicaDiff {
  /** One step a wanted replica, in the order of their turns. */
  readonly steps: readonly ReplicaDiffStep[];
  /** The names that are wanted no more. */
  readonly removed: readonly string[];
}

/** Compares two lists of replicas, each with different names. A replica is its name; its server is its url. */
export function diffReplicas(
  present: readonly ReplicaConfig[],
  wanted: readonly ReplicaConfig[],
): ReplicaDiff {
  const byName = new Map(present.map((config) => [config.name, config]));
  const wantedNames = new Set(wanted.map(({ name }) => name));
  return {
    steps: wanted.map((config) => ({ config, action: decideStep(byName.get(config.name), config) })),
    removed: [...byName.keys()].filter((name) => !wantedNames.has(name)),
  };
}

function decideStep(present: ReplicaConfig | undefined, wanted: ReplicaConfig): ReplicaDiffStep['action'] {
  if (present === undefined) return 'add';
  if (present.url !== wanted.url || present.tlsName !== wanted.tlsName) return 'replace';
  return isDeepStrictEqual(present, wanted) ? 'keep' : 'configure';
}
