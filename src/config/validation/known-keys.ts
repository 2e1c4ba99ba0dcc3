import type { z } from 'zod';
import { closestName, isSameName } from '#base';
import { itemOf, keysOf } from '../schema/keys.ts';
import { configSchema, schemaAt } from '../schema.ts';

/** A top-level key that the file's author may use for anchors; the gateway does not read it. */
export function isExtensionKey(key: string): boolean {
  return key.startsWith('x-');
}

/** Says what is wrong with a key that the schema does not have, and what was probably meant. */
export function explainUnknownKey(path: readonly PropertyKey[], key: string): string {
  if (isExtensionKey(key)) return 'unknown key; keys that begin with x- are ignored at the top level only';
  const siblings = Object.keys(keysOf(schemaAt(path)));
  // A key with that name in another section: in a section with keys of its own it is one guess among them.
  const far = allPaths(configSchema).find((known) => isSameName(known.split('.').at(-1) ?? '', key));
  const meant = closestName(key, siblings) ?? (path.length === 0 ? far : undefined);
  if (meant !== undefined) return `unknown key; did you mean ${meant}?`;
  const own = path.length === 0 ? ', or a key of your own that begins with x-' : '';
  const other = far === undefined ? '' : `; or did you mean ${far}?`;
  return `unknown key, expected one of ${siblings.join(', ')}${own}${other}`;
}

function allPaths(schema: z.core.$ZodType, prefix = ''): string[] {
  return Object.entries(keysOf(schema)).flatMap(([key, value]) => {
    const item = itemOf(value);
    return [
      prefix + key,
      ...allPaths(value, `${prefix}${key}.`),
      ...(item === undefined ? [] : allPaths(item, `${prefix}${key}[].`)),
    ];
  });
}
