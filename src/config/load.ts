import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { stringify } from 'yaml';
import { z } from 'zod';
import { type Config, toConfig } from './config.ts';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import type { Environment } from './environment.ts';
import { type ConfigFile, configSchema } from './schema.ts';
import { MASK, showValue, toKeyPath } from './shown-value.ts';
import { validate } from './validate.ts';
import type { Violation } from './violation.ts';
import { type Place, readYaml } from './yaml-source.ts';

/** Where a configuration text comes from: its path, for relative paths, and the variables that it may use. */
export interface ConfigOrigin {
  readonly path: string;
  readonly env: Environment;
}

/** Reads a configuration file. Throws a ConfigError with all its problems, or the error of the file system. */
export async function loadConfig(path: string, env: Environment): Promise<Config> {
  return parseConfig(await readFile(path, 'utf8'), { path, env });
}

/** Parses YAML to the configuration in effect. Throws a ConfigError with all its problems. */
export function parseConfig(text: string, origin: ConfigOrigin): Config {
  return toConfig(parseConfigFile(text, origin));
}

/** Parses YAML to the keys of the file, with all defaults. Throws a ConfigError with all its problems. */
export function parseConfigFile(text: string, { path, env }: ConfigOrigin): ConfigFile {
  const source = readYaml(text, env);
  if (source.data === undefined) throw new ConfigError(path, source.problems);
  const result = validate(source.data ?? {});
  const violations = 'violations' in result ? result.violations : [];
  const reported = new Set(source.problems.map(({ keyPath }) => keyPath));
  const problems = violations
    .map((violation) => toProblem(violation, source.places))
    .filter(({ keyPath }) => !reported.has(keyPath));
  if ('violations' in result || source.problems.length > 0) {
    throw new ConfigError(path, [...source.problems, ...problems]);
  }
  return fillDerivedDefaults(result.file, dirname(resolve(path)));
}

/** Prints the file with all defaults; secrets are masked. */
export function printConfigFile(file: ConfigFile): string {
  const { replicas, state, ...rest } = z.encode(configSchema, file);
  const shown = {
    ...rest,
    state:
      state?.redis === undefined ? state : { ...state, redis: state.redis.replace(/\/\/.*@/, `//${MASK}@`) },
    replicas: replicas.map((replica) => ('api_key' in replica ? { ...replica, api_key: MASK } : replica)),
  };
  return stringify(shown, { lineWidth: 0 });
}

/** Prints entries of `clients` as that section of a file. */
export function printApiClients(clients: NonNullable<z.input<typeof configSchema>['clients']>): string {
  return stringify({ clients }, { lineWidth: 0 });
}

/** Fills in the defaults that depend on other values, and makes paths absolute. */
function fillDerivedDefaults(file: ConfigFile, directory: string): ConfigFile {
  const { tls, admin_tls, ...gateway } = file.gateway;
  const replicas = file.replicas.map((replica) => ({
    ...(replica.url === undefined ? replica : { host: new URL(replica.url).hostname, ...replica }),
    ...(replica.tls === undefined ? {} : { tls: withAbsolutePaths(replica.tls, directory) }),
  }));
  return {
    ...file,
    state_dir: resolve(directory, file.state_dir),
    ...(file.clients_file === undefined ? {} : { clients_file: resolve(directory, file.clients_file) }),
    gateway: {
      ...gateway,
      ...(tls === undefined ? {} : { tls: withAbsolutePairs(tls, directory) }),
      ...(admin_tls === undefined ? {} : { admin_tls: withAbsolutePairs(admin_tls, directory) }),
    },
    replicas,
  };
}

interface TlsPaths {
  readonly ca?: string | undefined;
  readonly client_ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

function withAbsolutePaths<T extends TlsPaths>(tls: T, directory: string): T {
  const { ca, client_ca, cert, key } = tls;
  const paths = Object.entries({ ca, client_ca, cert, key }).flatMap(([name, path]) =>
    path === undefined ? [] : [[name, resolve(directory, path)]],
  );
  return { ...tls, ...Object.fromEntries(paths) };
}

function withAbsolutePairs<T extends TlsPaths & { readonly pairs: TlsPaths[] }>(
  tls: T,
  directory: string,
): T {
  const pairs = tls.pairs.map((pair) => withAbsolutePaths(pair, directory));
  return { ...withAbsolutePaths(tls, directory), pairs };
}

function toProblem(violation: Violation, places: ReadonlyMap<string, Place>): ConfigProblem {
  const keyPath = toKeyPath(violation.path);
  const place = places.get(keyPath);
  const line = place?.line ?? lineOfNearest(violation.path, places);
  if ('message' in violation) return { line, keyPath, text: violation.message };
  const found = showValue(place?.value, violation.path.at(-1));
  return { line, keyPath, text: `found ${found}, expected ${violation.expected}` };
}

function lineOfNearest(path: readonly PropertyKey[], places: ReadonlyMap<string, Place>): number {
  for (let length = path.length - 1; length >= 0; length -= 1) {
    const place = places.get(toKeyPath(path.slice(0, length)));
    if (place !== undefined) return place.line;
  }
  return 1;
}
