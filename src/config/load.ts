import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type Scalar,
  stringify,
} from 'yaml';
import { z } from 'zod';
import { type Config, toConfig } from './config.ts';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import { type Environment, expandVariables } from './environment.ts';
import { type ConfigFile, configSchema } from './schema.ts';
import { type Violation, validate } from './validate.ts';

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
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
  });
  const lineOf = (offset: number) => lines.linePos(offset).line;
  const syntax = [...document.errors, ...document.warnings].map(({ code, message, pos: [offset] }) => ({
    line: lineOf(offset),
    keyPath: code === 'DUPLICATE_KEY' ? keyAt(text, offset) : '',
    text: code === 'DUPLICATE_KEY' ? 'duplicate key' : toSyntaxText(message, lineTextAt(text, offset)),
  }));
  if (syntax.some(({ keyPath }) => keyPath === '')) throw new ConfigError(path, syntax);

  const places = findPlaces(document.contents, lineOf);
  const variables = expandAll(places, env);
  let data: unknown;
  try {
    data = document.toJS({ maxAliasCount: 100 }) ?? {};
  } catch {
    // An undefined alias, or aliases that expand exponentially. The library's message may quote the file.
    const aliases = [...places].filter(([, { node }]) => isAlias(node));
    const problem = 'found an alias that cannot be resolved';
    throw new ConfigError(
      path,
      aliases.map(([keyPath, { line }]) => ({ line, keyPath, text: problem })),
    );
  }
  const result = validate(data);
  const violations = 'violations' in result ? result.violations : [];
  const reported = new Set(variables.map(({ keyPath }) => keyPath));
  const problems = violations
    .map((violation) => toProblem(violation, places))
    .filter(({ keyPath }) => !reported.has(keyPath));
  if ('violations' in result || syntax.length + variables.length > 0) {
    throw new ConfigError(path, [...syntax, ...variables, ...problems]);
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

const MASK = '***';

/** Keys whose value is or may contain a secret. */
const SECRETS: ReadonlySet<unknown> = new Set(['api_key', 'redis']);

/** Keys whose value is a URL, even without `://`. */
const URL_KEYS: ReadonlySet<unknown> = new Set(['url', 'dns', 'endpoint', 'url_template']);

/** Masks the parts of a URL that may be credentials: everything before the last `@`, the query and the fragment. */
function maskUrl(text: string, isUrl = false): string {
  if (!isUrl && !text.includes('://')) return text;
  return text.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, `$1${MASK}@`).replace(/([?#]).+$/s, `$1${MASK}`);
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

/** One value of the file. `original` is its text before variables were expanded, which is safe to show. */
interface Place {
  readonly line: number;
  readonly node: unknown;
  original?: string;
}

/** Maps key paths to values. The value of an alias is listed only at its anchor. */
function findPlaces(root: Node | null, lineOf: (offset: number) => number): Map<string, Place> {
  const places = new Map<string, Place>();
  const visit = (node: unknown, path: readonly PropertyKey[], offset: number) => {
    places.set(toKeyPath(path), { line: lineOf(offset), node });
    if (isMap<Scalar, Node | null>(node)) {
      for (const { key, value } of node.items) {
        visit(value, [...path, String(key.value)], key.range?.[0] ?? offset);
      }
    }
    if (isSeq<Node>(node)) {
      for (const [index, item] of node.items.entries())
        visit(item, [...path, index], item.range?.[0] ?? offset);
    }
  };
  visit(root, [], root?.range?.[0] ?? 0);
  return places;
}

/** Expands variables in the text values of the document, in place. Keys are not expanded. */
function expandAll(places: ReadonlyMap<string, Place>, env: Environment): ConfigProblem[] {
  return [...places].flatMap(([keyPath, place]) => {
    const { node, line } = place;
    if (!isScalar(node) || typeof node.value !== 'string' || !node.value.includes('${')) return [];
    const { text, problems } = expandVariables(node.value, env);
    place.original = node.value;
    node.value = text;
    return problems.map((problem) => ({ line, keyPath, text: problem }));
  });
}

function toProblem(violation: Violation, places: ReadonlyMap<string, Place>): ConfigProblem {
  const keyPath = toKeyPath(violation.path);
  const place = places.get(keyPath);
  const line = place?.line ?? lineOfNearest(violation.path, places);
  if ('message' in violation) return { line, keyPath, text: violation.message };
  const found = describe(place, violation.path.at(-1));
  return { line, keyPath, text: `found ${found}, expected ${violation.expected}` };
}

function lineOfNearest(path: readonly PropertyKey[], places: ReadonlyMap<string, Place>): number {
  for (let length = path.length - 1; length >= 0; length -= 1) {
    const place = places.get(toKeyPath(path.slice(0, length)));
    if (place !== undefined) return place.line;
  }
  return 1;
}

/** Describes a value without secrets: variables unexpanded, secret keys masked, credentials cut from URLs. */
function describe(place: Place | undefined, key: PropertyKey | undefined): string {
  if (place === undefined) return 'nothing';
  const { node, original } = place;
  if (isMap(node)) return 'keys with values';
  if (isSeq(node)) return node.items.length === 0 ? 'an empty list' : 'a list';
  if (isAlias(node)) return 'an alias';
  const value = isScalar(node) ? (original ?? node.value) : null;
  if (value === null) return 'nothing';
  if (SECRETS.has(key) && original === undefined && value !== '') return MASK;
  if (typeof value !== 'string') return String(value);
  const shown = maskUrl(value, URL_KEYS.has(key));
  return JSON.stringify(shown.length > 100 ? `${shown.slice(0, 100)}…` : shown);
}

/** `['replicas', 0, 'url']` → `replicas[0].url` */
function toKeyPath(path: readonly PropertyKey[]): string {
  return path
    .map((step) => {
      if (typeof step === 'number') return `[${step}]`;
      const key = String(step);
      return `.${/^[\w-]+$/.test(key) ? key : JSON.stringify(maskUrl(key))}`;
    })
    .join('')
    .replace(/^\./, '');
}

function keyAt(text: string, offset: number): string {
  return /^["']?([\w.-]+)/.exec(text.slice(offset, offset + 100))?.[1] ?? 'a key';
}

function lineTextAt(text: string, offset: number): string {
  const end = text.indexOf('\n', offset);
  return text.slice(text.lastIndexOf('\n', offset - 1) + 1, end === -1 ? undefined : end);
}

/** Removes quotations from a message of the parser, because the file may contain secrets. */
function toSyntaxText(message: string, lineText: string): string {
  const ownWords = message.replace(/[:;] .*$/s, '').replace(/"[^"]{2,}"?|'[^']{2,}'?/g, '…');
  const hint = /[{[].*\$\{/.test(lineText) ? `; inside { } and [ ], quote a \${NAME}` : '';
  return `not valid YAML: ${ownWords}${hint}`;
}
