import { METHODS } from 'node:http';
import { isIPv6 } from 'node:net';
import {
  CR,
  HTAB,
  isToken,
  LF,
  NINE,
  SPACE,
  TEXT_BYTES,
  TOKEN_BYTES,
  VISIBLE_BYTES,
  ZERO,
} from './characters.ts';
import { FieldLines } from './field-lines.ts';
import type { Fields } from './fields.ts';
import { HttpError } from './http-error.ts';

/** How a message's body is delimited (RFC 9112 6.3). */
export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'until_close' };

/** What the heads of requests and of responses have in common. */
interface MessageHead {
  readonly minorVersion: 0 | 1;
  readonly fields: Fields;
  readonly framing: Framing;
  /**
   * Whether the connection can be used again: never after CONNECT, where a tunnel would begin, or 101, nor when closing it
   * ends the body.
   */
  readonly keepsAlive: boolean;
  /** Lower-case names in all Connection fields; null when there are none besides close and keep-alive. */
  readonly connectionOptions: ReadonlySet<string> | null;
}

/** The head of a request. */
export interface RequestHead extends MessageHead {
  readonly method: string;
  readonly target: string;
  readonly expectsContinue: boolean;
}

/** The head of a response. */
export interface ResponseHead extends MessageHead {
  readonly status: number;
  /** Latin-1, byte for byte. */
  readonly reason: string;
}

const NO_BODY: Framing = { kind: 'none' };
const CHUNKED: Framing = { kind: 'chunked' };
const UNTIL_CLOSE: Framing = { kind: 'until_close' };

const KNOWN_METHODS: ReadonlySet<string> = new Set(METHODS);
const HEAD_END = Buffer.from('\r\n\r\n');
const VERSION_PREFIX = 'HTTP/1.';
/** `HTTP/1.1` */
const VERSION_LENGTH = VERSION_PREFIX.length + 1;

/**
 * Returns the offset after the empty line that ends a head beginning at `start`, or -1 if the line has not arrived. One
 * empty line before the head is part of it (RFC 9112 2.2). The bytes before `scanFrom` have been scanned already and
 * have not changed.
 *
 * Throws HttpError('malformed') if the bytes cannot be a head: a bare CR or LF, a NUL or another control byte.
 */
export function findHeadEnd(bytes: Buffer, start: number, scanFrom: number = start): number {
  // The end of the head may have begun in the scanned bytes.
  const from = Math.max(start, scanFrom - (HEAD_END.length - 1));
  const at = bytes.indexOf(HEAD_END, from);
  if (at !== -1) return at + HEAD_END.length;
  rejectInvalidBytes(bytes, start, from);
  return -1;
}

function rejectInvalidBytes(bytes: Buffer, start: number, from: number): void {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (TEXT_BYTES[byte] === 1) continue;
    const isLineEnd =
      byte === CR
        ? at + 1 === bytes.length || bytes[at + 1] === LF
        : byte === LF && isAfterCr(bytes, start, at);
    if (!isLineEnd) throw new HttpError('malformed');
  }
}

function isAfterCr(bytes: Buffer, start: number, at: number): boolean {
  return at > start && bytes[at - 1] === CR;
}

/** Parses the complete request head `bytes[start, end)`, including its empty line. Throws HttpError. */
export function parseRequestHead(bytes: Buffer, start: number, end: number): RequestHead {
  const text = bytes.toString('latin1', start, end);
  requireHeadEnd(text);
  let at = text.startsWith('\r\n') ? 2 : 0;

  const methodStart = at;
  while (TOKEN_BYTES[bytes[start + at] as number] === 1) at++;
  const method = text.slice(methodStart, at);
  if (bytes[start + at] !== SPACE || !KNOWN_METHODS.has(method)) throw new HttpError('malformed');
  const targetStart = ++at;
  while (VISIBLE_BYTES[bytes[start + at] as number] === 1) at++;
  const target = text.slice(targetStart, at);
  if (bytes[start + at] !== SPACE || !isTarget(target, method)) throw new HttpError('malformed');
  const minorVersion = minorVersionAt(text, ++at);
  at += VERSION_LENGTH;
  if (!text.startsWith('\r\n', at)) throw new HttpError('malformed');

  const lines = new FieldLines();
  lines.read(bytes, start + at + 2, end - 2, text, start);
  if (!hasOneHost(lines, minorVersion)) throw new HttpError('malformed');
  const framing = framingOf(lines, minorVersion) ?? NO_BODY;
  const connection = readConnection(lines.connection);
  const isConnect = method === 'CONNECT';
  return {
    method,
    target,
    minorVersion,
    fields: lines.fields,
    // RFC 9110 9.3.6: CONNECT has no content, even if the head declares some.
    framing: isConnect ? NO_BODY : framing,
    keepsAlive: !isConnect && isKept(connection, minorVersion),
    connectionOptions: connection.options,
    expectsContinue:
      minorVersion === 1 && lines.expect !== null && lines.expect.toLowerCase() === '100-continue',
  };
}

/** RFC 9112 3.2: an HTTP/1.1 request has one Host field; in HTTP/1.0 it is optional. Its value may be empty. */
function hasOneHost({ hostCount, host }: FieldLines, minorVersion: 0 | 1): boolean {
  if (hostCount === 0) return minorVersion === 0;
  return hostCount === 1 && (host === '' || isAuthority(host));
}

/**
 * Parses the complete response head `bytes[start, end)`, including its empty line. The method of the request decides
 * whether a body follows. Throws HttpError.
 */
export function parseResponseHead(
  bytes: Buffer,
  start: number,
  end: number,
  requestMethod: string,
): ResponseHead {
  const text = bytes.toString('latin1', start, end);
  requireHeadEnd(text);
  const minorVersion = minorVersionAt(text, 0);
  let at = VERSION_LENGTH;
  if (text.charCodeAt(at) !== SPACE) throw new HttpError('malformed');
  const status = statusAt(text, ++at);
  at += 3;
  let reason = '';
  // Some servers omit the space when there is no reason phrase, which is harmless.
  if (text.charCodeAt(at) === SPACE) {
    const reasonStart = ++at;
    while (TEXT_BYTES[bytes[start + at] as number] === 1) at++;
    reason = text.slice(reasonStart, at);
  }
  if (!text.startsWith('\r\n', at)) throw new HttpError('malformed');

  const lines = new FieldLines();
  lines.read(bytes, start + at + 2, end - 2, text, start);
  const framing = framingOf(lines, minorVersion) ?? UNTIL_CLOSE;
  const hasNoBody = requestMethod === 'HEAD' || status < 200 || status === 204 || status === 304;
  const connection = readConnection(lines.connection);
  return {
    status,
    reason,
    minorVersion,
    fields: lines.fields,
    framing: hasNoBody ? NO_BODY : framing,
    keepsAlive: status !== 101 && (hasNoBody || framing !== UNTIL_CLOSE) && isKept(connection, minorVersion),
    connectionOptions: connection.options,
  };
}

function requireHeadEnd(text: string): void {
  if (!text.endsWith('\r\n\r\n')) throw new HttpError('malformed');
}

function minorVersionAt(text: string, at: number): 0 | 1 {
  const digit = text.charCodeAt(at + VERSION_PREFIX.length) - ZERO;
  if (!text.startsWith(VERSION_PREFIX, at) || (digit !== 0 && digit !== 1)) throw new HttpError('malformed');
  return digit;
}

function statusAt(text: string, at: number): number {
  let status = 0;
  for (let i = at; i < at + 3; i++) {
    const code = text.charCodeAt(i);
    if (!(code >= ZERO && code <= NINE)) throw new HttpError('malformed');
    status = status * 10 + (code - ZERO);
  }
  if (status < 100) throw new HttpError('malformed');
  return status;
}

/** The framing that the head declares; null if it declares none (RFC 9112 6.1, 6.2). */
function framingOf({ transferEncoding, contentLength }: FieldLines, minorVersion: 0 | 1): Framing | null {
  if (transferEncoding !== null) {
    const isChunked = transferEncoding === 'chunked' || transferEncoding.toLowerCase() === 'chunked';
    if (!isChunked || contentLength !== null || minorVersion === 0) throw new HttpError('malformed');
    return CHUNKED;
  }
  return contentLength === null ? null : { kind: 'length', bytes: toLength(contentLength) };
}

/** 16 digits hold every safe integer. More digits could only be leading zeros. */
const MAX_LENGTH_DIGITS = 16;

function toLength(digits: string): number {
  if (digits.length === 0 || digits.length > MAX_LENGTH_DIGITS) throw new HttpError('malformed');
  let bytes = 0;
  for (let i = 0; i < digits.length; i++) {
    const code = digits.charCodeAt(i);
    if (code < ZERO || code > NINE) throw new HttpError('malformed');
    bytes = bytes * 10 + (code - ZERO);
  }
  if (bytes > Number.MAX_SAFE_INTEGER) throw new HttpError('malformed');
  return bytes;
}

const REG_NAME = "(?:[A-Za-z0-9\\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+";
/** `isAuthority` checks an address in brackets further. */
const AUTHORITY = new RegExp(`^(?:\\[([0-9A-Fa-f:.]+)\\]|${REG_NAME})(:[0-9]*)?$`);
/** A scheme, then everything up to the path or the query. */
const ABSOLUTE = /^[A-Za-z]+:\/\/([^/?]+)/;

/** Whether a text is `uri-host [":" port]` (RFC 9110 7.2) with a host that is neither empty nor an IPvFuture address. */
function isAuthority(text: string): boolean {
  const match = AUTHORITY.exec(text);
  return match !== null && (match[1] === undefined || isIPv6(match[1]));
}

/**
 * Whether a text of visible characters is a request target (RFC 9112 3.2): a path, `*`, a URL with a host
 * (absolute-form), or for CONNECT a host and port.
 */
function isTarget(target: string, method: string): boolean {
  if (method === 'CONNECT') return isAuthority(target) && /:[0-9]+$/.test(target);
  if (target.startsWith('/') || target === '*') return true;
  const match = ABSOLUTE.exec(target);
  return match !== null && isAuthority(match[1] as string);
}

/** What the Connection fields of a message say. */
interface ConnectionFacts {
  readonly closes: boolean;
  readonly keeps: boolean;
  /** Lower-case names besides close and keep-alive, which may be among them; null when there are none. */
  readonly options: ReadonlySet<string> | null;
}

const UNSPECIFIED: ConnectionFacts = { closes: false, keeps: false, options: null };
const KEEPS: ConnectionFacts = { closes: false, keeps: true, options: null };
const CLOSES: ConnectionFacts = { closes: true, keeps: false, options: null };

/** Whether the sender keeps the connection (RFC 9112 9.3). */
function isKept({ closes, keeps }: ConnectionFacts, minorVersion: 0 | 1): boolean {
  return !closes && (minorVersion === 1 || keeps);
}

/**
 * Parses the options of all Connection fields (RFC 9110 7.6.1), joined with commas; null: there is none. List members
 * may be empty (5.6.1.2). Throws HttpError.
 */
function readConnection(value: string | null): ConnectionFacts {
  if (value === null) return UNSPECIFIED;
  const lower = value.toLowerCase();
  if (lower === 'keep-alive') return KEEPS;
  if (lower === 'close') return CLOSES;
  const options = new Set<string>();
  for (const member of lower.split(',')) {
    const option = withoutBlanks(member);
    if (option === '') continue;
    if (!isToken(option)) throw new HttpError('malformed');
    options.add(option);
  }
  const closes = options.has('close');
  const keeps = options.has('keep-alive');
  const namedCount = options.size - Number(closes) - Number(keeps);
  return { closes, keeps, options: namedCount === 0 ? null : options };
}

/** Removes SP and HTAB only. `trim` would also remove other white space, such as a no-break space. */
function withoutBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlankAt(text, start)) start++;
  while (end > start && isBlankAt(text, end - 1)) end--;
  return text.slice(start, end);
}

function isBlankAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === SPACE || code === HTAB;
}
