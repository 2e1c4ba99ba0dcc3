import { isIPv6 } from 'node:net';

const REG_NAME = "(?:[A-Za-z0-9\\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+";
/** `isAuthority` checks an address in brackets further. */
const AUTHORITY = new RegExp(`^(?:\\[([0-9A-Fa-f:.]+)\\]|${REG_NAME})(:[0-9]*)?$`);
/** A scheme, then everything up to the path or the query. */
const ABSOLUTE = /^[A-Za-z]+:\/\/([^/?]+)/;

/**
 * Whether a text is `uri-host [":" port]` (RFC 9110 7.2) with a host that is neither empty nor an IPvFuture address.
 */
export function isAuthority(text: string): boolean {
  const match = AUTHORITY.exec(text);
  return match !== null && (match[1] === undefined || isIPv6(match[1]));
}

/**
 * Whether a text of visible characters is a request target (RFC 9112 3.2): a path, `*`, a URL with a host
 * (absolute-form), or for CONNECT a host and port.
 */
export function isTarget(target: string, method: string): boolean {
  if (method === 'CONNECT') return isAuthority(target) && /:[0-9]+$/.test(target);
  if (target.startsWith('/') || target === '*') return true;
  const match = ABSOLUTE.exec(target);
  return match !== null && isAuthority(match[1] as string);
}
