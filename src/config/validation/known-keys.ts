import type { z } from 'zod';
import { closestName, isSameName } from '../../closest-name.ts';
import { toConfigJsonSchema } from '../json-schema.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** A top-level key that the file's author may use for anchors; the gateway does not read it. */
export function isExtensionKey(key: string): boolean {
  return key.startsWith('x-');
}

/** Says what is wrong with a key that the schema does not have, and what was probably meant. */
export type KeyExplainer = (path: readonly PropertyKey[], key: string) => string;

/** Creates the explainer for one reading. It needs the whole schema, which takes long to make: once, if it is asked. */
export function createKeyExplainer(): KeyExplainer {
  let known: KnownKeys | null = null;
  return (path, key) => {
    known ??= readSchema();
    return explainUnknownKey(known, path, key);
  };
}

interface KnownKeys {
  readonly schema: JsonSchema;
  readonly paths: readonly string[];
}

function readSchema(): KnownKeys {
  const schema = toConfigJsonSchema();
  return { schema, paths: allPaths(schema) };
}

function explainUnknownKey({ schema, paths }: KnownKeys, path: readonly PropertyKey[], key: string): string {
  const siblings = Object.keys(propertiesOf(schemaAt(schema, path)));
  const meant = closestName(key, siblings) ?? findElsewhere(paths, key);
  if (isExtensionKey(key)) return 'unknown key; keys that begin with x- are ignored at the top level only';
  if (meant !== null) return `unknown key; did you mean ${meant}?`;
  const own = path.length === 0 ? ', or a key of your own that begins with x-' : '';
  return `unknown key, expected one of ${siblings.join(', ')}${own}`;
}

/** The whole path of a key with that name in another section. */
function findElsewhere(paths: readonly string[], key: string): string | null {
  return paths.find((known) => isSameName(known.split('.').at(-1) ?? '', key)) ?? null;
}

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
