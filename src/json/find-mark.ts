import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  viewOf,
} from '#json/bytes';

/** Shorter runs are read byte by byte: for them a DataView or a native search costs more than it saves. */
export const SHORT_RUN_BYTES = 32;

/** Bytes that have a meaning outside strings. Only the second set matters where no member is read. */
const IS_MARK = tableOf([QUOTE, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET, COMMA, COLON]);
const IS_CONTAINER = tableOf([QUOTE, OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET]);

function tableOf(bytes: readonly number[]): Uint8Array {
  const table = new Uint8Array(256);
  for (const byte of bytes) table[byte] = 1;
  return table;
}

/** The offset of the next byte that has a meaning; the chunk's length if there is none. */
export function findMark(chunk: Buffer, from: number): number {
  let at = from;
  while (at < chunk.length && IS_MARK[chunk[at] as number] === 0) at++;
  return at;
}

/**
 * The offset of the next quote, bracket or brace; the chunk's length if there is none. Reads four bytes at a time:
 * an answer of embeddings is megabytes of digits and commas.
 */
export function findContainer(chunk: Buffer, from: number): number {
  const wordsFrom = Math.min(from + SHORT_RUN_BYTES, chunk.length);
  for (let at = from; at < wordsFrom; at++) if (IS_CONTAINER[chunk[at] as number] === 1) return at;
  if (wordsFrom === chunk.length) return wordsFrom;
  const view = viewOf(chunk);
  let at = wordsFrom;
  for (; at + 4 <= chunk.length; at += 4) {
    const word = view.getInt32(at, true);
    const quote = word ^ 0x22222222;
    // Setting the bits 26 turns brackets and braces (5B, 5D, 7B, 7D) into 7F. It also does so for 59, 5F, 79 and
    // 7F, which do not occur in numbers and only make the search slower.
    const bracket = (word | 0x26262626) ^ 0x7f7f7f7f;
    const found = ((quote - 0x01010101) & ~quote) | ((bracket - 0x01010101) & ~bracket);
    if ((found & 0x80808080) === 0) continue;
    for (let i = at; i < at + 4; i++) if (IS_CONTAINER[chunk[i] as number] === 1) return i;
  }
  while (at < chunk.length && IS_CONTAINER[chunk[at] as number] === 0) at++;
  return at;
}
