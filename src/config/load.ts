import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, resolve } from 'node:path';
import { stringify } from 'yaml';
import { z } from 'zod';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import { type Config, toConfig } from './effective-config.ts';
import type { Environment } from './environment.ts';
import { type ConfigFile, configSchema } from './schema.ts';
import { readReferencedFiles, type SecretFiles } from './secrets/references.ts';
import { validate } from './validation/validate.ts';
import type { Violation } from './validation/violation.ts';
import { MASK, showValue, toKeyPath } from './values/shown-value.ts';
import { type Place, readYaml, type YamlSource } from './yaml/yaml-source.ts';

/** Where a configuration text comes from: its path, for relative paths, and the variables and files that it may use. */
export interface ConfigOrigin {
  readonly path: string;
  readonly env: Environment;
  /** The files that its references name, already read. Unset: none. */
  readonly files?: SecretFiles;
}

/** A valid file, and which of its values must not be shown. */
export interface LoadedConfigFile {
  readonly file: ConfigFile;
  /** The key paths of the values that contain the content of another file. */
  readonly fromFiles: ReadonlySet<string>;
}

/** Reads a configuration file. Throws a ConfigError with all its problems, or the error of the file system. */
export async function loadConfig(path: string, env: Environment): Promise<Config> {
  return toConfig((await loadConfigText(await readFile(path, 'utf8'), { path, env })).file);
}

/** Parses YAML after reading the files that it refers to. Rejects with a ConfigError with all its problems. */
export async function loadConfigText(
  text: string,
  { path, env }: Pick<ConfigOrigin, 'path' | 'env'>,
): Promise<LoadedConfigFile> {
  const files = await readReferencedFiles(text, dirname(resolve(path)));
  return parseLoaded(text, { path, env, files });
}

/** Parses YAML to the configuration in effect. Throws a ConfigError with all its problems. */
export function parseConfig(text: string, origin: ConfigOrigin): Config {
  return toConfig(parseConfigFile(text, origin));
}

/** Parses YAML to the keys of the file, with all defaults. Throws a ConfigError with all its problems. */
export function parseConfigFile(text: string, origin: ConfigOrigin): ConfigFile {
  return parseLoaded(text, origin).file;
}

function parseLoaded(text: string, { path, env, files = new Map() }: ConfigOrigin): LoadedConfigFile {
  const source = readYaml(text, { env, files });
  if (source.data === undefined) throw new ConfigError(path, source.problems);
  const result = validate(source.data ?? {});
  const violations = 'violations' in result ? result.violations : [];
  const reported = new Set(source.problems.map(({ keyPath }) => keyPath));
  const problems = violations
    .map((violation) => toProblem(violation, source))
    .filter(({ keyPath }) => !reported.has(keyPath));
  if ('violations' in result || source.problems.length > 0) {
    throw new ConfigError(path, [...source.problems, ...problems]);
  }
  return { file: fillDerivedDefaults(result.file, dirname(resolve(path)), env), fromFiles: source.fromFiles };
}

/** Prints the file with all defaults; secrets, and all that comes from other files, are masked. */
export function printConfigFile(file: ConfigFile, fromFiles: ReadonlySet<string> = new Set()): string {
  const { replicas, state, ...rest } = z.encode(configSchema, file);
  const shown = {
    ...rest,
    state:
      state?.redis === undefined ? state : { ...state, redis: state.redis.replace(/\/\/.*@/, `//${MASK}@`) },
    replicas: replicas.map((replica) => ('api_key' in replica ? { ...replica, api_key: MASK } : replica)),
  };
  return stringify(maskPaths(shown, [], fromFiles), { lineWidth: 0 });
}

/** Replaces the values at these key paths. The host of a replica may have been taken from its URL. */
function maskPaths(value: unknown, path: readonly PropertyKey[], masked: ReadonlySet<string>): unknown {
  const isDerivedHost = path.at(-1) === 'host' && masked.has(toKeyPath([...path.slice(0, -1), 'url']));
  if (isDerivedHost || masked.has(toKeyPath(path))) return MASK;
  if (Array.isArray(value)) return value.map((item, index) => maskPaths(item, [...path, index], masked));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, maskPaths(item, [...path, key], masked)]),
  );
}

/** Prints entries of `clients` as that section of a file. */
export function printApiClients(clients: NonNullable<z.input<typeof configSchema>['clients']>): string {
  return stringify({ clients }, { lineWidth: 0 });
}

/** Fills in the defaults that depend on other values, and makes paths absolute. */
function fillDerivedDefaults(file: ConfigFile, directory: string, env: Environment): ConfigFile {
  const { tls, admin_tls, ...gateway } = file.gateway;
  const replicas = file.replicas.map((replica) => ({
    ...(replica.url === undefined ? replica : { host: new URL(replica.url).hostname, ...replica }),
    ...(replica.tls === undefined ? {} : { tls: withAbsolutePaths(replica.tls, directory) }),
    ...(replica.kubernetes === undefined
      ? {}
      : { kubernetes: withAbsoluteFiles(replica.kubernetes, directory) }),
  }));
  return {
    ...file,
    state_dir: resolve(findStateBase(env) ?? directory, file.state_dir),
    ...(file.clients_file === undefined ? {} : { clients_file: resolve(directory, file.clients_file) }),
    ...(file.jwt === undefined ? {} : { jwt: { ...file.jwt, jwks: toSource(file.jwt.jwks, directory) } }),
    gateway: {
      ...gateway,
      ...(tls === undefined ? {} : { tls: withAbsolutePairs(tls, directory) }),
      ...(admin_tls === undefined ? {} : { admin_tls: withAbsolutePairs(admin_tls, directory) }),
    },
    replicas,
  };
}

/** A URL as it is; a path as an absolute one. */
function toSource(given: string, directory: string): string {
  return /^https?:/i.test(given) ? given : resolve(directory, given);
}

/**
 * The directory that a relative `state_dir` is in: the one that systemd (StateDirectory=) or the image made for it. It is
 * writable where the directory of the file need not be.
 */
function findStateBase({ STATE_DIRECTORY = '' }: Environment): string | null {
  const [first = ''] = STATE_DIRECTORY.split(':'); // systemd.exec(5): several are separated by colons
  return isAbsolute(first) ? first : null;
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

function withAbsoluteFiles<T extends { readonly token_file: string; readonly ca_file: string }>(
  source: T,
  directory: string,
): T {
  const { token_file, ca_file } = source;
  return { ...source, token_file: resolve(directory, token_file), ca_file: resolve(directory, ca_file) };
}

function withAbsolutePairs<T extends TlsPaths & { readonly pairs: TlsPaths[] }>(
  tls: T,
  directory: string,
): T {
  const pairs = tls.pairs.map((pair) => withAbsolutePaths(pair, directory));
  return { ...withAbsolutePaths(tls, directory), pairs };
}

function toProblem(violation: Violation, { places, fromFiles }: YamlSource): ConfigProblem {
  const keyPath = toKeyPath(violation.path);
  const place = places.get(keyPath);
  const line = place?.line ?? lineOfNearest(violation.path, places);
  if ('message' in violation) {
    // A message may quote the value after expansion.
    const text = fromFiles.has(keyPath) ? 'the content of the file does not fit here' : violation.message;
    return { line, keyPath, text };
  }
  // What is in a list is as secret as the list.
  const key = violation.path.findLast((step) => typeof step === 'string');
  const found = showValue(place?.value, key);
  return { line, keyPath, text: `found ${found}, expected ${violation.expected}` };
}

function lineOfNearest(path: readonly PropertyKey[], places: ReadonlyMap<string, Place>): number {
  for (let length = path.length - 1; length >= 0; length -= 1) {
    const place = places.get(toKeyPath(path.slice(0, length)));
    if (place !== undefined) return place.line;
  }
  return 1;
}
