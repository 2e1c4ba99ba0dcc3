/**
 * The bytes that go out for one read, in order. Once they are taken it holds nothing, not even an empty array: an array that
 * lasts from read to read grows old, and then all that is put into it lasts until the next major collection.
 */
export class OutgoingPieces {
  #pieces: Buffer[] | null = null;
  /** The last piece, which may still grow: `#bytes[#start, #end)`. */
  #bytes: Buffer | null = null;
  #start = 0;
  #end = 0;
  #sizeBytes = 0;

  /** The size of all pieces. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Adds `bytes[start, end)`. Bytes that follow those before them in the same buffer become one piece with them. */
  add(bytes: Buffer, start = 0, end = bytes.length): void {
    if (start >= end) return;
    this.#sizeBytes += end - start;
    if (this.#bytes === bytes && this.#end === start) {
      this.#end = end;
      return;
    }
    this.#endPiece();
    this.#bytes = bytes;
    this.#start = start;
    this.#end = end;
  }

  addAll(pieces: readonly Buffer[]): void {
    for (const piece of pieces) this.add(piece);
  }

  /** Gives the pieces away. */
  take(): readonly Buffer[] {
    this.#endPiece();
    const pieces = this.#pieces ?? [];
    this.#pieces = null;
    this.#sizeBytes = 0;
    return pieces;
  }

  #endPiece(): void {
    const bytes = this.#bytes;
    if (bytes === null) return;
    const isWhole = this.#start === 0 && this.#end === bytes.length;
    const piece = isWhole ? bytes : bytes.subarray(this.#start, this.#end);
    this.#bytes = null;
    if (this.#pieces === null) this.#pieces = [piece];
    else this.#pieces.push(piece);
  }
}
