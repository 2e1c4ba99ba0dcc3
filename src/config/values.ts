import { isIP } from 'node:net';

/** Where a listener is bound. `host` has no brackets; with port 0 the system picks a free port. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
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

/** Parses `500ms`, `10s`, `15m` or `1h` to milliseconds; null if the text is not a duration. */
export function parseDuration(text: string): number | null {
  const match = /^(\d{1,12})(ms|s|m|h)$/.exec(text);
  if (match === null) return null;
  return Number(match[1]) * MS_PER_UNIT[match[2] as keyof typeof MS_PER_UNIT];
}

/** Prints milliseconds as the shortest text that `parseDuration` parses to the same number. */
export function printDuration(ms: number): string {
  if (ms === 0) return '0s';
  for (const unit of ['h', 'm', 's'] as const) {
    if (ms % MS_PER_UNIT[unit] === 0) return `${ms / MS_PER_UNIT[unit]}${unit}`;
  }
  return `${ms}ms`;
}

/** Parses `32MiB`, `512KiB`, `10MB` or `4096` to bytes; null if the text is not a size. */
export function parseSize(text: string): number | null {
  const match = /^(\d{1,15})(B|KiB|MiB|GiB|kB|KB|MB|GB)?$/.exec(text);
  if (match === null) return null;
  return Number(match[1]) * BYTES_PER_UNIT[(match[2] ?? 'B') as SizeUnit];
}

/** Prints bytes as the shortest text that `parseSize` parses to the same number; plain bytes as a number. */
export function printSize(bytes: number): string | number {
  if (bytes === 0) return 0;
  for (const unit of ['GiB', 'MiB', 'KiB', 'GB', 'MB', 'kB'] as const) {
    if (bytes % BYTES_PER_UNIT[unit] === 0) return `${bytes / BYTES_PER_UNIT[unit]}${unit}`;
  }
  return bytes;
}

/** Parses `127.0.0.1:9090`, `localhost:0` or `[::1]:8080`; null if the text is not such an address. */
export function parseListenAddress(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([A-Za-z0-9_.-]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port > 65_535 ? null : { host, port };
}

/** The inverse of `parseListenAddress`: IPv6 hosts get brackets. */
export function printListenAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/**
 * Parses a URL to its origin and path, without trailing slashes. Null unless it is http or https and has no query, no
 * fragment and no credentials, which would appear in logs and in answers of the admin API.
 */
export function parseBaseUrl(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\//i.test(text)) return null;
  if (url.username !== '' || url.password !== '' || /[?#]/.test(text)) return null;
  return url.origin + url.pathname.replace(/\/+$/, '');
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
  const url = URL.parse(before ?? '');
  if (after.length === 0 || url === null || !/^https?:\/\/[^/]+\//i.test(before ?? '')) return null;
  return url.username === '' && url.password === '' ? text : null;
}

/** Checks `redis[s]://[[user]:password@]host[:port][/database]` and returns it unchanged; null for other texts. */
export function parseRedisUrl(text: string): string | null {
  const url = URL.parse(text);
  if (url === null || !/^rediss?:\/\//i.test(text) || url.hostname === '') return null;
  return /^(?:\/\d{0,5})?$/.test(url.pathname) && url.search === '' && url.hash === '' ? text : null;
}

/** Parses the base URL of inference servers behind a DNS name. Null for an IP address, and for an SRV name (`_…`) with a port. */
export function parseServiceUrl(text: string): string | null {
  const base = parseReplicaUrl(text);
  if (base === null) return null;
  const { hostname, port } = new URL(base);
  if (isIP(hostname) !== 0 || hostname.startsWith('[')) return null;
  return hostname.startsWith('_') && port !== '' ? null : base;
}
