import type { Engine } from '#replicas/terms';

/** What a replica serves. */
export interface ModelServer {
  /** `null`: unknown. `['*']`: serves any name. */
  readonly models: readonly string[] | null;
  readonly engine: Engine;
}

/** The candidates for each model, in the order of the replicas. */
export interface ReplicasByModel<T> {
  /** The replicas known to serve a model, including those that serve any name. */
  readonly byModel: ReadonlyMap<string, readonly T[]>;
  /** For all other names: the replicas that serve any name, or else those whose model list is unknown. */
  readonly ofUnknown: readonly T[];
}

/** The tag that Ollama assumes for a name without one. */
const DEFAULT_TAG = ':latest';

/** Groups replicas by the models that they are known to serve. */
export function groupByModel<T extends ModelServer>(replicas: readonly T[]): ReplicasByModel<T> {
  const names = new Set(replicas.flatMap(namesServed));
  names.delete('*');
  const byModel = new Map<string, T[]>([...names].map((name) => [name, []]));
  for (const replica of replicas) {
    const served = servesAny(replica) ? names : new Set(namesServed(replica));
    for (const name of served) byModel.get(name)?.push(replica);
  }
  const wildcards = replicas.filter(servesAny);
  return {
    byModel,
    ofUnknown: wildcards.length > 0 ? wildcards : replicas.filter(({ models }) => models === null),
  };
}

/** The names in the lists of the replicas, each once, in their order. */
export function listModels(replicas: readonly ModelServer[]): readonly string[] {
  const names = new Set(replicas.flatMap(({ models }) => models ?? []));
  names.delete('*');
  return [...names];
}

/**
 * The one model that all replicas with a known list serve; null if there are several, or a replica serves any name: then
 * a request that names none could get the answer of any model.
 */
export function onlyModelOf(replicas: readonly ModelServer[]): string | null {
  const names = listModels(replicas);
  return names.length === 1 && !replicas.some(servesAny) ? (names[0] ?? null) : null;
}

/**
 * The name whose cursor a model uses: `otiny` and `otiny:latest` share a cursor as long as the same replicas serve both
 * names.
 */
export function cursorNameOf<T extends ModelServer>(
  model: string,
  byModel: ReplicasByModel<T>['byModel'],
): string {
  const tagged = model + DEFAULT_TAG;
  const own = byModel.get(model) ?? [];
  const others = byModel.get(tagged) ?? [];
  const areSame = own.length === others.length && own.every((each, index) => each === others[index]);
  return areSame && own.some(({ engine }) => engine === 'ollama') ? tagged : model;
}

/** The names in a replica's model list, and the other names by which its engine knows the same models. */
function namesServed({ models, engine }: ModelServer): readonly string[] {
  if (models === null || engine !== 'ollama') return models ?? [];
  return models.flatMap((name) => [name, ...otherNameOf(name)]);
}

/** `otiny:latest` → `otiny`, and the reverse. A colon before a slash belongs to a registry's port. */
function otherNameOf(name: string): readonly string[] {
  if (name === '*') return [];
  if (name.endsWith(DEFAULT_TAG)) return [name.slice(0, -DEFAULT_TAG.length)];
  return /:[^/]*$/.test(name) ? [] : [name + DEFAULT_TAG];
}

function servesAny({ models }: ModelServer): boolean {
  return models?.includes('*') ?? false;
}
