import type { Span } from '#json';

/** The models that other names stand for, by these names; null: there are none. */
export type ModelAliases = ReadonlyMap<string, string> | null;

/** The name of a model that a client wrote instead of the model's own. */
export interface UsedAlias {
  readonly name: string;
  /** Where it stands in the body, with its quotes: the last `model`, which counts. */
  readonly span: Span;
}

/** The model that a name stands for: an alias before a model of the same name. */
export function resolveModel(name: string, aliases: ModelAliases): string {
  return aliases?.get(name) ?? name;
}
