import type { RegisteredReplica, ReplicaRegistry } from '#replicas/registry';

/** What a producer sees of a replica; what is left out is well. */
export interface MadeReplica {
  readonly name: string;
  readonly inflight?: number;
  readonly models?: readonly string[];
  readonly maxInflight?: number;
  readonly gpuModel?: string;
  readonly drained?: boolean;
  readonly since?: string | null;
  readonly drainReason?: string | null;
  readonly isRemoving?: boolean;
  readonly reason?: string;
  readonly health?: 'ok' | 'failing';
  readonly failingBy?: readonly string[];
  readonly isRamping?: boolean;
  readonly isShadow?: boolean;
}

/** A registry of made replicas. */
export function madeRegistry(replicas: readonly MadeReplica[]): Pick<ReplicaRegistry, 'replicas'> {
  return { replicas: replicas.map(toReplica) };
}

function toReplica(made: MadeReplica): RegisteredReplica {
  const { name, inflight = 0, models = ['m'], drained = false, reason = null } = made;
  const replica = {
    name,
    inflight,
    models,
    background: { running: 0, unknown: 0 },
    config: { maxInflight: made.maxInflight ?? null, gpuModel: made.gpuModel ?? null, gpuCount: null },
    drain: { drained, since: made.since ?? null, reason: made.drainReason ?? null, version: '' },
    hasDrainedName: drained,
    isRemoving: made.isRemoving ?? false,
    reachability: { state: reason === null ? 'reachable' : 'unreachable', reason, since: null },
    health:
      made.health === undefined ? null : { state: made.health, failingBy: made.failingBy ?? [], since: null },
    silence: { count: 0, running: 0, oldestMs: null },
    ramp: made.isRamping === true ? { share: 0.5 } : null,
    shadow: made.isShadow === true ? { since: null } : null,
  };
  return replica as unknown as RegisteredReplica;
}
