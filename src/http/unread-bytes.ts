const NOTHING = Buffer.alloc(0);
const MIN_BYTES = 1024;

/**
 * Bytes that came and cannot be used yet: part of a head, or requests behind the present one. Joins them in memory
 * that doubles, so that the cost is linear however small the reads are.
 */
export class UnreadBytes {
  #memory: Buffer = NOTHING;
  /** Whether the memory is ours to write to: a read's is not. */
  #isOwn = false;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** Adds a read. */
  append(read: Buffer): void {
    if (this.#length === 0) {
      // The usual case is one read, which nobody else writes to.
      this.#memory = read;
      this.#isOwn = false;
      this.#length = read.length;
      return;
    }
    const length = this.#length + read.length;
    if (length > this.#memory.length || !this.#isOwn) {
      const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#length, MIN_BYTES));
      this.#memory.copy(larger, 0, 0, this.#length);
      this.#memory = larger;
      this.#isOwn = true;
    }
    read.copy(this.#memory, this.#length);
    this.#length = length;
  }

  /** All of them: a view that is good for as long as it is wanted. What is added afterwards does not change it. */
  view(): Buffer {
    return this.#memory.length === this.#length ? this.#memory : this.#memory.subarray(0, this.#length);
  }

  /** Forgets them; views of them stay good. */
  clear(): void {
    this.#memory = NOTHING;
    this.#length = 0;
  }

  /** All of them, which are forgotten here. */
  take(): Buffer {
    const bytes = this.view();
    this.clear();
    return bytes;
  }
}
