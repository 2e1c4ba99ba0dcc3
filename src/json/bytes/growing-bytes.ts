const NOTHING = Buffer.alloc(0);

/** A call of Buffer.copy takes as long as copying this many bytes one by one. */
const FEW_BYTES = 16;

/** Copies `from[start, end)` to `at`. Returns where the copy ends. */
export function copyBytes(from: Buffer, start: number, end: number, into: Buffer, at: number): number {
  if (end - start > FEW_BYTES) from.copy(into, at, start, end);
  else for (let i = 0; i < end - start; i++) into[at + i] = from[start + i] as number;
  return at + end - start;
}

/** Bytes that come in pieces. Memory grows by doubling, so the total cost is linear however small the pieces are. */
export class GrowingBytes {
  length = 0;
  /** The bytes, and room for more after them. */
  #store: Buffer = NOTHING;

  /** A view of the bytes so far. It stays good: later additions do not change it. */
  get bytes(): Buffer {
    return this.#store.subarray(0, this.length);
  }

  /** Begins with these bytes. They are not copied until more are added. */
  hold(bytes: Buffer): void {
    this.#store = bytes;
    this.length = bytes.length;
  }

  /** Adds a copy of `bytes[start, end)`. */
  add(bytes: Buffer, start: number, end: number): void {
    this.#append(bytes, start, end, 2);
  }

  /** Returns everything, followed by a copy of `bytes[start, end)`, and starts over. */
  take(bytes: Buffer, start: number, end: number): Buffer {
    this.#append(bytes, start, end, 1);
    const taken = this.bytes;
    this.clear();
    return taken;
  }

  clear(): void {
    this.#store = NOTHING;
    this.length = 0;
  }

  #append(bytes: Buffer, start: number, end: number, growth: number): void {
    const sizeBytes = this.length + end - start;
    if (sizeBytes > this.#store.length) {
      const grown = Buffer.allocUnsafe(sizeBytes * growth);
      this.#store.copy(grown, 0, 0, this.length);
      this.#store = grown;
    }
    this.length = copyBytes(bytes, start, end, this.#store, this.length);
  }
}
