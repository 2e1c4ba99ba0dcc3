import { z } from 'zod';

/*
 * How a key of the file becomes a setting of the gateway. The schema says everything once: the key, its type with the
 * unit, its sentence, whether it holds a path or a secret, whether a reload applies it. Names of settings, masks, absolute
 * paths, the reload and the reference follow from it.
 */

/** What the schema says of a key beside its type and its sentence. */
export interface KeyFacts {
  /** The last word in the name of the setting: `timeouts.idle` is `idleMs`. */
  readonly unit?: 'Ms' | 'AtMs' | 'Bytes' | 'Share';
  /**
   * What messages and prints take care of. `url`: it may have credentials by mistake; `digest`: it may be the secret by
   * mistake; `secret_url`: it may have a password.
   */
  readonly holds?: 'path' | 'url' | 'secret' | 'digest' | 'secret_url';
  /**
   * Whether a reload applies it, because it can change between two requests. Every other key needs a restart: its value
   * was used to bind, open or compute something at start.
   */
  readonly isReloaded?: true;
}

/** Where schemas note their facts. */
export const facts = z.registry<KeyFacts>();

/** For sections and keys that a reload applies. */
export const RELOADED: KeyFacts = { isReloaded: true };

type Schema = z.core.$ZodType;

/** The section in each schema that `orOff` has made. */
const switches = new WeakMap<Schema, Schema>();

/** Computes a fact of a schema once: a file may ask for those of a client twenty thousand times. */
function knownOnce<T extends object>(compute: (schema: Schema) => T): (schema: Schema) => T {
  const known = new WeakMap<Schema, T>();
  return (schema) => {
    const before = known.get(schema);
    if (before !== undefined) return before;
    const fact = compute(schema);
    known.set(schema, fact);
    return fact;
  };
}

/** What a schema makes optional, gives a default or decodes, from the outside to the inside. */
const layersOf: (schema: Schema) => readonly Schema[] = knownOnce((schema) => {
  if (schema instanceof z.ZodPipe) return [schema, ...layersOf(schema.in)];
  const ofSwitch = switches.get(schema);
  if (ofSwitch !== undefined) return [schema, ...layersOf(ofSwitch)];
  const isWrapped = [z.ZodOptional, z.ZodNullable, z.ZodPrefault].some((kind) => schema instanceof kind);
  return isWrapped ? [schema, ...layersOf((schema as z.ZodOptional).unwrap())] : [schema];
});

/** The facts of a key. */
export const factsOf = knownOnce(
  (schema): KeyFacts => Object.assign({}, ...layersOf(schema).map((layer) => facts.get(layer))),
);

/** The keys of a section; none for any other value. */
export function keysOf(schema: Schema | undefined): Readonly<Record<string, Schema>> {
  const object = schema === undefined ? undefined : layersOf(schema).at(-1);
  return object instanceof z.ZodObject ? object.shape : {};
}

/** The items of a list, or the values of names that the file's author chooses. */
export function itemOf(schema: Schema | undefined): Schema | undefined {
  const list = schema === undefined ? undefined : layersOf(schema).at(-1);
  if (list instanceof z.ZodRecord) return list.valueType;
  return list instanceof z.ZodArray ? list.element : undefined;
}

/** The keys of a section with the names of their settings. */
export const namedKeysOf = knownOnce((section) =>
  Object.entries(keysOf(section)).map(([key, schema]) => ({ key, name: nameOf(key, schema), schema })),
);

declare const unit: unique symbol;

/** A number that has its unit in the name of its setting. */
export type In<Unit extends NonNullable<KeyFacts['unit']>> = number & { readonly [unit]?: Unit };

type UnitOf<T> = T extends { readonly [unit]?: infer Unit extends string }
  ? typeof unit extends keyof T
    ? Unit
    : never
  : never;

type CamelCase<Key extends string> = Key extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Key;

type WithUnit<Name extends string, Unit extends string> = [Unit] extends [never]
  ? Name
  : Name extends `${string}${Unit}`
    ? Name
    : `${Name}${Unit}`;

type Plain<T> = T extends undefined ? null : typeof unit extends keyof T ? number : T;

type Shape = Readonly<Record<string, z.ZodType>>;

/** The settings of a section: keys in camel case, with units; null where an optional key is not set. */
export type Settings<S extends Shape> = {
  readonly [Key in keyof S as WithUnit<CamelCase<Key & string>, UnitOf<z.output<S[Key]>>>]: Plain<
    z.output<S[Key]>
  >;
};

/** The name of the setting that a key becomes. */
export function nameOf(key: string, schema: Schema): string {
  const name = key.replace(/_([a-z0-9])/g, (_, first: string) => first.toUpperCase());
  const { unit: word = '' } = factsOf(schema);
  return name.endsWith(word) ? name : name + word;
}

/** Keys of the file with their values; decodes to settings. Other keys are refused. */
export function section<S extends Shape>(shape: S) {
  const object = z.strictObject(shape);
  const keys = namedKeysOf(object);
  return z.codec(object, z.custom<Settings<S>>(), {
    decode(given: Readonly<Record<string, unknown>>) {
      // Not from a list of entries: a file may have half a million clients.
      const settings: Record<string, unknown> = {};
      for (const { key, name } of keys) settings[name] = given[key] ?? null;
      return settings as Settings<S>;
    },
    encode(settings: Readonly<Record<string, unknown>>) {
      const given = keys.filter(
        ({ name, schema }) => !(schema instanceof z.ZodOptional && settings[name] === null),
      );
      return Object.fromEntries(given.map(({ key, name }) => [key, settings[name]])) as never;
    },
  });
}

/** A section, or `off` instead of it; that decodes to null. */
export function orOff<S extends z.ZodType>(given: S) {
  // YAML 1.1 has `off` as false.
  const word = z.union([z.literal('off'), z.literal(false)]);
  const off = z.codec(word, z.null(), { decode: () => null, encode: () => 'off' as const });
  const either = z.union([off, given], { error: 'off, or keys with values' });
  switches.set(either, given);
  return either;
}

type Change = (value: unknown, facts: KeyFacts) => unknown;

/** Settings with each of their values changed; those that are not set stay null. */
export function mapValues<T>(schema: Schema, settings: T, change: Change): T;
export function mapValues(schema: Schema, value: unknown, change: Change): unknown {
  if (value === null) return null;
  const item = itemOf(schema);
  if (item !== undefined && Array.isArray(value)) return value.map((each) => mapValues(item, each, change));
  const keys = namedKeysOf(schema);
  if (keys.length === 0) return change(value, factsOf(schema));
  const settings = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(
    keys.map(({ name, schema }) => [name, mapValues(schema, settings[name], change)]),
  );
}
