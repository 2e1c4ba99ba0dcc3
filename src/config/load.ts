import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, resolve } from 'node:path';
import { stringify } from 'yaml';
import { z } from 'zod';
import { toFileProblem, UnusableSettingError } from '#base';
import type { Environment } from '#config/secrets';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import { type ConfigFile, toDigest } from './config-files.ts';
import { apiClient } from './schema/clients.ts';
import { mapValues } from './schema/keys.ts';
import { type Config, configSchema, factsAt } from './schema.ts';
import { MASK, showValue, toKeyPath } from './shown-value.ts';
import { validate, validateClient } from './validation/validate.ts';
import type { Violation } from './validation/violation.ts';
import { readReferencedFiles, type SecretFiles } from './yaml/references.ts';
import { type Place, readYaml, type YamlSource } from './yaml/yaml-source.ts';

/** Where a configuration text comes from: its path, for relative paths, and the variables and files that it may use. */
export interface ConfigOrigin {
  readonly path: string;
  readonly env: Environment;
  /** The files that its references name, already read. Unset: none. */
  readonly files?: SecretFiles;
}

/** A configuration, and which of its values must not be shown. */
export interface LoadedConfig {
  readonly config: Config;
  /** The key paths of the values that contain the content of another file. */
  readonly fromFiles: ReadonlySet<string>;
  /** The file itself, and those that it refers to. */
  readonly files: readonly ConfigFile[];
}

/**
 * Reads a configuration file and the files that it refers to. Rejects with a ConfigError with all its problems, or with
 * an UnusableSettingError if the file cannot be read.
 */
export async function loadConfig(path: string, env: Environment): Promise<LoadedConfig> {
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new UnusableSettingError(
      `cannot read the configuration file ${path}: ${toFileProblem(error)}`,
      error,
    );
  });
  const directory = dirname(resolve(path));
  const references = await readReferencedFiles(text, directory);
  const referenced = [...references].map(([name, content]) => ({
    path: resolve(directory, name),
    kind: 'reference' as const,
    digest: typeof content === 'string' ? toDigest(content) : null,
  }));
  return {
    ...parseLoaded(text, { path, env, files: references }),
    files: [{ path: resolve(path), kind: 'configuration', digest: toDigest(text) }, ...referenced],
  };
}

/** Parses YAML to the configuration in effect, with all defaults. Throws a ConfigError with all its problems. */
export function parseConfig(text: string, origin: ConfigOrigin): Config {
  return parseLoaded(text, origin).config;
}

function parseLoaded(
  text: string,
  { path, env, files = new Map() }: ConfigOrigin,
): Omit<LoadedConfig, 'files'> {
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
  return { config: fillDerived(result.config, dirname(resolve(path)), env), fromFiles: source.fromFiles };
}

/** Prints the configuration as a file with all defaults; secrets, and all that comes from other files, are masked. */
export function printConfig(config: Config, fromFiles: ReadonlySet<string> = new Set()): string {
  const shown = mapValues(configSchema, config, (value, { holds }) => {
    if (holds === 'secret_url') return String(value).replace(/\/\/.*@/, `//${MASK}@`);
    return holds === 'secret' ? MASK : value;
  });
  const file = z.encode(configSchema, shown as z.output<typeof configSchema>);
  return stringify(maskPaths(file, [], fromFiles), { lineWidth: 0 });
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

/** An entry of `clients`, as data and as that section of a file. */
export interface ClientEntry {
  readonly entry: z.input<typeof apiClient>;
  readonly yaml: string;
}

/** Checks an entry of `clients` from texts; otherwise says which key is wrong, and what was expected. */
export function createClientEntry(
  given: Readonly<Record<string, unknown>>,
): ClientEntry | { readonly key: string; readonly expected: string } {
  const checked = validateClient(given);
  if ('client' in checked) {
    const entry = z.encode(apiClient, checked.client);
    return { entry, yaml: stringify({ clients: [entry] }, { lineWidth: 0 }) };
  }
  const [first] = checked.violations;
  if (first === undefined) throw new RangeError('an entry that is refused breaks a rule');
  return { key: String(first.path[2]), expected: 'expected' in first ? first.expected : first.message };
}

/** Fills in the defaults that depend on other values, and makes paths absolute. */
function fillDerived(config: Config, directory: string, env: Environment): Config {
  const stateDir = resolve(findStateBase(env) ?? directory, config.stateDir);
  const absolute = mapValues(configSchema, { ...config, stateDir }, (value, { holds }) =>
    holds === 'path' && !/^https?:/i.test(String(value)) ? resolve(directory, String(value)) : value,
  );
  return {
    ...absolute,
    replicas: absolute.replicas.map((replica) => {
      const host = replica.url === null ? null : new URL(replica.url).hostname;
      return { ...replica, host: replica.host ?? host, gpuHourPrice: findPrice(replica, config) };
    }),
  };
}

/** What an hour of one GPU of a replica costs: its own price, or that of its model; null: it has none. */
export function findPrice(
  { gpuHourPrice, gpuModel }: Config['replicas'][number],
  { gpuHourPrice: byModel }: Pick<Config, 'gpuHourPrice'>,
): number | null {
  if (gpuHourPrice !== null || gpuModel === null) return gpuHourPrice;
  return Object.hasOwn(byModel, gpuModel) ? (byModel[gpuModel] ?? null) : null;
}

/**
 * The directory that a relative `state_dir` is in: the one that systemd (StateDirectory=) or the image made for it. It is
 * writable where the directory of the file need not be.
 */
function findStateBase({ STATE_DIRECTORY = '' }: Environment): string | null {
  const [first = ''] = STATE_DIRECTORY.split(':'); // systemd.exec(5): several are separated by colons
  return isAbsolute(first) ? first : null;
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
  const found = showValue(place?.value, factsAt(violation.path));
  return { line, keyPath, text: `found ${found}, expected ${violation.expected}` };
}

function lineOfNearest(path: readonly PropertyKey[], places: ReadonlyMap<string, Place>): number {
  for (let length = path.length - 1; length >= 0; length -= 1) {
    const place = places.get(toKeyPath(path.slice(0, length)));
    if (place !== undefined) return place.line;
  }
  return 1;
}
