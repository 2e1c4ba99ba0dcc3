/**
 * Returns the known word that a mistyped one probably means: it begins with it, or differs by few letters. Null if none
 * is close.
 */
export function suggest(typed: string, known: readonly string[]): string | null {
  const wanted = typed.toLowerCase();
  const begun = known.filter((word) => wanted.length >= 2 && word.startsWith(wanted));
  if (begun.length === 1) return begun[0] ?? null;
  // A short word is close to many others.
  const limit = Math.min(3, Math.floor(wanted.length / 3) + 1);
  const byDistance = known
    .map((word) => ({ word, distance: toDistance(wanted, word) }))
    .filter(({ word, distance }) => distance <= limit && distance < word.length - 1)
    .sort((a, b) => a.distance - b.distance);
  return byDistance[0]?.word ?? null;
}

/** How many letters must be inserted, removed, replaced or swapped with their neighbour (optimal string alignment). */
function toDistance(a: string, b: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(
        Math.min(
          (last[j] ?? 0) + 1,
          (row[j - 1] ?? 0) + 1,
          (last[j - 1] ?? 0) + cost,
          isSwap ? (beforeLast[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length] ?? 0;
}
