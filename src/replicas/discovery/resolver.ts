import { lookup, Resolver as SrvResolver } from 'node:dns/promises';

/** A server behind a service's name: an address, or the target of an SRV record with its port. */
export interface Endpoint {
  /** An IP address without brackets, or a host name without a final dot. */
  readonly host: string;
  /** Null: the port of the service's url. */
  readonly port: number | null;
  /** What Kubernetes says of the server. Its name is that of the replica. */
  readonly server?: {
    readonly pod: { readonly name: string; readonly uid: string | null } | null;
    /** The machine that it runs on. */
    readonly node: string | null;
  };
}

/** Looks names up. Rejects with the system's error if a look-up fails. */
export interface Resolver {
  /** The addresses of a host name. */
  resolveHost(name: string): Promise<readonly Endpoint[]>;
  /** The targets of a name's SRV records (RFC 2782); priorities and weights are ignored. */
  resolveService(name: string): Promise<readonly Endpoint[]>;
}

/**
 * Creates the resolver of the system. Host names are resolved as for connections, with the hosts file and search
 * domains. SRV records come straight from the name servers, so their names must be fully qualified.
 *
 * @param servers name servers to use instead of the system's
 */
export function createResolver(servers?: readonly string[]): Resolver {
  const srv = new SrvResolver({ timeout: 2_000, tries: 2 });
  if (servers !== undefined) srv.setServers(servers);
  return {
    async resolveHost(name) {
      const found = await lookup(name, { all: true });
      return found.map(({ address }) => ({ host: address, port: null }));
    },
    async resolveService(name) {
      const found = await srv.resolveSrv(name);
      return found.map(({ name: target, port }) => ({ host: target.replace(/\.$/, ''), port }));
    },
  };
}
