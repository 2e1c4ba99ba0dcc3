import { countSeqs, parseSeqTexts, type SeqRange } from '../seq-texts.ts';
import type { StatementBody } from '../statement-schema.ts';

/** How much of the digest of a record a statement has. */
const DIGEST_BYTES = 16;
/** 67 million records: as many as `gateway verify` takes. */
const MAX_RECORDS = 67_108_864;

/** What is known of a record that the statement lists. */
export const FOUND = { seen: 1, doubled: 2, changed: 4, elsewhere: 8, outside: 16 } as const;

/** The records of one instance that a statement lists, and what was found of each. */
export class ListedInstance {
  readonly #ranges: readonly SeqRange[];
  /** The place of the first number of each range. */
  readonly #places: readonly number[];
  readonly #digests: Buffer;
  readonly #flags: Uint8Array;

  constructor(ranges: readonly SeqRange[], digests: Buffer) {
    this.#ranges = ranges;
    const places: number[] = [];
    let count = 0;
    for (const { first, last } of ranges) {
      places.push(count);
      count += last - first + 1;
    }
    this.#places = places;
    this.#digests = digests;
    this.#flags = new Uint8Array(count);
  }

  /** The place of a number among those that are listed; null: it is not. */
  placeOf(seq: number): number | null {
    let [low, high] = [0, this.#ranges.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#ranges[middle]?.last ?? 0) < seq) low = middle + 1;
      else high = middle;
    }
    const range = this.#ranges[low];
    if (range === undefined || seq < range.first) return null;
    return (this.#places[low] ?? 0) + seq - range.first;
  }

  /** Whether the record at a place has this digest. */
  hasDigest(place: number, digest: Uint8Array | null): boolean {
    const start = place * DIGEST_BYTES;
    return (
      digest !== null &&
      this.#digests.subarray(start, start + DIGEST_BYTES).equals(digest.subarray(0, DIGEST_BYTES))
    );
  }

  flagsAt(place: number): number {
    return this.#flags[place] ?? 0;
  }

  mark(place: number, flags: number): void {
    this.#flags[place] = this.flagsAt(place) | flags;
  }

  /** The numbers whose flags have, or have not, a certain one. */
  *seqs(flag: number, isSet: boolean): Generator<number> {
    for (const [index, { first, last }] of this.#ranges.entries()) {
      const place = this.#places[index] ?? 0;
      for (let seq = first; seq <= last; seq++) {
        if (((this.flagsAt(place + seq - first) & flag) !== 0) === isSet) yield seq;
      }
    }
  }
}

/** The records that a statement lists, by instance. Null: its numbers and digests do not fit each other. */
export function readListed({
  records,
}: Pick<StatementBody, 'records'>): ReadonlyMap<string, ListedInstance> | null {
  const listed = new Map<string, ListedInstance>();
  let left = MAX_RECORDS;
  for (const { instance, numbers, digests } of records) {
    const ranges = parseSeqTexts(numbers);
    const bytes = Buffer.from(digests, 'base64');
    if (ranges === null || listed.has(instance)) return null;
    const count = countSeqs(ranges);
    left -= count;
    if (count * DIGEST_BYTES !== bytes.length || left < 0) return null;
    listed.set(instance, new ListedInstance(ranges, bytes));
  }
  return listed;
}
