/*
 * The bytes of JSON: those that part its values, and bytes that come in pieces.
 *
 * It never knows what a text means.
 */

export { copyBytes, GrowingBytes } from './growing-bytes.ts';

/** The bytes around and between values. */
export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_BRACKET = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;

/** The same bytes as a DataView, which reads several at a time. */
export function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** Whether the byte is JSON white space. */
export function isWhiteSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}
