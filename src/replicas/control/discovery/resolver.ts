import { lookup, Resolver as SrvResolver } from 'node:dns/promises';

/** A server behind a service's name: an address, or the target of an SRV record with its port. */
export interface Endpoint {
  /** An IP address without brackets, or a host name without a final dot. */
  readonly host: string;
  /** Null: that of the service's url. */
  readonly port: number | null;
}

/** Finds out who is behind a name. Rejects with the system's error when it cannot be told. */
export interface Resolver {
  /** The addresses of a host name. */
  resolveHost(name: string): Promise<readonly Endpoint[]>;
  /** The targets of a name's SRV records (RFC 2782); their priorities and weights are not looked at. */
  resolveService(name: string): Promise<readonly Endpoint[]>;
}

/**
 * Creates the resolver that asks the system. Host names are found as connections find them: hosts file, search
 * domains and all. SRV records come straight from the name servers, so that their names must be complete.
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
