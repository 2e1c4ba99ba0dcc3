import { waitAtMost } from '#otel/clock.ts';
import { toShownName } from '#otel/encode/shown-name.ts';
import { inParallel } from '../replicas/control/in-parallel.ts';
import type { Reachability } from '../replicas/reachability.ts';
import { groupByModel, type ModelServer } from '../replicas/replicas-by-model.ts';

/** A replica as far as it matters who is left. */
interface ServingReplica extends ModelServer {
  readonly drain: { readonly drained: boolean };
  readonly reachability: Reachability;
}

/** How many models a sentence names. */
const MAX_NAMED = 5;

/** Replicas that are asked at the same time. */
const PARALLEL_PROBES = 32;
/** How long all of it may take. */
const ASKING_MS = 8_000;

/** What to know of a drained replica whose models nobody else serves now; null if somebody does, or may. */
export function warnOfLastReplica<T extends ServingReplica>(replica: T, all: readonly T[]): string | null {
  const isThere = ({ drain, reachability }: T) =>
    !drain.drained && reachability !== 'unreachable' && reachability !== 'loading';
  const left = othersByModel(replica, all).filter(([, others]) => !others.some(isThere));
  if (left.length === 0) return null;
  const names = toNames(left.map(([model]) => model));
  const areAllDrained = left.every(([, others]) => others.every(({ drain }) => drain.drained));
  if (areAllDrained) return `No replica is left for ${names}: such requests get 503 all_replicas_drained.`;
  return `No replica that answers is left for ${names}: the others are drained, unreachable or loading.`;
}

/**
 * Asks the other replicas of a replica's models whether they answer, until each model has one that does. Resolves with
 * a function that tells, at the moment when it is called, which models would have none without this replica, in words;
 * null if there is no such model. Who was drained in the meantime does not count.
 */
export async function askForLastReplica<T extends ServingReplica>(
  replica: T,
  all: readonly T[],
  ask: (other: T) => Promise<void>,
): Promise<() => string | null> {
  const sets = othersByModel(replica, all);
  const asked = new Set<T>();
  const answers = (other: T) =>
    asked.has(other) && !other.drain.drained && other.reachability === 'reachable';
  const modelsLeft = () => sets.filter(([, others]) => !others.some(answers)).map(([model]) => model);
  const candidates = new Set(sets.flatMap(([, others]) => others));
  const asking = inParallel(candidates, PARALLEL_PROBES, async (other) => {
    if (other.drain.drained || modelsLeft().length === 0) return;
    await ask(other);
    asked.add(other);
  });
  await waitAtMost(ASKING_MS, asking);
  return () => {
    const left = modelsLeft();
    return left.length === 0 ? null : toNames(left);
  };
}

/** The models that a replica serves, each with the others that do. */
function othersByModel<T extends ServingReplica>(replica: T, all: readonly T[]): [string, readonly T[]][] {
  const { byModel, ofUnknown } = groupByModel(all);
  const sets: [string, readonly T[]][] = [
    ...byModel,
    ['any model that no replica is known to serve', ofUnknown],
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
