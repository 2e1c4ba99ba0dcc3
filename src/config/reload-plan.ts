import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { type ConfigFile, configSchema } from './schema.ts';

/**
 * What a reload applies: sections and keys that can change between two requests. Everything else was bound, opened
 * or derived at start; a key that nobody thought of is among those.
 */
export const RELOADED_KEYS = [
  'headers',
  'replicas',
  'discovery',
  'routing',
  'health',
  'timeouts',
  'limits.body',
  'limits.event',
  'limits.queue',
  'shutdown',
  'log',
] as const;

/** What a reload would do. Key paths are the file's, `replicas` being one key. */
export interface ReloadPlan {
  /** The file in effect afterwards. */
  readonly file: ConfigFile;
  /** The keys that get another value. */
  readonly changed: readonly string[];
  /** The keys whose new value needs a restart: they keep the value of the start. */
  readonly needsRestart: readonly string[];
}

/** Compares the file in effect with the one just read, which is valid. */
export function planReload(current: ConfigFile, next: ConfigFile): ReloadPlan {
  const before: unknown = z.encode(configSchema, current);
  const wanted: unknown = z.encode(configSchema, next);
  const after = applyReloaded(before, wanted, '');
  return {
    file: configSchema.parse(after),
    changed: findDifferences(before, after, ''),
    needsRestart: findDifferences(after, wanted, ''),
  };
}

/** The values of `before`, but for those that a reload takes from `wanted`. */
function applyReloaded(before: unknown, wanted: unknown, keyPath: string): unknown {
  if (!isSection(before) || !isSection(wanted)) return isReloaded(keyPath) ? wanted : before;
  const values = keysOf(before, wanted).map((key) => [
    key,
    applyReloaded(before[key], wanted[key], join(keyPath, key)),
  ]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

function findDifferences(a: unknown, b: unknown, keyPath: string): string[] {
  if (!isSection(a) || !isSection(b)) return isDeepStrictEqual(a, b) ? [] : [keyPath];
  return keysOf(a, b).flatMap((key) => findDifferences(a[key], b[key], join(keyPath, key)));
}

function isReloaded(keyPath: string): boolean {
  return RELOADED_KEYS.some((key) => keyPath === key || keyPath.startsWith(`${key}.`));
}

type Section = Readonly<Record<string, unknown>>;

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Those of either: a key without a default may be in one of the two alone. */
function keysOf(a: Section, b: Section): string[] {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])];
}

function join(keyPath: string, key: string): string {
  return keyPath === '' ? key : `${keyPath}.${key}`;
}
