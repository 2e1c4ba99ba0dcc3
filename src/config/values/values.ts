import { isIP } from 'node:net';

/** Where a listener is bound. `host` has no brackets; with port 0 the system picks a free port. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** A method and a path that are relayed and not recorded. A path that ends in `/*` stands for all paths below it. */
export interface PassedPath {
  readonly method: string;
  readonly path: string;
}

const MS_PER_UNIT = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

const BYTES_PER_UNIT = {
  B: 1,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
  kB: 1e3,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
} as const;

type SizeUnit = keyof typeof BYTES_PER_UNIT;

/** What every duration matches, for JSON Schema: a regular expression without anchors and look-ahead, for any engine. */
export const DURATION_PATTERN = '(?:\\d[\\d.]*(?:ms|s|m|h))+';

/**
 * Parses `500ms`, `10s`, `1.5s`, `15m`, `1h` or `1h30m` to milliseconds: units in falling order, each at most once. Null
 * if the text is not a duration or not a whole number of milliseconds.
 */
export function parseDuration(text: string): number | null {
  let sumMs = 0;
  let at = 0;
  let lastUnitMs = Number.POSITIVE_INFINITY;
  for (const [part, count = '', unit] of text.matchAll(/(\d[\d.]*)(ms|s|m|h)/gy)) {
    const unitMs = MS_PER_UNIT[unit as keyof typeof MS_PER_UNIT];
    const ms = multiply(count, unitMs);
    if (ms === null || unitMs >= lastUnitMs) return null;
    sumMs += ms;
    at += part.length;
    lastUnitMs = unitMs;
  }
  return at > 0 && at === text.length ? sumMs : null;
}

/** Multiplies a decimal number by a unit without rounding. Null if the product is not a whole number. */
function multiply(decimal: string, unit: number): number | null {
  const [, whole, fraction = ''] = /^(\d{1,15})(?:\.(\d{1,6}))?$/.exec(decimal) ?? [];
  if (whole === undefined) return null;
  const scale = 10 ** fraction.length;
  const part = Number(fraction) * unit;
  return part % scale === 0 ? Number(whole) * unit + part / scale : null;
}

/** Prints milliseconds as the shortest text that `parseDuration` parses to the same number. */
export function printDuration(ms: number): string {
  if (ms === 0) return '0s';
  for (const unit of ['h', 'm', 's'] as const) {
    if (ms % MS_PER_UNIT[unit] === 0) return `${ms / MS_PER_UNIT[unit]}${unit}`;
  }
  return `${ms}ms`;
}

/** Parses `32MiB`, `512KiB`, `1.5GB` or `4096` to bytes; null if the text is not a size in whole bytes. */
export function parseSize(text: string): number | null {
  const match = /^([\d.]+)(B|KiB|MiB|GiB|kB|KB|MB|GB)?$/.exec(text);
  return match === null ? null : multiply(match[1] ?? '', BYTES_PER_UNIT[(match[2] ?? 'B') as SizeUnit]);
}

/** Prints bytes as the shortest text that `parseSize` parses to the same number; plain bytes as a number. */
export function printSize(bytes: number): string | number {
  if (bytes === 0) return 0;
  for (const unit of ['GiB', 'MiB', 'KiB', 'GB', 'MB', 'kB'] as const) {
    if (bytes % BYTES_PER_UNIT[unit] === 0) return `${bytes / BYTES_PER_UNIT[unit]}${unit}`;
  }
  return bytes;
}

/**
 * Parses `127.0.0.1:9090`, `localhost:0`, `[::1]:8080` or `:8080`, which means all IPv4 addresses; null if the text is not
 * such an address.
 */
export function parseListenAddress(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([A-Za-z0-9_.-]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  return match === null || port > 65_535 ? null : { host: match[1] ?? (match[2] || '0.0.0.0'), port };
}

/** The inverse of `parseListenAddress`: IPv6 hosts get brackets. */
export function printListenAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Checks an IP address, or a network in CIDR notation (`10.0.0.0/8`), and returns it unchanged; null for other texts. A
 * zone (`%eth0`) is not part of an address: it has another meaning on each machine.
 */
export function parseNetwork(text: string): string | null {
  const [, address = '', prefix] = /^([0-9A-Fa-f.:]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? [];
  const maxPrefix = { 0: -1, 4: 32, 6: 128 }[isIP(address) as 0 | 4 | 6];
  return maxPrefix >= Number(prefix ?? 0) ? text : null;
}

/** Control characters, and the two others that end a line. */
const CONTROL = /[\p{Cc}\u2028\u2029]/u;

/**
 * Parses a URL. Null if the text is none, or has control characters: the parser of the WHATWG would leave tabs and line
 * breaks out, so that another URL is used than the one in the file.
 */
export function parseUrl(text: string): URL | null {
  return CONTROL.test(text) ? null : URL.parse(text);
}

/**
 * Parses a URL to its origin and path, without trailing slashes. Null unless it is http or https and has no query, no
 * fragment and no credentials, which would appear in logs and in answers of the admin API.
 */
export function parseBaseUrl(text: string): string | null {
  const url = parseUrl(text);
  if (url === null || !/^https?:\/\//i.test(text)) return null;
  if (url.username !== '' || url.password !== '' || /[?#]/.test(text)) return null;
  return url.origin + url.pathname.replace(/\/+$/, '');
}

/**
 * Parses the base URL of a collector. `/v1/traces`, which is added to it for each call, may already be there: many
 * documents show the address in that form.
 */
export function parseCollectorUrl(text: string): string | null {
  return parseBaseUrl(text)?.replace(/\/v1\/(?:traces|metrics|logs)$/, '') ?? null;
}

/**
 * Parses the base URL of an inference server: that of `parseBaseUrl` without a `/v1` at its end, which the base URLs of
 * OpenAI clients have.
 */
export function parseReplicaUrl(text: string): string | null {
  return parseBaseUrl(text)?.replace(/\/v1$/, '') ?? null;
}

/**
 * Checks a URL with `{trace_id}` after its host, such as `http://jaeger:16686/trace/{trace_id}`. Null if the text is
 * something else or contains credentials. Returns it unchanged: a fragment or query may contain braces of its own.
 */
export function parseTraceUrlTemplate(text: string): string | null {
  const [before, ...after] = text.split('{trace_id}');
  const url = CONTROL.test(text) ? null : URL.parse(before ?? '');
  if (after.length === 0 || url === null || !/^https?:\/\/[^/]+\//i.test(before ?? '')) return null;
  return url.username === '' && url.password === '' ? text : null;
}

/** Checks `redis[s]://[[user]:password@]host[:port][/database]` and returns it unchanged; null for other texts. */
export function parseRedisUrl(text: string): string | null {
  const url = parseUrl(text);
  if (url === null || !/^rediss?:\/\//i.test(text) || url.hostname === '') return null;
  return /^(?:\/\d{0,5})?$/.test(url.pathname) && url.search === '' && url.hash === '' ? text : null;
}

/**
 * Parses the base URL of inference servers behind a DNS name. Null for an IP address, and for an SRV name (`_…`) with a
 * port.
 */
export function parseServiceUrl(text: string): string | null {
  const base = parseReplicaUrl(text);
  if (base === null) return null;
  const { hostname, port } = new URL(base);
  if (isIP(hostname) !== 0 || hostname.startsWith('[')) return null;
  return hostname.startsWith('_') && port !== '' ? null : base;
}

/** A segment without escapes, other than `.` and `..`. */
const SEGMENT = "/(?!\\.{1,2}(?:/|$))[A-Za-z0-9._~!$&'()+,=:@-]+";
const MAX_PASSED_CHARS = 1024;
const PASSED_PATH = new RegExp(
  `^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) ((?=[^*]*$|/[^/]+/[^/]+/)(?:${SEGMENT})+(?:/\\*)?)$`,
);

/**
 * Parses `POST /v1/images/generations`, or `GET /v1/files/*` for all paths below `/v1/files/`: a method, a space, and a
 * path without query, escapes and empty segments, at least two segments before the star. Null for any other text.
 */
export function parsePassedPath(text: string): PassedPath | null {
  const [, method, path] = (text.length > MAX_PASSED_CHARS ? null : PASSED_PATH.exec(text)) ?? [];
  return method === undefined || path === undefined ? null : { method, path };
}

/** The inverse of `parsePassedPath`. */
export function printPassedPath({ method, path }: PassedPath): string {
  return `${method} ${path}`;
}
