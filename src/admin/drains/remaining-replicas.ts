import { inParallel } from '#base';
import { toShownName, waitAtMost } from '#otel/base';
import { REASON_TEXTS, type ReachabilityState } from '#replicas/reachability';
import { groupByModel, type ModelServer } from '#replicas/routing';

/** What decides whether a replica can serve a model. */
interface ServingReplica extends ModelServer {
  readonly name: string;
  readonly drain: { readonly drained: boolean };
  readonly reachability: ReachabilityState;
  /** Whether it has ever answered. */
  readonly hasAnswered: boolean;
  readonly inflight: number;
  readonly config: { readonly maxInflight: number | null };
}

/** The most models, and the most replicas, that a message names. */
const MAX_NAMED = 5;

/** The most replicas that are probed at the same time. */
const PARALLEL_PROBES = 32;
/** How long all probes together may take. */
const PROBING_MS = 8_000;

/** The warning about a drained replica if it was the last one for a model; null if another one serves or may serve it. */
export function warnOfLastReplica<T extends ServingReplica>(replica: T, all: readonly T[]): string | null {
  const left = othersByModel(replica, all).filter(([, others]) => !others.some(mayServe));
  if (left.length === 0) return null;
  const names = toNames(left.map(([model]) => model));
  const areAllDrained = left.every(([, others]) => others.every(({ drain }) => drain.drained));
  if (areAllDrained) return `No replica is left for ${names}: such requests get 503 all_replicas_drained.`;
  return `No replica that answers is left for ${names}: ${toStates(left)}.`;
}

function mayServe({ drain, reachability: { state } }: ServingReplica): boolean {
  return !drain.drained && state !== 'unreachable' && state !== 'loading';
}

/**
 * The warning about a replica that is being drained if what it has in flight has no room on those that are left, so that
 * requests are going to wait; null if it has.
 */
export function warnOfNoRoom<T extends ServingReplica>(replica: T, all: readonly T[]): string | null {
  const placesOf = ({ config, inflight }: T) => (config.maxInflight ?? Infinity) - inflight;
  const full = othersByModel(replica, all).flatMap(([model, others]) => {
    const left = others.filter(mayServe);
    const places = left.reduce((sum, other) => sum + Math.max(0, placesOf(other)), 0);
    return left.length > 0 && places < replica.inflight ? [{ model, places }] : [];
  });
  if (full.length === 0) return null;
  const places = Math.min(...full.map((each) => each.places));
  const names = toNames(full.map(({ model }) => model));
  return `On the replicas left for ${names} there is room (max_inflight) for ${places} of the ${replica.inflight} in flight: requests may have to wait.`;
}

/**
 * Probes the other replicas of a replica's models until each model has one that answers. Resolves with a function that
 * says, for the moment of its call, which models would have no replica without this one, and why; null if there are
 * none. Replicas that were drained meanwhile do not count.
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
  const setsLeft = () => sets.filter(([, others]) => !others.some(isAnswering));
  const candidates = new Set(sets.flatMap(([, others]) => others));
  const probing = inParallel(candidates, PARALLEL_PROBES, async (other) => {
    if (other.drain.drained || setsLeft().length === 0) return;
    await ask(other);
    probed.add(other);
  });
  await waitAtMost(PROBING_MS, probing);
  return () => {
    const left = setsLeft();
    if (left.length === 0) return null;
    const states = toStates(left);
    return `no other replica answers for ${toNames(left.map(([model]) => model))}${states && `: ${states}`}`;
  };
}

/** The models of a replica, each with the other replicas that serve it. */
function othersByModel<T extends ServingReplica>(replica: T, all: readonly T[]): [string, readonly T[]][] {
  const { byModel, ofUnknown } = groupByModel(all);
  // Nobody misses a replica that never answered and never said what it serves, if others did.
  const isMissed = replica.models !== null || replica.hasAnswered || byModel.size === 0;
  const sets: [string, readonly T[]][] = [...byModel];
  if (isMissed) sets.push(['any model that no replica is known to serve', ofUnknown]);
  return sets
    .filter(([, candidates]) => candidates.includes(replica))
    .map(([model, candidates]) => [model, candidates.filter((other) => other !== replica)]);
}

function toNames(models: readonly string[]): string {
  return toList(models.map((model) => toShownName(model)));
}

/** Says why none of these replicas serves; empty if there are none. */
function toStates(sets: readonly (readonly [string, readonly ServingReplica[]])[]): string {
  return toList([...new Set(sets.flatMap(([, others]) => others))].map(toStateText));
}

function toStateText({ name, drain, reachability }: ServingReplica): string {
  const { state, since, reason } = reachability;
  if (drain.drained) return `${name} is drained`;
  if (state === 'reachable' || state === 'unknown') return `${name} did not answer in time`;
  const start = since === null ? '' : ` since ${since.replace(/\.\d+Z$/, 'Z')}`;
  if (state === 'loading' || reason === null) return `${name} is ${state}${start}`;
  return `${name} is unreachable${start} (${REASON_TEXTS[reason]})`;
}

function toList(texts: readonly string[]): string {
  const surplus = texts.length - MAX_NAMED;
  return [...texts.slice(0, MAX_NAMED), ...(surplus > 0 ? [`${surplus} more`] : [])].join(', ');
}
