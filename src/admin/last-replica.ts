import { toShownName } from '#otel/shown-name.ts';
import { type ServesModels, toServingSets } from '../replicas/serving-sets.ts';

/** A replica as far as it matters who is left. */
interface ServingReplica extends ServesModels {
  readonly drain: { readonly drained: boolean };
}

/** How many models a warning names. */
const MAX_NAMED = 5;

/** What to know of a drained replica whose models nobody else serves now; null if somebody does. */
export function warnOfLastReplica<T extends ServingReplica>(replica: T, all: readonly T[]): string | null {
  const { byModel, ofUnknown } = toServingSets(all);
  const isLast = (candidates: readonly T[]) =>
    candidates.includes(replica) && candidates.every(({ drain }) => drain.drained);
  const models = [...byModel]
    .filter(([, candidates]) => isLast(candidates))
    .map(([model]) => toShownName(model));
  const surplus = models.length - MAX_NAMED;
  const named = [
    ...models.slice(0, MAX_NAMED),
    ...(surplus > 0 ? [`${surplus} more`] : []),
    ...(isLast(ofUnknown) ? ['any model that no replica is known to serve'] : []),
  ];
  if (named.length === 0) return null;
  return `No replica is left for ${named.join(', ')}: such requests get 503 all_replicas_drained.`;
}
