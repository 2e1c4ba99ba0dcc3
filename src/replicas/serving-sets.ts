/** A replica as far as it matters for what it serves. */
interface ServesModels {
  /** `null`: not known yet. `['*']`: serves any name. */
  readonly models: readonly string[] | null;
}

/** Who is asked for which model, each in the order of the replicas. */
export interface ServingSets<T> {
  /** The replicas known to serve a model, by its name; those that serve any name are among them. */
  readonly byModel: ReadonlyMap<string, readonly T[]>;
  /** For every other name: those that serve any; without such ones, those whose list is not known yet. */
  readonly ofUnknown: readonly T[];
}

/** Sorts replicas by what they are known to serve. */
export function toServingSets<T extends ServesModels>(replicas: readonly T[]): ServingSets<T> {
  const names = new Set(replicas.flatMap(({ models }) => models ?? []));
  names.delete('*');
  const byModel = new Map<string, T[]>([...names].map((name) => [name, []]));
  for (const replica of replicas) {
    const served = servesAny(replica) ? names : new Set(replica.models);
    for (const name of served) byModel.get(name)?.push(replica);
  }
  const wildcards = replicas.filter(servesAny);
  return {
    byModel,
    ofUnknown: wildcards.length > 0 ? wildcards : replicas.filter(({ models }) => models === null),
  };
}

function servesAny({ models }: ServesModels): boolean {
  return models?.includes('*') ?? false;
}
