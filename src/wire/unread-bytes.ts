const NOTHING = Buffer.alloc(0);
const MIN_BYTES = 1024;

/**
 * Bytes that have arrived and cannot be used yet. They are joined in a buffer that doubles as it grows, so that the
 * cost is linear however small the reads are.
 */
export class UnreadBytes {
  /** The read that came first, or memory of this object, of which a part may be free. */
  #memory: Buffer = NOTHING;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Appends a read. */
  append(read: Buffer): void {
    if (this.#length === 0) {
      // The usual case is a single read, which is not copied.
      this.#memory = read;
      this.#length = read.length;
      return;
    }
    const length = this.#length + read.length;
    // A read has no free part: it is never written to.
    if (length > this.#memory.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#length, MIN_BYTES));
      this.#memory.copy(larger, 0, 0, this.#length);
      this.#memory = larger;
    }
    read.copy(this.#memory, this.#length);
    this.#length = length;
  }

  /** All bytes, as a view that stays valid. Bytes appended later do not change it. */
  view(): Buffer {
    return this.#memory.length === this.#length ? this.#memory : this.#memory.subarray(0, this.#length);
  }

  /** Removes all bytes. Views of them stay valid. */
  clear(): void {
    this.#memory = NOTHING;
    this.#length = 0;
  }

  /** Removes all bytes and returns them. */
  takeAll(): Buffer {
    const bytes = this.view();
    this.clear();
    return bytes;
  }
}
