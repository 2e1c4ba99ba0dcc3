import type { ReplicaCheck } from '#replicas/discovery';

/** The result of one try to reach a server that the configuration names. Of one that is no replica, `name` is its key in the file. */
export interface ConnectionCheck extends ReplicaCheck {
  readonly kind: 'replica' | 'collector' | 'redis' | 'jwks';
}

/** Where it is, what came of it, and what follows. */
export type Finding = Omit<ConnectionCheck, 'kind' | 'name' | 'durationMs' | 'found'>;

/** What codes mean, and what to do. */
type Meanings = readonly (readonly [codes: RegExp, result: string, advice: string])[];

const OF_EVERY_SERVER: Meanings = [
  [/^ECONNREFUSED$/, 'connection refused', 'nothing listens there: start it, or correct host and port'],
  [/^(?:ENOTFOUND|EAI_\w+)$/, 'name does not resolve', 'correct the host'],
  [/SELF_SIGNED|^UNABLE_TO/, 'TLS failed', 'name the file of its authority in NODE_EXTRA_CA_CERTS'],
  [/^(?:ERR_TLS_)?CERT_/, 'TLS failed', 'its certificate has expired, or is for another name'],
];

/** Says what a failure means. `further`: codes that another kind of server does not have. */
export function explain(code: string, further: Meanings): Pick<Finding, 'result' | 'advice'> {
  const known = [...OF_EVERY_SERVER, ...further].find(([codes]) => codes.test(code));
  return { result: known?.[1] ?? code, advice: known?.[2] ?? null };
}

/** Runs one check and measures its time. */
export async function runCheck(
  kind: ConnectionCheck['kind'],
  name: string,
  check: () => Promise<Finding>,
): Promise<ConnectionCheck> {
  const startedMs = performance.now();
  const finding = await check();
  return { ...finding, kind, name, found: null, durationMs: performance.now() - startedMs };
}
