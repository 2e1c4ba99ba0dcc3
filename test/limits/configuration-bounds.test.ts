import { describe, expect, test } from 'vitest';
import { ConfigError, parseConfig } from '#config';
import { parseDuration } from '#config/values';
import { toConfigJsonSchema } from '#testkit/config-json-schema.ts';

interface Schema {
  readonly title?: string;
  readonly type?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

/** A key with bounds: the values inside of them, and those one past them. `[]` is in the path of a list's items. */
interface BoundedKey {
  readonly path: string;
  readonly inside: readonly (number | string)[];
  readonly outside: readonly (number | string)[];
}

function keysOf(schema: Schema, path: readonly string[]): readonly BoundedKey[] {
  const nested = Object.entries(schema.properties ?? {}).flatMap(([name, each]) =>
    keysOf(each, [...path, name]),
  );
  const inItems = schema.items === undefined ? [] : keysOf(schema.items, [...path, '[]']);
  const bounds = boundsOf(schema);
  return [...nested, ...inItems, ...(bounds === null ? [] : [{ path: path.join('.'), ...bounds }])];
}

function boundsOf(schema: Schema): Omit<BoundedKey, 'path'> | null {
  const [, min, max] = /^a duration from (\S+) to (\S+), /.exec(schema.title ?? '') ?? [];
  if (min !== undefined && max !== undefined) {
    const [minMs = 0, maxMs = 0] = [parseDuration(min) ?? 0, parseDuration(max) ?? 0];
    return { inside: [`${minMs}ms`, `${maxMs}ms`], outside: [`${minMs - 1}ms`, `${maxMs + 1}ms`] };
  }
  for (const { type, minimum, maximum, anyOf = [] } of schema.anyOf ?? []) {
    const nullable = anyOf.find((each) => each.type === 'integer');
    const [low, high] = type === 'integer' ? [minimum, maximum] : [nullable?.minimum, nullable?.maximum];
    if (low !== undefined && high !== undefined) {
      return { inside: [low, high], outside: [low - 1, high + 1] };
    }
  }
  return null;
}

/** What the reader says of a key with this value: what it expected, or null if it takes it. */
function refusalOf(path: string, value: number | string): string | null {
  const isOfReplica = path.startsWith('replicas.');
  const config = nest(path.split('.'), value) as object;
  const whole = isOfReplica ? config : { replicas: [{ name: 'a', url: 'http://a:1' }], ...config };
  try {
    parseConfig(JSON.stringify(whole), { path: 'gateway.yaml', env: {} });
    return null;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    // The other lines say what else the section needs.
    return (
      error.message.split('\n').find((line) => line.includes(`: found ${JSON.stringify(value)}`)) ?? null
    );
  }
}

function nest([first, ...rest]: readonly string[], value: unknown): unknown {
  if (first === undefined) return value;
  return first === '[]' ? [nest(rest, value)] : { [first]: nest(rest, value) };
}

const KEYS = keysOf(toConfigJsonSchema() as Schema, []);

describe('each number, size and duration of the configuration', () => {
  test.for(KEYS)('$path is accepted at its bounds, and refused past them', ({ path, inside, outside }) => {
    expect(inside.map((value) => refusalOf(path, value))).toEqual(inside.map(() => null));
    expect(outside.map((value) => refusalOf(path, value))).toEqual(
      outside.map(() => expect.stringContaining('expected')),
    );
  });

  test('is among them', () => {
    const paths = KEYS.map(({ path }) => path);
    expect(paths).toEqual(
      expect.arrayContaining(['limits.body', 'timeouts.idle', 'gateway.workers', 'replicas.[].max_inflight']),
    );
    expect(paths.length).toBeGreaterThan(50);
  });
});
