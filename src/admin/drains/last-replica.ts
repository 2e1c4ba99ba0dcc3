import { waitAtMost } from '#otel/clock.ts';
import { toShownName } from '#otel/encode/shown-name.ts';
import { inParallel } from '../../replicas/control/in-parallel.ts';
import type { ReachabilityState } from '../../replicas/reachability.ts';
import { groupByModel, type ModelServer } from '../../replicas/replicas-by-model.ts';

/** What decides whether a replica can serve a model. */
interface ServingReplica extends ModelServer {
  readonly drain: { readonly drained: boolean };
  readonly reachability: ReachabilityState;
  /** Whether it has ever answered. */
  readonly hasAnswered: boolean;
}

/** The most models that a message names. */
const MAX_NAMED = 5;

/** The most replicas that are probed at the same time. */
const PARALLEL_PROBES = 32;
/** How long all probes together may take. */
const PROBING_MS = 8_000;

/**
 * The warning about a drained replica if it was the last one for a model; null if another one serves or may serve it.
 */
export function warnOfLastReplica<T extends ServingReplica>(replica: T, all: readonly T[]): string | null {
  const mayServe = ({ drain, reachability: { state } }: T) =>
    !drain.drained && state !== 'unreachable' && state !== 'loading';
  const left = othersByModel(replica, all).filter(([, others]) => !others.some(mayServe));
  if (left.length === 0) return null;
  const names = toNames(left.map(([model]) => model));
  const areAllDrained = left.every(([, others]) => others.every(({ drain }) => drain.drained));
  if (areAllDrained) return `No replica is left for ${names}: such requests get 503 all_replicas_drained.`;
  return `No replica that answers is left for ${names}: the others are drained, unreachable or loading.`;
}

/**
 * Probes the other replicas of a replica's models until each model has one that answers. Resolves with a function that
 * returns, for the moment of its call, the names of the models that would have no replica without this one; null if
 * there are none. Replicas that were drained meanwhile do not count.
 */
export async function askForLastReplica<T extends ServingReplica>(
  replica: T,
  all: readonly T[],
  ask: (other: T) => Promise<void>,
): Promise<() => string | null> {
  const sets = othersByModel(replica, all);
  const probed = new Set<T>();
  const isAnswering = (other: T) =>
    probed.has(other) && !other.drain.drained && other.reachability.state === 'reachable';
  const modelsLeft = () => sets.filter(([, others]) => !others.some(isAnswering)).map(([model]) => model);
  const candidates = new Set(sets.flatMap(([, others]) => others));
  const probing = inParallel(candidates, PARALLEL_PROBES, async (other) => {
    if (other.drain.drained || modelsLeft().length === 0) return;
    await ask(other);
    probed.add(other);
  });
  await waitAtMost(PROBING_MS, probing);
  return () => {
    const left = modelsLeft();
    return left.length === 0 ? null : toNames(left);
  };
}

/** The models of a replica, each with the other replicas that serve it. */
function othersByModel<T extends ServingReplica>(replica: T, all: readonly T[]): [string, readonly T[]][] {
  const { byModel, ofUnknown } = groupByModel(all);
  // Nobody misses a replica that never answered and never said what it serves, if others did.
  const isMissed = replica.models !== null || replica.hasAnswered || byModel.size === 0;
  const sets: [string, readonly T[]][] = [
    ...byModel,
    ...(isMissed
      ? [['any model that no replica is known to serve', ofUnknown] as [string, readonly T[]]]
      : []),
  ];
  return sets
    .filter(([, candidates]) => candidates.includes(replica))
    .map(([model, candidates]) => [model, candidates.filter((other) => other !== replica)]);
}

function toNames(models: readonly string[]): string {
  const surplus = models.length - MAX_NAMED;
  return [
    ...models.slice(0, MAX_NAMED).map((model) => toShownName(model)),
    ...(surplus > 0 ? [`${surplus} more`] : []),
  ].join(', ');
}
