/** The bytes with a meaning in HTTP/1.1. */
export const HTAB = 0x09;
export const LF = 0x0a;
export const CR = 0x0d;
export const SPACE = 0x20;
export const QUOTE = 0x22;
export const ZERO = 0x30;
export const NINE = 0x39;
export const COLON = 0x3a;
export const SEMICOLON = 0x3b;
export const EQUALS = 0x3d;
export const BACKSLASH = 0x5c;

/** A table of 256 entries: 1 for each byte in the class, 0 for the others. */
export type ByteClass = Uint8Array;

function toByteClass(isMember: (byte: number) => boolean): ByteClass {
  return Uint8Array.from({ length: 256 }, (_, byte) => (isMember(byte) ? 1 : 0));
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

const isVisible = (byte: number) => byte > SPACE && byte < 0x7f;
const isBlank = (byte: number) => byte === SPACE || byte === HTAB;
const isObsText = (byte: number) => byte >= 0x80;

/** `tchar`: the bytes of field names and methods (RFC 9110 5.6.2). */
export const TOKEN_BYTES = toByteClass((byte) => TOKEN.test(String.fromCharCode(byte)));

/** The bytes of field values and reason phrases: VCHAR, obs-text, SP, HTAB (RFC 9110 5.5, RFC 9112 4). */
export const TEXT_BYTES = toByteClass((byte) => isVisible(byte) || isBlank(byte) || isObsText(byte));

/** The bytes of request targets. */
export const VISIBLE_BYTES = toByteClass(isVisible);

/** `qdtext`: the bytes of a quoted string that need no escape (RFC 9110 5.6.4). */
export const QUOTED_BYTES = toByteClass(
  (byte) => (TEXT_BYTES[byte] as number) === 1 && byte !== QUOTE && byte !== BACKSLASH,
);

/** Whether a text is a single token. */
export function isToken(text: string): boolean {
  return TOKEN.test(text);
}
