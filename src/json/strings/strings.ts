/*
 * The contents of long JSON strings and of long texts, sixteen bytes at a time, by WebAssembly.
 *
 * It never knows where a string begins or what it means, and keeps nothing of it. Where there is no WebAssembly, it is
 * null, and its users read byte by byte: they are the reference that it is compared with.
 * Begin with wide-strings.as, whose compiled form wide-strings-binary.ts holds.
 */

export { MIN_WIDE_BYTES, type WideStrings, wideStrings } from './wide-strings.ts';
