import { Pool } from 'undici';
import type { ReplicaConfig } from '../../config/config.ts';

/** The path of a replica's url, without a trailing slash; often empty. */
export function pathPrefixOf(url: string): string {
  const { pathname } = new URL(url);
  return pathname === '/' ? '' : pathname.replace(/\/$/, '');
}

/** How long connections may take to open, and how long they are used. */
export interface ConnectionTimeouts {
  readonly connectMs: number;
  readonly upstreamKeepAliveMs: number;
  /** The age at which a connection to a name takes no further request: the name may have another address by then. */
  readonly nameTtlMs: number;
}

/** Creates the connections for the gateway's own probes to the origin of a url. Each probe has its own deadline. */
export function createProbeConnections(
  { url, tlsName }: Pick<ReplicaConfig, 'url' | 'tlsName'>,
  { connectMs }: Pick<ConnectionTimeouts, 'connectMs'>,
): Pool {
  return new Pool(new URL(url).origin, {
    ...{ allowH2: false, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 },
    connect: { timeout: connectMs, ...(tlsName === undefined ? {} : { servername: tlsName }) },
  });
}
