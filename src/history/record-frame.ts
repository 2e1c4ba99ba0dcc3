/*
 * Records next to each other, as they go to the thread and into a block: how many there are, the length of each, then their
 * encoded spans. Numbers have 32 bits, in the order of the processor's bytes, as typed arrays have them.
 */

/** How many records are compressed together, and so read together. */
export const FRAME_RECORDS = 256;
/** A frame with records of more than 1.5 KB, on average, has fewer. */
export const FRAME_BYTES = 384 * 1024;
const HEAD_BYTES = (1 + FRAME_RECORDS) * Uint32Array.BYTES_PER_ELEMENT;
/** Memory of this size is used again. */
const MEMORY_BYTES = HEAD_BYTES + FRAME_BYTES;
/** A frame goes away with the memory it was made in, or, if it is smaller than this, as a copy. */
const OWN_MEMORY_BYTES = FRAME_BYTES / 4;

/** Makes frames. Their memory comes back from the thread: new memory costs as much as all else here, and V8 collects it. */
export class FrameWriter {
  #memory: Uint8Array<ArrayBuffer> | null = null;
  readonly #lengths = new Uint32Array(FRAME_RECORDS);
  #count = 0;
  #end = HEAD_BYTES;
  #free: ArrayBuffer[] = [];
  /** How many frames have taken their memory with them. */
  #taken = 0;

  /** The bytes of the records that are in the frame. */
  get bytes(): number {
    return this.#end - HEAD_BYTES;
  }

  /** Whether it has as many records as a frame can have. */
  get isFull(): boolean {
    return this.#count === FRAME_RECORDS;
  }

  /** Whether a record fits into the frame. Any fits into an empty one. */
  hasRoom(length: number): boolean {
    return !this.isFull && (this.#count === 0 || this.bytes + length <= FRAME_BYTES);
  }

  /** Adds a record that fits. */
  add(encodedSpan: Uint8Array): void {
    this.#memoryFor(encodedSpan.length).set(encodedSpan, this.#end);
    this.#end += encodedSpan.length;
    this.#lengths[this.#count++] = encodedSpan.length;
  }

  /** Returns the frame, alone in its memory, and begins anew; null: it is empty. */
  take(): { readonly bytes: Uint8Array<ArrayBuffer>; readonly count: number } | null {
    const [memory, count, end] = [this.#memory, this.#count, this.#end];
    if (memory === null || count === 0) return null;
    // The head ends where the first record begins.
    const start = HEAD_BYTES - (1 + count) * Uint32Array.BYTES_PER_ELEMENT;
    const head = new Uint32Array(memory.buffer, start, 1 + count);
    head[0] = count;
    head.set(this.#lengths.subarray(0, count), 1);
    this.#count = 0;
    this.#end = HEAD_BYTES;
    if (end - start < OWN_MEMORY_BYTES) return { bytes: memory.slice(start, end), count };
    this.#memory = null;
    this.#taken += 1;
    return { bytes: memory.subarray(start, end), count };
  }

  /** Gives back memory whose frame is not needed any more. What is of another size, V8 collects. */
  reuse(memory: readonly ArrayBuffer[]): void {
    this.#free.push(...memory.filter(({ byteLength }) => byteLength === MEMORY_BYTES));
  }

  /** Gives up free memory beyond what was taken since the last call. */
  trim(): void {
    this.#free.length = Math.min(this.#free.length, this.#taken);
    this.#taken = 0;
  }

  #memoryFor(length: number): Uint8Array {
    if (length <= FRAME_BYTES)
      this.#memory ??= new Uint8Array(this.#free.pop() ?? new ArrayBuffer(MEMORY_BYTES));
    else this.#memory = new Uint8Array(HEAD_BYTES + length);
    return this.#memory;
  }
}

/** The encoded spans of frames, one frame after the other. Throws a RangeError if it is damaged. */
export function readFrames({ buffer, byteOffset, byteLength }: Uint8Array): readonly Buffer[] {
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  const spans: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const count = bytes.readUInt32LE(at);
    let start = at + (1 + count) * Uint32Array.BYTES_PER_ELEMENT;
    for (let index = 1; index <= count; index++) {
      const end = start + bytes.readUInt32LE(at + index * Uint32Array.BYTES_PER_ELEMENT);
      if (end > bytes.length) throw new RangeError('a record is longer than its block');
      spans.push(bytes.subarray(start, end));
      start = end;
    }
    at = start;
  }
  return spans;
}
