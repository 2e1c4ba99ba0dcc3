import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { type ConfigFile, configSchema } from './schema.ts';

/**
 * The sections and keys that a reload applies, because they can change between two requests. Every other key needs a
 * restart: its value was used to bind, open or compute something at start.
 */
export const RELOADED_KEYS = [
  'gateway.admin_hosts',
  'gateway.trusted_proxies',
  'headers',
  'endpoints',
  'pass',
  'models_listing',
  'aliases',
  'clients',
  'clients_file',
  'jwt',
  'tenant_limits',
  'replicas',
  'discovery',
  'routing',
  'retry',
  'health',
  'rollout',
  'timeouts',
  'limits.body',
  'limits.before_model',
  'limits.event',
  'limits.queue',
  'limits.background',
  'shutdown',
  'trace.url_template',
  'log.level',
  'log.requests',
] as const;

/** What a reload would do. Key paths are those of the file; `replicas` counts as one key. */
export interface ReloadPlan {
  /** The file in effect after the reload. */
  readonly file: ConfigFile;
  /** The keys whose value changes. */
  readonly changed: readonly string[];
  /** The keys whose new value needs a restart. They keep their current value. */
  readonly needsRestart: readonly string[];
}

/** Compares the file in effect with the next one, which is valid. */
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

/** Returns `before` with the values that a reload takes from `wanted`. */
function applyReloaded(before: unknown, wanted: unknown, keyPath: string): unknown {
  if (!isSection(before) || !isSection(wanted)) {
    return isReloaded(keyPath) || isOtherPassword(keyPath, before, wanted) ? wanted : before;
  }
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
function keysOf(a: Section, b: Section): string[] {
  return [...new Set([...Object.keys(a), ...Object.keys(b)])];
}

function join(keyPath: string, key: string): string {
  return keyPath === '' ? key : `${keyPath}.${key}`;
}
