/** Spans are copied into blocks of this size. A longer span gets a block of its own. */
const BLOCK_BYTES = 256 * 1024;
/** How many empty blocks are kept for reuse. What a long outage has filled is freed. */
const MAX_SPARE_BLOCKS = 8;

/** An encoded span, as a view of the store's memory, and the number that the store's owner gave it. */
export interface StoredSpan {
  readonly encodedSpan: Uint8Array;
  readonly tag: number;
}

/** A piece of memory that is filled from its start, and reused when all its spans are removed. */
interface Block {
  readonly memory: Buffer;
  /** For each span: where it ends, and its tag. Only the first `spanCount` are valid. */
  readonly ends: number[];
  readonly tags: number[];
  spanCount: number;
  /** How many spans, counted from the first, are removed. */
  removedCount: number;
}

/**
 * Encoded spans, first in, first out, in memory that is reused. Thousands of spans wait for the collector at a time. As
 * one Buffer each, V8 moved them to its old generation one by one, and marking and sweeping them there took as long as
 * encoding them.
 */
export class EncodedSpanStore {
  /** In the order of their spans; no block is empty. */
  readonly #blocks: Block[] = [];
  readonly #spare: Block[] = [];
  #size = 0;
  #bytes = 0;

  /** How many spans are in the store. */
  get size(): number {
    return this.#size;
  }

  /** The bytes of all spans together. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a copy of a span after all others. */
  append(encodedSpan: Uint8Array, tag: number): void {
    let block = this.#blocks.at(-1);
    if (block === undefined || endOf(block) + encodedSpan.length > block.memory.length) {
      block = this.#takeBlock(encodedSpan.length);
      this.#blocks.push(block);
    }
    this.#write(block, encodedSpan, tag);
  }

  /** Adds copies of spans before all others, in their order. */
  prepend(spans: readonly StoredSpan[]): void {
    if (spans.length === 0) return;
    const block = createBlock(spans.reduce((bytes, { encodedSpan }) => bytes + encodedSpan.length, 0));
    for (const { encodedSpan, tag } of spans) this.#write(block, encodedSpan, tag);
    this.#blocks.unshift(block);
  }

  /**
   * The oldest spans, oldest first: at most `count`, and at most `maxBytes` together, but at least one if there is any.
   * They stay in the store, and the views are valid until they are removed.
   */
  peek(count: number, maxBytes = Number.POSITIVE_INFINITY): StoredSpan[] {
    const spans: StoredSpan[] = [];
    let bytes = 0;
    for (const block of this.#blocks) {
      for (let index = block.removedCount; index < block.spanCount; index++) {
        if (spans.length >= count) return spans;
        const stored = spanAt(block, index);
        bytes += stored.encodedSpan.length;
        if (bytes > maxBytes && spans.length > 0) return spans;
        spans.push(stored);
      }
    }
    return spans;
  }

  /** Removes the oldest span, if there is any, and returns its length in bytes. */
  removeFirst(): number {
    const block = this.#blocks[0];
    if (block === undefined) return 0;
    const bytes = (block.ends[block.removedCount] ?? 0) - startOf(block, block.removedCount);
    block.removedCount++;
    this.#size--;
    this.#bytes -= bytes;
    if (block.removedCount === block.spanCount) {
      this.#blocks.shift();
      this.#recycle(block);
    }
    return bytes;
  }

  #write(block: Block, encodedSpan: Uint8Array, tag: number): void {
    const start = endOf(block);
    block.memory.set(encodedSpan, start);
    block.ends[block.spanCount] = start + encodedSpan.length;
    block.tags[block.spanCount] = tag;
    block.spanCount++;
    this.#size++;
    this.#bytes += encodedSpan.length;
  }

  #takeBlock(minBytes: number): Block {
    if (minBytes > BLOCK_BYTES) return createBlock(minBytes);
    return this.#spare.pop() ?? createBlock(BLOCK_BYTES);
  }

  #recycle(block: Block): void {
    if (block.memory.length !== BLOCK_BYTES || this.#spare.length === MAX_SPARE_BLOCKS) return;
    block.spanCount = 0;
    block.removedCount = 0;
    this.#spare.push(block);
  }
}

function createBlock(bytes: number): Block {
  // Neither from Node's pool nor zeroed: the system provides pages only for what is written.
  return { memory: Buffer.allocUnsafeSlow(bytes), ends: [], tags: [], spanCount: 0, removedCount: 0 };
}

function endOf(block: Block): number {
  return startOf(block, block.spanCount);
}

function startOf({ ends }: Block, index: number): number {
  return index === 0 ? 0 : (ends[index - 1] ?? 0);
}

function spanAt(block: Block, index: number): StoredSpan {
  const encodedSpan = block.memory.subarray(startOf(block, index), block.ends[index]);
  return { encodedSpan, tag: block.tags[index] ?? 0 };
}
