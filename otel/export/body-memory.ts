/** Sizes are multiples of this: batches of as many records differ a little. */
const STEP_BYTES = 64 * 1024;

/**
 * The memory of the body of a call, which the next call uses again. A body takes a megabyte; as new memory for each call,
 * V8 held what was dead until its next major collection, and began those sooner.
 */
export class BodyMemory {
  #spare: Buffer<ArrayBuffer> | null = null;

  /** Memory of this size. It has anything in it. */
  take(bytes: number): Buffer<ArrayBuffer> {
    const spare = this.#spare;
    this.#spare = null;
    const memory =
      spare !== null && spare.length >= bytes
        ? spare
        : Buffer.allocUnsafeSlow(Math.ceil(bytes / STEP_BYTES) * STEP_BYTES);
    return memory.subarray(0, bytes);
  }

  /** Nobody reads a body any more. */
  giveBack({ buffer }: Buffer<ArrayBuffer>): void {
    this.#spare = Buffer.from(buffer);
  }
}
