import { z } from 'zod';
import { closestName, isSameName } from '#base';
import { configSchema } from '../schema.ts';

/** A top-level key that the file's author may use for anchors; the gateway does not read it. */
export function isExtensionKey(key: string): boolean {
  return key.startsWith('x-');
}

/** Says what is wrong with a key that the schema does not have, and what was probably meant. */
export type KeyExplainer = (path: readonly PropertyKey[], key: string) => string;

/** Creates the explainer for one reading. */
export function createKeyExplainer(): KeyExplainer {
  let paths: readonly string[] | null = null;
  const findElsewhere = (key: string): string | null => {
    paths ??= allPaths(configSchema);
    return paths.find((known) => isSameName(known.split('.').at(-1) ?? '', key)) ?? null;
  };
  return (path, key) => {
    const siblings = Object.keys(keysOf(schemaAt(path)));
    // Else the whole path of a key with that name in another section.
    const meant = closestName(key, siblings) ?? findElsewhere(key);
    if (isExtensionKey(key)) return 'unknown key; keys that begin with x- are ignored at the top level only';
    if (meant !== null) return `unknown key; did you mean ${meant}?`;
    const own = path.length === 0 ? ', or a key of your own that begins with x-' : '';
    return `unknown key, expected one of ${siblings.join(', ')}${own}`;
  };
}

type Schema = z.core.$ZodType;

/** Without what makes it optional, gives it a default, or decodes it. */
function unwrap(schema: Schema): Schema {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) return unwrap(schema.unwrap());
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodDefault) return unwrap(schema.unwrap());
  return schema instanceof z.ZodPipe ? unwrap(schema.in) : schema;
}

function keysOf(schema: Schema | undefined): Readonly<Record<string, Schema>> {
  const object = schema === undefined ? undefined : unwrap(schema);
  return object instanceof z.ZodObject ? object.shape : {};
}

function itemOf(schema: Schema | undefined): Schema | undefined {
  const list = schema === undefined ? undefined : unwrap(schema);
  return list instanceof z.ZodArray ? list.element : undefined;
}

function schemaAt(path: readonly PropertyKey[]): Schema | undefined {
  let at: Schema | undefined = configSchema;
  for (const step of path) at = typeof step === 'number' ? itemOf(at) : keysOf(at)[String(step)];
  return at;
}

function allPaths(schema: Schema, prefix = ''): string[] {
  return Object.entries(keysOf(schema)).flatMap(([key, value]) => {
    const item = itemOf(value);
    return [
      prefix + key,
      ...allPaths(value, `${prefix}${key}.`),
      ...(item === undefined ? [] : allPaths(item, `${prefix}${key}[].`)),
    ];
  });
}
