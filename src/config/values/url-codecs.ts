import { textOf } from './text-codec.ts';
import {
  type ListenAddress,
  type PassedPath,
  parseBaseUrl,
  parseListenAddress,
  parseNetwork,
  parsePassedPath,
  parseRedisUrl,
  parseReplicaUrl,
  parseServiceUrl,
  parseTraceUrlTemplate,
  printListenAddress,
  printPassedPath,
} from './values.ts';

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

/** An IP address, or a network in CIDR notation. */
export function network() {
  return textOf({
    title: 'an IP address or a network, such as 10.0.0.7, 10.0.0.0/8 or fd00::/8',
    pattern: '[0-9A-Fa-f.:]+(?:/\\d{1,3})?',
    parse: parseNetwork,
    print: (text) => text,
  });
}

/**
 * An http or https URL without credentials, query or fragment; decoding removes trailing slashes.
 *
 * @param credentialsGoTo where the author of the file puts credentials instead
 */
export function baseUrl(credentialsGoTo: string, parse = parseBaseUrl) {
  return textOf({
    title: `an http:// or https:// URL without credentials (${credentialsGoTo}), query or fragment`,
    pattern: '[hH][tT][tT][pP][sS]?://.+',
    parse,
    print: (url) => url,
    explain: explainUrl,
  });
}

/** A host without a scheme: `10.0.0.11:8000`, `localhost:8000/v1`. */
function explainUrl(text: string): string | null {
  return /^(?:[A-Za-z0-9._-]+|\[[\da-f:]+\])(?::\d{1,5})?(?:\/.*)?$/i.test(text)
    ? 'http:// is missing'
    : null;
}

/** The base URL of an inference server; decoding also removes a `/v1` at its end. */
export function replicaUrl(credentialsGoTo: string) {
  return baseUrl(credentialsGoTo, parseReplicaUrl);
}

/**
 * The base URL of inference servers behind a DNS name, as `replicaUrl`. A name with SRV records begins with `_` and has
 * no port.
 */
export function serviceUrl() {
  return textOf({
    title:
      'an http:// or https:// URL with a DNS name, without credentials, query or fragment, and without a port after an SRV name (_…)',
    pattern: '[hH][tT][tT][pP][sS]?://.+',
    parse: parseServiceUrl,
    print: (url) => url,
    explain: explainUrl,
  });
}

/** A method and a path, such as `GET /version`; decodes to its parts. */
export function passedPath() {
  return textOf<PassedPath>({
    title:
      'a method and a path, such as GET /version or POST /v1/files/*; a star needs two segments before it',
    pattern: '[A-Z]+ /.*',
    parse: parsePassedPath,
    print: printPassedPath,
  });
}

/** The URL of a trace viewer, with `{trace_id}` as placeholder. */
export function traceUrlTemplate() {
  return textOf({
    title: 'an http:// or https:// URL without credentials, with {trace_id} after its host',
    pattern: '[hH][tT][tT][pP][sS]?://.+\\{trace_id\\}.*',
    parse: parseTraceUrlTemplate,
    print: (template) => template,
  });
}

/** The URL of a Redis or Valkey server; it may contain a password. */
export function redisUrl() {
  return textOf({
    title: 'a URL redis[s]://[[user]:password@]host[:port][/database]',
    pattern: 'rediss?://.+',
    parse: parseRedisUrl,
    print: (url) => url,
  });
}
