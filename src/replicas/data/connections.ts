import { Pool } from 'undici';
import type { ReplicaConfig } from '#replicas/terms';

/** The path of a replica's url, without a trailing slash; often empty. */
export function pathPrefixOf(url: string): string {
  return new URL(url).pathname.replace(/\/$/, '');
}

/** How long connections may take to open, and how long they are used. */
export interface ConnectionTimeouts {
  readonly connectMs: number;
  readonly upstreamKeepAliveMs: number;
  /** The age at which a connection to a name takes no further request: the name may have another address by then. */
  readonly nameTtlMs: number;
}

/** The name and the files with which a replica's certificate is checked, as options of `node:tls`. */
export function toTlsOptions({ tlsName, tls }: Pick<ReplicaConfig, 'tlsName' | 'tls'>) {
  return {
    ...(tlsName === undefined ? {} : { servername: tlsName }),
    ...(tls === undefined ? {} : { rejectUnauthorized: tls.verify }),
    ...(tls?.ca == null ? {} : { ca: tls.ca }),
    ...(tls?.cert == null ? {} : { cert: tls.cert }),
    ...(tls?.key == null ? {} : { key: tls.key }),
  };
}

/** Creates the connections for the gateway's own probes to the origin of a url. Each probe has its own deadline. */
export function createProbeConnections(
  replica: Pick<ReplicaConfig, 'url' | 'tlsName' | 'tls'>,
  connectMs: number,
): Pool {
  return new Pool(new URL(replica.url).origin, {
    allowH2: false,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: connectMs, ...toTlsOptions(replica) },
  });
}
