import { closestName } from '#base';

/** Returns the known word that a typed one probably means: the only one that begins with it, or a similar one; else null. */
export function suggest(typed: string, known: readonly string[]): string | null {
  const begun = typed.length < 2 ? [] : known.filter((word) => word.startsWith(typed.toLowerCase()));
  return begun.length === 1 ? (begun[0] ?? null) : closestName(typed, known);
}
