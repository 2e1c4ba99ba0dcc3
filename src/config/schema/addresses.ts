import { isIP } from 'node:net';
import {
  type ListenAddress,
  parseBaseUrl,
  parseListenAddress,
  parseUrl,
  printListenAddress,
} from '#config/addresses';
import { textOf } from './codecs.ts';
import { facts } from './keys.ts';

/** `host:port`; decodes to its parts. */
export function listenAddress() {
  return textOf<ListenAddress>({
    title:
      'an address host:port, such as 127.0.0.1:8080 or [::1]:8080, or :8080 for all addresses; port 0 picks a free port',
    pattern: '.*:\\d+',
    parse: parseListenAddress,
    print: printListenAddress,
  });
}

/**
 * An IP address, or a network in CIDR notation (`10.0.0.0/8`). A zone (`%eth0`) is not part of an address: it has another
 * meaning on each machine.
 */
export function network() {
  return textOf({
    title: 'an IP address or a network, such as 10.0.0.7, 10.0.0.0/8 or fd00::/8',
    pattern: '[0-9A-Fa-f.:]+(?:/\\d{1,3})?',
    parse(text) {
      const [, address = '', prefix] = /^([0-9A-Fa-f.:]+)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? [];
      const maxPrefix = { 0: -1, 4: 32, 6: 128 }[isIP(address) as 0 | 4 | 6];
      return maxPrefix >= Number(prefix ?? 0) ? text : null;
    },
    print: String,
  });
}

/**
 * An http or https URL without credentials, query or fragment; decoding removes trailing slashes.
 *
 * @param credentialsGoTo where the author of the file puts credentials instead
 */
export function baseUrl(credentialsGoTo: string, parse = parseBaseUrl) {
  return urlOf(
    `an http:// or https:// URL without credentials (${credentialsGoTo}), query or fragment`,
    parse,
  );
}

/**
 * The base URL of inference servers behind a DNS name. A name with SRV records begins with `_` and has no port. Decoding
 * removes a `/v1` at its end.
 */
export function serviceUrl() {
  return urlOf(
    'an http:// or https:// URL with a DNS name, without credentials, query or fragment, and without a port after an SRV name (_…)',
    parseServiceUrl,
  );
}

function urlOf(title: string, parse: (text: string) => string | null) {
  const pattern = '[hH][tT][tT][pP][sS]?://.+';
  return textOf({ title, pattern, parse, print: String, explain: explainUrl }).register(facts, {
    holds: 'url',
  });
}

/** A port that does not exist; a host without a scheme: `10.0.0.11:8000`, `localhost:8000/v1`. */
function explainUrl(text: string): string | null {
  const [, port = '0'] = /^https?:\/\/[^/?#@]*:(\d+)(?:[/?#]|$)/i.exec(text) ?? [];
  if (Number(port) > 65_535) return 'a port is at most 65535';
  return /^(?:[A-Za-z0-9._-]+|\[[\da-f:]+\])(?::\d{1,5})?(?:\/.*)?$/i.test(text)
    ? 'http:// is missing'
    : null;
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

/** As `parseReplicaUrl`. Null for an IP address, and for an SRV name (`_…`) with a port. */
export function parseServiceUrl(text: string): string | null {
  const base = parseReplicaUrl(text);
  if (base === null) return null;
  const { hostname, port } = new URL(base);
  if (isIP(hostname) !== 0 || hostname.startsWith('[')) return null;
  return hostname.startsWith('_') && port !== '' ? null : base;
}

/**
 * The URL of a trace viewer, with `{trace_id}` after its host: `http://jaeger:16686/trace/{trace_id}`. A fragment or query
 * may contain braces of its own.
 */
export function traceUrlTemplate() {
  return textOf({
    title: 'an http:// or https:// URL without credentials, with {trace_id} after its host',
    pattern: '[hH][tT][tT][pP][sS]?://.+\\{trace_id\\}.*',
    parse(text) {
      const [before = '', ...after] = text.split('{trace_id}');
      const url = parseUrl(text) === null ? null : parseUrl(before);
      if (after.length === 0 || url === null || !/^https?:\/\/[^/]+\//i.test(before)) return null;
      return url.username === '' && url.password === '' ? text : null;
    },
    print: String,
  }).register(facts, { holds: 'url' });
}

/** The URL of a Redis or Valkey server; it may contain a password. */
export function redisUrl() {
  return textOf({
    title: 'a URL redis[s]://[[user]:password@]host[:port][/database]',
    pattern: 'rediss?://.+',
    parse(text) {
      const url = parseUrl(text);
      if (url === null || !/^rediss?:\/\//i.test(text) || url.hostname === '') return null;
      return /^(?:\/\d{0,5})?$/.test(url.pathname) && url.search === '' && url.hash === '' ? text : null;
    },
    print: String,
  }).register(facts, { holds: 'secret_url' });
}
