import { isDeepStrictEqual } from 'node:util';
import type { ReplicaConfig } from '#replicas/terms';

/** What to do for one wanted replica. */
export interface ReplicaDiffStep {
  readonly config: ReplicaConfig;
  /**
   * `add`: the name is new. `replace`: the name has moved to another server; requests in flight finish on the former
   * one. `configure`: the server is the same, other settings changed. `keep`: nothing changed.
   */
  readonly action: 'add' | 'replace' | 'configure' | 'keep';
}

/** How to get from the present replicas to the wanted ones. */
export interface ReplicaDiff {
  /** One step for each wanted replica, in configured order. */
  readonly steps: readonly ReplicaDiffStep[];
  /** The names that are no longer wanted. */
  readonly removed: readonly string[];
}

/**
 * Compares two lists of replicas, each with unique names. The url, the TLS name and the id of the server, if it has one,
 * tell whether a server is the same.
 */
export function diffReplicas(
  present: readonly ReplicaConfig[],
  wanted: readonly ReplicaConfig[],
): ReplicaDiff {
  const byName = new Map(present.map((config) => [config.name, config]));
  const wantedNames = new Set(wanted.map(({ name }) => name));
  return {
    steps: wanted.map((config) => ({ config, action: decideAction(byName.get(config.name), config) })),
    removed: [...byName.keys()].filter((name) => !wantedNames.has(name)),
  };
}

function decideAction(present: ReplicaConfig | undefined, wanted: ReplicaConfig): ReplicaDiffStep['action'] {
  if (present === undefined) return 'add';
  if (present.url !== wanted.url || present.tlsName !== wanted.tlsName) return 'replace';
  if (present.serverId !== wanted.serverId) return 'replace';
  return isDeepStrictEqual(present, wanted) ? 'keep' : 'configure';
}
