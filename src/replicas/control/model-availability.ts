import type { Reachability } from '#replicas/reachability';
import { groupByModel, type ModelServer } from '#replicas/routing';

/** How many replicas serve a model. */
export interface ModelAvailability {
  /** As the replicas name it. */
  readonly model: string;
  /** All that are known to serve it. */
  readonly known: number;
  /** Those of them that are not drained and may answer: they were not found unreachable or loading. */
  readonly available: number;
  /** Those of these that health checks have not found failing. */
  readonly well: number;
  readonly drained: number;
}

/** What decides whether a replica can serve a model. */
interface ServingReplica extends ModelServer {
  readonly drain: { readonly drained: boolean };
  readonly reachability: { readonly state: Reachability };
  readonly health: { readonly state: 'ok' | 'failing' } | null;
}

/** Counts the replicas of each model that a replica is known to serve. */
export function toModelAvailabilities(replicas: readonly ServingReplica[]): readonly ModelAvailability[] {
  const { byModel } = groupByModel(replicas);
  return Array.from(byModel, ([model, servers]) => ({
    model,
    known: servers.length,
    available: servers.filter(mayAnswer).length,
    well: servers.filter((server) => mayAnswer(server) && server.health?.state !== 'failing').length,
    drained: servers.filter(({ drain }) => drain.drained).length,
  }));
}

function mayAnswer({ drain, reachability: { state } }: ServingReplica): boolean {
  return !drain.drained && state !== 'unreachable' && state !== 'loading';
}
