import fc from 'fast-check';
import { HASH_BYTES, type TracedRequest } from '../../../src/records/trace/traced-request.ts';

/** A request of no length, with these members. */
export function request(members: Partial<TracedRequest> = {}): TracedRequest {
  return {
    id: 'r',
    atMs: 0,
    endedAtMs: 0,
    replica: 'a',
    model: 'm',
    inputTokens: 0,
    outputTokens: 1,
    cachedTokens: undefined,
    promptChars: undefined,
    hashes: Buffer.alloc(0),
    ...members,
  };
}

/** The chained hashes of a text of so many blocks: block by block, each letter another text. */
export function hashesOf(text: string): Buffer {
  const hashes = [...text].map((_, index) => Buffer.from(text.slice(0, index + 1).padStart(HASH_BYTES, '-')));
  return Buffer.concat(hashes.map((hash) => hash.subarray(-HASH_BYTES)));
}

/** How many letters two texts share at their beginning. */
export function sharedLetters(a: string, b: string): number {
  let count = 0;
  while (count < a.length && a[count] === b[count]) count += 1;
  return count;
}

/** Texts of up to 6 blocks that often begin alike. */
export const texts: fc.Arbitrary<string> = fc.string({ unit: fc.constantFrom('x', 'y'), maxLength: 6 });
