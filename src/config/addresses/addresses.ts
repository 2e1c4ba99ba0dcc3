/*
 * Addresses as people write them, in the configuration and in options: of listeners, and URLs. Each is parsed to what the
 * gateway uses, and printed back.
 *
 * It never knows which key or option has the address.
 */

import { isIPv4 } from 'node:net';

/** Where a listener is bound. `host` has no brackets; with port 0 the system picks a free port. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Parses `127.0.0.1:9090`, `localhost:0`, `[::1]:8080` or `:8080`, which means all IPv4 addresses; null if the text is not
 * such an address.
 */
export function parseListenAddress(text: string): ListenAddress | null {
  const match = /^(?:\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]|([A-Za-z0-9_.-]*)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  return match === null || port > 65_535 ? null : { host: match[1] ?? (match[2] || '0.0.0.0'), port };
}

/** The inverse of `parseListenAddress`: IPv6 hosts get brackets. */
export function printListenAddress({ host, port }: ListenAddress): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Whether only programs of the same machine, or container, reach this host. */
export function isLoopback(host: string): boolean {
  return host === '::1' || (isIPv4(host) && host.startsWith('127.'));
}

/** Control characters, and the two others that end a line. */
const CONTROL = /[\p{Cc}\u2028\u2029]/u;

/**
 * Parses a URL. Null if the text is none, or has control characters: the parser of the WHATWG would leave tabs and line
 * breaks out, so that another URL is used than the one in the file.
 */
export function parseUrl(text: string): URL | null {
  return CONTROL.test(text) ? null : URL.parse(text);
}

/**
 * Parses a URL to its origin and path, without trailing slashes. Null unless it is http or https and has no query, no
 * fragment and no credentials, which would appear in logs and in answers of the admin API.
 */
export function parseBaseUrl(text: string): string | null {
  const url = parseUrl(text);
  if (url === null || !/^https?:\/\//i.test(text)) return null;
  if (url.username !== '' || url.password !== '' || /[?#]/.test(text)) return null;
  return url.origin + url.pathname.replace(/\/+$/, '');
}
