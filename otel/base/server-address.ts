/** Where a server is reached, as the conventions have it. */
export interface ServerAddress {
  /** The host; an IPv6 address without brackets. */
  readonly address: string;
  readonly port: number | undefined;
}

/** The host and the port of an absolute URL; the port of its scheme if it has none. */
export function toServerAddress(url: string): ServerAddress {
  const { hostname, port, protocol } = new URL(url);
  return {
    address: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? DEFAULT_PORTS[protocol] : Number(port),
  };
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };
