/** What is known of whether a replica answers. */
export const REACHABILITIES = ['unknown', 'reachable', 'unreachable', 'loading'] as const;

/**
 * `reachable`: the replica answered. `unreachable`: it could not be connected to, did not answer, is no inference
 * server, or said that its engine has failed. `loading`: the engine loads its model. `unknown`: nothing was sent to it
 * since the gateway started or since the replica was drained or undrained.
 */
export type Reachability = (typeof REACHABILITIES)[number];

/** Why a replica is unreachable or loading. */
export const REACHABILITY_REASONS = [
  'connection_refused',
  'name_not_resolved',
  'connect_timeout',
  'tls_failed',
  /** It took the connection and did not answer in time. */
  'no_answer',
  'connection_reset',
  'not_http',
  /** It answers, but /v1/models is no list of models, and it has served nothing yet. */
  'not_an_engine',
  /** It answered a probe with 5xx. */
  'engine_failed',
  'loading_model',
] as const;

export type ReachabilityReason = (typeof REACHABILITY_REASONS)[number];

/** The reasons in words. The dashboard has the same ones; a test compares them. */
export const REASON_TEXTS: Readonly<Record<ReachabilityReason, string>> = {
  connection_refused: 'connection refused',
  name_not_resolved: 'name does not resolve',
  connect_timeout: 'connect timeout',
  tls_failed: 'TLS failed',
  no_answer: 'no answer in time',
  connection_reset: 'connection reset',
  not_http: 'not HTTP',
  not_an_engine: 'not an inference server',
  engine_failed: 'engine failed',
  loading_model: 'loading its model',
};

/** What one request or probe has found out about a replica. */
export type Finding = 'reachable' | ReachabilityReason;

/** What is known of a replica, since when (RFC 3339) and why; both null as far as they do not apply. */
export interface ReachabilityState {
  readonly state: Reachability;
  /** When `state` last changed; null while it is unknown. */
  readonly since: string | null;
  /** For how long `state` has been so, whatever the time of day was set to meanwhile. */
  readonly lastedMs: number;
  /** Null if it is unknown or reachable. */
  readonly reason: ReachabilityReason | null;
}

/** The state of a replica of which nothing is known. */
export const NOT_SEEN: ReachabilityState = { state: 'unknown', since: null, lastedMs: 0, reason: null };

export function toReachability(finding: Finding): Exclude<Reachability, 'unknown'> {
  if (finding === 'reachable') return 'reachable';
  return finding === 'loading_model' ? 'loading' : 'unreachable';
}

/** The codes of system calls, the resolver and undici. https://nodejs.org/api/errors.html#nodejs-error-codes */
const REASON_OF_CODE: ReadonlyMap<string, ReachabilityReason> = new Map([
  ['ECONNREFUSED', 'connection_refused'],
  ['ENOTFOUND', 'name_not_resolved'],
  ['ENODATA', 'name_not_resolved'],
  ['ETIMEDOUT', 'connect_timeout'],
  ['EHOSTUNREACH', 'connect_timeout'],
  ['EHOSTDOWN', 'connect_timeout'],
  ['ENETUNREACH', 'connect_timeout'],
  ['UND_ERR_CONNECT_TIMEOUT', 'connect_timeout'],
  ['EPROTO', 'tls_failed'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls_failed'],
  ['UND_ERR_HEADERS_OVERFLOW', 'not_http'],
]);

const REASON_OF_PREFIX: readonly (readonly [prefix: string, reason: ReachabilityReason])[] = [
  ['EAI_', 'name_not_resolved'],
  ['ERR_SSL_', 'tls_failed'],
  // llhttp's, in undici.
  ['HPE_', 'not_http'],
];

/**
 * Why a connection failed, by the code of its error. An error without a code that is known is the connection's own:
 * with TLS nearly always a certificate that is not trusted, for which OpenSSL has dozens of codes.
 */
export function toConnectionReason(error: unknown, isTls: boolean): ReachabilityReason {
  const code = codeOf(error);
  const known = REASON_OF_CODE.get(code) ?? REASON_OF_PREFIX.find(([prefix]) => code.startsWith(prefix))?.[1];
  if (known !== undefined) return known;
  // undici's, without a code if the answer does not even begin like HTTP.
  if (error instanceof Error && error.name === 'HTTPParserError') return 'not_http';
  const isClosed = code === 'ECONNRESET' || code === 'EPIPE' || code === 'UND_ERR_SOCKET';
  return isTls && !isClosed ? 'tls_failed' : 'connection_reset';
}

/** The code of an error of Node or undici; empty if it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}
