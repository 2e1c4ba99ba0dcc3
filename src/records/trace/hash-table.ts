import { HASH_BYTES } from './traced-request.ts';

const FIRST_SLOTS = 1024;
/** The number of words per hash: its two halves. */
const WORDS = 2;

/**
 * Maps prefix hashes to numbers, by open addressing with linear probing. A Map holds at most 16.7 million entries of
 * about 100 bytes each; this table takes 12 bytes per slot and has 1.5 to 3 slots per hash. The hashes are digests, so
 * their low bits spread evenly over the slots.
 */
export class HashTable {
  #hashes = new Uint32Array(FIRST_SLOTS * WORDS);
  /** The number plus one; 0 marks an empty slot. */
  #numbers = new Uint32Array(FIRST_SLOTS);
  #size = 0;

  /** How many hashes the table has. */
  get size(): number {
    return this.#size;
  }

  /** Whether the table has the hash at this index of the list. */
  has(hashes: Buffer, index: number): boolean {
    return this.#numbers[this.#findSlot(...halvesAt(hashes, index))] !== 0;
  }

  /** Returns the number of the hash at this index of the list. Adds a new hash with `numberIfNew`, below 2^32 - 1. */
  numberOf(hashes: Buffer, index: number, numberIfNew: number): number {
    const [high, low] = halvesAt(hashes, index);
    const slot = this.#findSlot(high, low);
    const known = this.#numbers[slot] ?? 0;
    if (known !== 0) return known - 1;
    this.#fill(slot, high, low, numberIfNew + 1);
    this.#size += 1;
    if (this.#size * 3 > this.#numbers.length * 2) this.#grow();
    return numberIfNew;
  }

  /** Returns the slot that holds the hash, or the empty slot where it belongs. */
  #findSlot(high: number, low: number): number {
    const mask = this.#numbers.length - 1;
    let slot = low & mask;
    while (this.#numbers[slot] !== 0 && !this.#holds(slot, high, low)) slot = (slot + 1) & mask;
    return slot;
  }

  #holds(slot: number, high: number, low: number): boolean {
    return this.#hashes[slot * WORDS] === high && this.#hashes[slot * WORDS + 1] === low;
  }

  #fill(slot: number, high: number, low: number, number: number): void {
    this.#hashes[slot * WORDS] = high;
    this.#hashes[slot * WORDS + 1] = low;
    this.#numbers[slot] = number;
  }

  #grow(): void {
    const hashes = this.#hashes;
    const numbers = this.#numbers;
    this.#hashes = new Uint32Array(hashes.length * 2);
    this.#numbers = new Uint32Array(numbers.length * 2);
    for (const [slot, number] of numbers.entries()) {
      if (number === 0) continue;
      const high = hashes[slot * WORDS] ?? 0;
      const low = hashes[slot * WORDS + 1] ?? 0;
      this.#fill(this.#findSlot(high, low), high, low, number);
    }
  }
}

function halvesAt(hashes: Buffer, index: number): readonly [high: number, low: number] {
  const offset = index * HASH_BYTES;
  return [hashes.readUInt32BE(offset), hashes.readUInt32BE(offset + HASH_BYTES / 2)];
}
