const NOTHING = Buffer.alloc(0);

/** A call of Buffer.copy takes as long as copying so many bytes one by one. */
const FEW_BYTES = 16;

/** Copies `from[start, end)` to `at`, and returns where the copy ends. */
export function copyBytes(from: Buffer, start: number, end: number, into: Buffer, at: number): number {
  if (end - start > FEW_BYTES) from.copy(into, at, start, end);
  else for (let i = 0; i < end - start; i++) into[at + i] = from[start + i] as number;
  return at + end - start;
}

/** Bytes that come in pieces. Their memory grows by doubling, so that adding to them is linear, however small these are. */
export class GrowingBytes {
  length = 0;
  /** The bytes, and room for more behind them. */
  #store: Buffer = NOTHING;

  /** The bytes so far. What is added later does not change them. */
  get bytes(): Buffer {
    return this.#store.subarray(0, this.length);
  }

  /** Begins with these bytes, which are not copied as long as nothing is added. */
  hold(bytes: Buffer): void {
    this.#store = bytes;
    this.length = bytes.length;
  }

  /** Adds a copy of `bytes[start, end)`. */
  add(bytes: Buffer, start: number, end: number): void {
    this.#append(bytes, start, end, 2);
  }

  /** Hands over everything, with a copy of `bytes[start, end)` as the last. */
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
