import { isIP } from 'node:net';

/** Where the admin API listens, and the names that `gateway.admin_hosts` allows. */
export interface HostSettings {
  readonly listenHost: string;
  /** Null: not configured. */
  readonly allowedHosts: readonly string[] | null;
}

/**
 * Creates the check of `Host` against DNS rebinding: a page of another site lets its own name resolve to the address of
 * the gateway, and its scripts then talk to the gateway as to their own server. The browser sends that name as `Host`.
 * An IP address and `localhost` cannot be such a name, because nobody else decides what they resolve to.
 *
 * Without `allowedHosts`, a gateway that listens beyond loopback accepts every name, because only the operator knows
 * which names lead to it. A missing or empty `Host` is accepted: browsers send one.
 */
export function createHostCheck({
  listenHost,
  allowedHosts,
}: HostSettings): (host: string | undefined) => boolean {
  const own = toName(listenHost);
  if (allowedHosts === null && !isLocal(own)) return () => true;
  const names = new Set([own, ...(allowedHosts ?? []).map(toName)]);
  return (host) => {
    if (host === undefined || host === '') return true;
    const name = toName(host);
    return isIP(name) !== 0 || isLocalName(name) || names.has(name) || isBelow(name, names);
  };
}

/** Whether one of the names begins with `*.` and covers this one. */
function isBelow(name: string, names: ReadonlySet<string>): boolean {
  for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) {
    if (names.has(`*${name.slice(dot)}`)) return true;
  }
  return false;
}

function isLocal(host: string): boolean {
  return isLocalName(host) || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

/** Resolvers and browsers answer these names themselves (RFC 6761 6.3). */
function isLocalName(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}

/** Without port, brackets and final dot, in lower case; of an IPv6 address also without its zone. */
function toName(host: string): string {
  const bare = isIP(host) === 6 ? host : host.replace(/:\d*$/, '').replace(/^\[(.*)\]$/, '$1');
  const name = bare.includes(':') ? bare.replace(/%.*$/, '') : bare.replace(/\.$/, '');
  return name.toLowerCase();
}
