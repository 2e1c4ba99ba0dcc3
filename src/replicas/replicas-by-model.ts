import type { Engine } from '../config/config.ts';

/** A replica as far as it matters for what it serves. */
export interface ModelServer {
  /** `null`: not known yet. `['*']`: serves any name. */
  readonly models: readonly string[] | null;
  readonly engine: Engine;
}

/** Who is asked for which model, each in the order of the replicas. */
export interface ReplicasByModel<T> {
  /** The replicas known to serve a model, by its name; those that serve any name are among them. */
  readonly byModel: ReadonlyMap<string, readonly T[]>;
  /** For every other name: those that serve any; without such ones, those whose list is not known yet. */
  readonly ofUnknown: readonly T[];
}

/** What Ollama takes a name without a tag for. */
const DEFAULT_TAG = ':latest';

/** Sorts replicas by what they are known to serve. */
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

/**
 * The name by whose turns a model goes: `otiny` and `otiny:latest` are one model with one turn, as long as the same
 * replicas serve both names.
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

/** The names in a replica's list, and those by which its engine knows the same models. */
function namesServed({ models, engine }: ModelServer): readonly string[] {
  if (models === null || engine !== 'ollama') return models ?? [];
  return models.flatMap((name) => [name, ...otherNameOf(name)]);
}

/** `otiny:latest` → `otiny` and the other way round. A colon before a slash is that of a registry's port. */
function otherNameOf(name: string): readonly string[] {
  if (name === '*') return [];
  if (name.endsWith(DEFAULT_TAG)) return [name.slice(0, -DEFAULT_TAG.length)];
  return /:[^/]*$/.test(name) ? [] : [name + DEFAULT_TAG];
}

function servesAny({ models }: ModelServer): boolean {
  return models?.includes('*') ?? false;
}
