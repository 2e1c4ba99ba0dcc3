import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { findPrice } from './load.ts';
import { factsOf, namedKeysOf } from './schema/keys.ts';
import { type Config, configSchema } from './schema.ts';
import { isObject } from './validation/violation.ts';

/** What a reload would do. Key paths are those of the file; a list counts as one key. */
export interface ReloadPlan {
  /** The configuration in effect after the reload. */
  readonly config: Config;
  /** The keys whose value changes. */
  readonly changed: readonly string[];
  /** The keys whose new value needs a restart. They keep their current value. */
  readonly needsRestart: readonly string[];
}

/** Compares the configuration in effect with the next one. */
export function planReload(current: Config, wanted: Config): ReloadPlan {
  const next = wanted.currency === current.currency ? wanted : withFormerPrices(wanted, current);
  const changed: string[] = [];
  const needsRestart: string[] = [];

  /** The settings of a key after the reload. `isReloaded`: whether that is said of a section that it is in. */
  function merge(schema: z.core.$ZodType, keyPath: string, values: Values, isReloaded: boolean): unknown {
    const [before, wanted] = values;
    if (isDeepStrictEqual(before, wanted)) return before;
    const isOwn = isReloaded || factsOf(schema).isReloaded === true || isOtherPassword(keyPath, values);
    const parts = partsOf(schema, values);
    if (parts.length > 0 && isObject(before) && isObject(wanted)) {
      const merged = parts.map(({ key, name, schema: part }) => {
        const own = [before[name], wanted[name]] as const;
        return [name, merge(part, keyPath === '' ? key : `${keyPath}.${key}`, own, isOwn)] as const;
      });
      return Object.fromEntries(merged.filter(([, value]) => value !== undefined));
    }
    (isOwn ? changed : needsRestart).push(keyPath);
    return isOwn ? wanted : before;
  }

  const config = merge(configSchema, '', [current, next], false) as Config;
  return { config, changed, needsRestart };
}

type Values = readonly [before: unknown, wanted: unknown];

/** The keys of a section, or of a record in either configuration, with the names of their settings. */
function partsOf(schema: z.core.$ZodType, values: Values) {
  const record =
    schema instanceof z.ZodOptional || schema instanceof z.ZodPrefault ? schema.unwrap() : schema;
  if (record instanceof z.ZodRecord) {
    const names = new Set(values.flatMap((value) => Object.keys(value ?? {})));
    return Array.from(names, (name) => ({ key: name, name, schema: record.valueType }));
  }
  return namedKeysOf(schema);
}

/** Prices wait for the restart that another currency needs: until then costs have the name of the former one. */
function withFormerPrices(next: Config, current: Config): Config {
  const prices = new Map(current.replicas.map((replica) => [replica.name, replica.gpuHourPrice]));
  const priced = next.replicas.map((each) => ({ ...each, gpuHourPrice: prices.get(each.name) ?? null }));
  const replicas = priced.map((each) => ({ ...each, gpuHourPrice: findPrice(each, current) }));
  return { ...next, gpuHourPrice: current.gpuHourPrice, replicas };
}

/** Whether two URLs of `state.redis` differ in nothing but user and password, which the next connection uses. */
function isOtherPassword(keyPath: string, [before, wanted]: Values): boolean {
  if (keyPath !== 'state.redis' || typeof before !== 'string' || typeof wanted !== 'string') return false;
  return withoutCredentials(before) === withoutCredentials(wanted);
}

function withoutCredentials(address: string): string {
  const url = new URL(address);
  url.username = '';
  url.password = '';
  return url.href;
}
