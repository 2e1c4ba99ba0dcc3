import type { z } from 'zod';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/**
 * The known key that an unknown one was probably meant to be: a neighbour that differs in little, or a key
 * of that name elsewhere, as its whole path. Null if nothing is near.
 */
export function suggestKey(schema: JsonSchema, path: readonly PropertyKey[], unknown: string): string | null {
  const siblings = Object.keys(propertiesOf(schemaAt(schema, path)));
  const near = siblings
    .map((key) => ({ key, distance: editDistance(plain(key), plain(unknown)) }))
    .filter(({ key, distance }) => distance <= Math.max(1, Math.floor(key.length / 3)))
    .sort((a, b) => a.distance - b.distance)[0];
  if (near !== undefined) return near.key;
  return allPaths(schema).find((known) => plain(known.split('.').at(-1) ?? '') === plain(unknown)) ?? null;
}

/** `adminListen` and `admin-listen` are `admin_listen` to a reader. */
const plain = (key: string) => key.toLowerCase().replace(/[^a-z0-9]/g, '');

const propertiesOf = (schema: JsonSchema | undefined) =>
  (schema?.properties ?? {}) as Record<string, JsonSchema>;

function schemaAt(schema: JsonSchema, path: readonly PropertyKey[]): JsonSchema | undefined {
  let at: JsonSchema | undefined = schema;
  for (const step of path) {
    at = typeof step === 'number' ? (at?.items as JsonSchema | undefined) : propertiesOf(at)[String(step)];
  }
  return at;
}

function allPaths(schema: JsonSchema, prefix = ''): string[] {
  return Object.entries(propertiesOf(schema)).flatMap(([key, value]) => [
    prefix + key,
    ...allPaths(value, `${prefix}${key}.`),
    ...(value.items === undefined ? [] : allPaths(value.items as JsonSchema, `${prefix}${key}[].`)),
  ]);
}

/** Levenshtein: the least number of inserted, deleted or replaced characters. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= b.length; column += 1) {
      const replaced = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const grown = Math.min(previous[column] ?? 0, current[column - 1] ?? 0) + 1;
      current.push(Math.min(replaced, grown));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
