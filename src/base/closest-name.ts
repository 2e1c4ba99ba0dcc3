/**
 * Returns the known name that a mistyped one probably means; null if none is similar. Case, dashes and underscores do
 * not count: `adminListen` and `admin_listen` are equal.
 */
export function closestName(mistyped: string, known: Iterable<string>): string | null {
  const wanted = plain(mistyped);
  let closest: string | null = null;
  let closestDistance = Number.POSITIVE_INFINITY;
  for (const name of known) {
    const distance = editDistance(plain(name), wanted);
    const isSimilar =
      (distance === 0 || distance < wanted.length) &&
      distance <= Math.max(1, Math.floor(Math.min(name.length, wanted.length) / 3));
    if (isSimilar && distance < closestDistance) {
      closest = name;
      closestDistance = distance;
    }
  }
  return closest;
}

/** Whether two names differ in case, dashes and underscores only. */
export function isSameName(a: string, b: string): boolean {
  return plain(a) === plain(b);
}

/** Names are short. Of a longer one, which can only be hostile, the beginning is compared. */
const MAX_COMPARED_CHARS = 128;

const plain = (name: string) =>
  name
    .slice(0, MAX_COMPARED_CHARS)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, '');

/**
 * The smallest number of characters that are inserted, deleted, replaced or swapped with their neighbour (optimal string
 * alignment).
 */
function editDistance(a: string, b: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = (last[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const grown = Math.min(last[column] ?? 0, current[column - 1] ?? 0) + 1;
      const isSwap = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      const swapped = isSwap ? (beforeLast[column - 2] ?? 0) + 1 : grown;
      current.push(Math.min(replaced, grown, swapped));
    }
    [beforeLast, last] = [last, current];
  }
  return last[b.length] ?? 0;
}
