import { isDeepStrictEqual } from 'node:util';
import type { z } from 'zod';
import { toFile } from './load.ts';
import { factsOf, keysOf } from './schema/keys.ts';
import { type Config, configSchema } from './schema.ts';

/** The sections and keys that a reload applies, in the order of the schema. */
export const RELOADED_KEYS: readonly string[] = findReloaded(configSchema, '');

function findReloaded(schema: z.core.$ZodType, keyPath: string): string[] {
  if (factsOf(schema).isReloaded) return [keyPath];
  return Object.entries(keysOf(schema)).flatMap(([key, own]) => findReloaded(own, join(keyPath, key)));
}

/** What a reload would do. Key paths are those of the file; `replicas` counts as one key. */
export interface ReloadPlan {
  /** The configuration in effect after the reload. */
  readonly config: Config;
  /** The keys whose value changes. */
  readonly changed: readonly string[];
  /** The keys whose new value needs a restart. They keep their current value. */
  readonly needsRestart: readonly string[];
}

/** Compares the configuration in effect with the next one. */
export function planReload(current: Config, next: Config): ReloadPlan {
  const before: unknown = toFile(current);
  const wanted: unknown = toFile(next);
  const after = applyReloaded(before, wanted, '');
  return {
    config: configSchema.parse(after),
    changed: findDifferences(before, after, ''),
    needsRestart: findDifferences(after, wanted, ''),
  };
}

/** Returns `before` with the values that a reload takes from `wanted`. */
function applyReloaded(before: unknown, wanted: unknown, keyPath: string): unknown {
  if (!isSection(before) || !isSection(wanted)) {
    return isReloaded(keyPath) || isOtherPassword(keyPath, before, wanted) ? wanted : before;
  }
  const values = keysOfBoth(before, wanted).map((key) => [
    key,
    applyReloaded(before[key], wanted[key], join(keyPath, key)),
  ]);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

function findDifferences(a: unknown, b: unknown, keyPath: string): string[] {
  if (!isSection(a) || !isSection(b)) return isDeepStrictEqual(a, b) ? [] : [keyPath];
  return keysOfBoth(a, b).flatMap((key) => findDifferences(a[key], b[key], join(keyPath, key)));
}

function isReloaded(keyPath: string): boolean {
  return RELOADED_KEYS.some((key) => keyPath === key || keyPath.startsWith(`${key}.`));
}

/** Whether two URLs of `state.redis` differ in nothing but user and password, which the next connection uses. */
function isOtherPassword(keyPath: string, before: unknown, wanted: unknown): boolean {
  if (keyPath !== 'state.redis' || typeof before !== 'string' || typeof wanted !== 'string') return false;
  return withoutCredentials(before) === withoutCredentials(wanted);
}

function withoutCredentials(address: string): string {
  const url = new URL(address);
  url.username = '';
  url.password = '';
  return url.href;
}

type Section = Readonly<Record<string, unknown>>;

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The keys of both: a key without a default may be missing in one of them. */
function keysOfBoth(a: Section, b: Section): string[] {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])];
}

function join(keyPath: string, key: string): string {
  return keyPath === '' ? key : `${keyPath}.${key}`;
}
