/*
 * The bytes of JSON: those that part its values, and bytes that come in pieces.
 *
 * It never knows what a text means.
 */

export { copyBytes, GrowingBytes } from './growing-bytes.ts';

/** `"` begins and ends a string. */
export const QUOTE = 0x22;
/** `,` parts members and elements. */
export const COMMA = 0x2c;
/** `:` parts a key from its value. */
export const COLON = 0x3a;
/** `[` begins a list. */
export const OPEN_BRACKET = 0x5b;
/** `\` begins an escape. */
export const BACKSLASH = 0x5c;
/** `]` ends a list. */
export const CLOSE_BRACKET = 0x5d;
/** `{` begins an object. */
export const OPEN_BRACE = 0x7b;
/** `}` ends an object. */
export const CLOSE_BRACE = 0x7d;

/** The same bytes as a DataView, which reads several at a time. */
export function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** Whether the byte is JSON white space. */
export function isWhiteSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
