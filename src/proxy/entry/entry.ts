/*
 * Who sends a request, and whether it may come in: the client by its key or token, the proxies that it passed, whether it
 * was here before, and which paths are only passed on.
 *
 * It never knows a replica.
 * Begin with api-clients.ts. Loops and trusted proxies are below; whose tenant counts is in ../record/recorded-fields.ts.
 */

import { randomBytes } from 'node:crypto';
import { BlockList, isIPv6 } from 'node:net';
import type { Config } from '#config';
import type { Fields } from '#wire/message';

export {
  type ApiClient,
  type ApiClientEntry,
  ApiClients,
  type ClientRefusal,
  mayUse,
} from './api-clients.ts';

/*
 * Requests that come back. A gateway names itself in the Via field of every request to a replica (RFC 9110 7.6.3), and
 * refuses a request that names it: some replica's url leads back to it, directly or through other proxies. Without this
 * the request would go round until all connections are taken.
 */

/** A gateway's name in Via: random, so that no other gateway has it, and no client can guess it. */
const VIA_NAME = /\bspangate-[0-9a-f]{16}\b/g;

/**
 * How many gateways may be in series. More is a loop through a balancer, in which each round meets other gateways of the
 * same fleet.
 */
const MAX_IN_SERIES = 8;

/** Makes up the name of a gateway. All its threads use the same one. */
export function createViaName(): string {
  return `spangate-${randomBytes(8).toString('hex')}`;
}

/** Whether a request has already been at the gateway of this name, or at too many others. */
export function isLoop(fields: Fields, viaName: string): boolean {
  const via = fields.get('via');
  if (via === undefined) return false;
  return via.includes(viaName) || (via.match(VIA_NAME)?.length ?? 0) >= MAX_IN_SERIES;
}

/** The addresses whose connections are trusted to set headers. */
export interface TrustedProxies {
  /** Whether the address of a connection's other end is one of them; an IPv4 address may be written as an IPv6 one. */
  has(address: string | undefined): boolean;
}

/** Creates the set from addresses and networks in CIDR notation, which are valid: `10.0.0.7`, `10.0.0.0/8`, `fd00::/8`. */
export function createTrustedProxies(list: readonly string[]): TrustedProxies {
  const addresses = new BlockList();
  for (const text of list) {
    const [address = '', prefix] = text.split('/');
    if (prefix === undefined) addresses.addAddress(address, familyOf(address));
    else addresses.addSubnet(address, Number(prefix), familyOf(address));
  }
  return {
    has(address) {
      if (address === undefined) return false;
      // A link-local address of IPv6 has the name of its interface at its end.
      const zone = address.indexOf('%');
      const plain = zone === -1 ? address : address.slice(0, zone);
      return addresses.check(plain, familyOf(plain));
    },
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' {
  return isIPv6(address) ? 'ipv6' : 'ipv4';
}

type PassedPath = Config['pass'][number];

/** What may stand for `*`: segments without escapes and without `.` and `..`, which a server could read as another path. */
const BELOW = /^(?:(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~!$&'()*+,=:@-]+(?:\/(?!$)|$))+$/;

/** The methods and paths of `pass`. */
export class PassedPaths {
  readonly #exact: ReadonlySet<string>;
  readonly #below: readonly PassedPath[];

  constructor(passed: readonly PassedPath[]) {
    const isBelow = ({ path }: PassedPath) => path.endsWith('/*');
    this.#exact = new Set(
      passed.filter((each) => !isBelow(each)).map(({ method, path }) => `${method} ${path}`),
    );
    this.#below = passed.filter(isBelow).map(({ method, path }) => ({ method, path: path.slice(0, -1) }));
  }

  /** Whether a request with this method and path, without query, is relayed. */
  has(method: string, path: string): boolean {
    if (this.#exact.has(`${method} ${path}`)) return true;
    return this.#below.some(
      (passed) =>
        passed.method === method &&
        path.startsWith(passed.path) &&
        BELOW.test(path.slice(passed.path.length)),
    );
  }
}
