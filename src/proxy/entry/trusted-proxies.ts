import { BlockList, isIPv6 } from 'node:net';

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
