import { isIP } from 'node:net';
import { buildConnector } from 'undici';
import type { ReplicaConfig } from '#replicas/terms';
import type { DeadlineClock } from '#wire';
import { type Connector, type SharedReads, UpstreamConnections } from '#wire/upstream';
import { type ConnectionTimeouts, toTlsOptions } from './connections.ts';

/** What connections to a replica are made with. */
export interface UpstreamSurroundings {
  readonly timeouts: ConnectionTimeouts;
  readonly clock: DeadlineClock;
  /** Where sockets without TLS read to. */
  readonly sharedReads: SharedReads;
  /** Told of a defect of ours that ended a connection. */
  readonly onDefect: (error: unknown) => void;
}

/**
 * Creates the connections of the data plane to the origin of a url. undici opens them: names with several addresses,
 * TLS and its sessions, and their time-out are its business.
 */
export function createUpstreamConnections(
  replica: Pick<ReplicaConfig, 'url' | 'tlsName' | 'tls'>,
  { timeouts, clock, sharedReads, onDefect }: UpstreamSurroundings,
): UpstreamConnections {
  const { protocol, hostname: writtenName, port, host } = new URL(replica.url);
  // A url has an IPv6 address in brackets. undici's connector would look it up as a name.
  const hostname = writtenName.replace(/^\[(.*)\]$/, '$1');
  const isName = isIP(hostname) === 0;
  const options = {
    allowH2: false,
    timeout: timeouts.connectMs,
    ...toTlsOptions(replica),
  };
  const target = { protocol, hostname, host, port: port || (protocol === 'https:' ? '443' : '80') };
  // With TLS one connector for all connections: it keeps the sessions.
  const tlsConnector = protocol === 'https:' ? buildConnector(options) : null;
  const connect: Connector = (callback) => {
    if (tlsConnector !== null) {
      tlsConnector(target, (...[error, socket]) => callback(error, socket));
      return;
    }
    const reads = sharedReads.forSocket();
    buildConnector({ ...options, onread: reads.option })(target, (...[error, socket]) =>
      callback(error, socket, reads),
    );
  };
  return new UpstreamConnections(
    {
      connect,
      keepAliveMs: timeouts.upstreamKeepAliveMs,
      maxAgeMs: isName ? timeouts.nameTtlMs : Number.POSITIVE_INFINITY,
      onDefect,
    },
    clock,
  );
}
