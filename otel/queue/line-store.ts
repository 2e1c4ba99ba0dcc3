/** Lines are copied into blocks of this size; a longer one gets a block of its own. */
const BLOCK_BYTES = 256 * 1024;
/** Emptied blocks that are kept for the lines to come; what a long outage has filled is given back. */
const MAX_SPARE_BLOCKS = 8;

/** A line, as a view of the store's memory, and the number that it was stored with. */
export interface StoredLine {
  readonly line: Uint8Array;
  readonly stamp: number;
}

/** A piece of memory that is filled from its beginning, and used anew when all lines in it are gone. */
interface Block {
  readonly memory: Buffer;
  /** By line: where it ends, and its stamp. Only the first `lineCount` count. */
  readonly ends: number[];
  readonly stamps: number[];
  lineCount: number;
  /** How many lines, from the first, are gone. */
  removedCount: number;
}

/**
 * Lines of bytes, first in, first out, in memory of their own that is used again and again. Thousands of them wait for
 * the collector at one time; as a Buffer each, they were moved to V8's old generation one by one, and to mark and sweep
 * them there took as long as to encode them.
 */
export class LineStore {
  /** In the order of their lines; none is empty. */
  readonly #blocks: Block[] = [];
  readonly #spare: Block[] = [];
  #size = 0;
  #bytes = 0;

  /** How many lines are in it. */
  get size(): number {
    return this.#size;
  }

  /** What they are together, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds a copy of a line behind all others. */
  append(line: Uint8Array, stamp: number): void {
    let block = this.#blocks.at(-1);
    if (block === undefined || endOf(block) + line.length > block.memory.length) {
      block = this.#takeBlock(line.length);
      this.#blocks.push(block);
    }
    this.#write(block, line, stamp);
  }

  /** Adds copies of lines before all others, in their order. */
  prepend(lines: readonly StoredLine[]): void {
    if (lines.length === 0) return;
    const block = createBlock(lines.reduce((bytes, { line }) => bytes + line.length, 0));
    for (const { line, stamp } of lines) this.#write(block, line, stamp);
    this.#blocks.unshift(block);
  }

  /**
   * The oldest lines, oldest first: at most `count`, and no more than weigh `maxBytes`, but one at least if there is
   * any. They stay in the store, and the views are good until they are removed.
   */
  peek(count: number, maxBytes = Number.POSITIVE_INFINITY): StoredLine[] {
    const lines: StoredLine[] = [];
    let bytes = 0;
    for (const block of this.#blocks) {
      for (let index = block.removedCount; index < block.lineCount; index++) {
        if (lines.length >= count) return lines;
        const stored = lineAt(block, index);
        bytes += stored.line.length;
        if (bytes > maxBytes && lines.length > 0) return lines;
        lines.push(stored);
      }
    }
    return lines;
  }

  /** Lets go of the oldest line, if there is any, and returns how many bytes it was. */
  removeFirst(): number {
    const block = this.#blocks[0];
    if (block === undefined || block.removedCount === block.lineCount) return 0;
    const bytes = (block.ends[block.removedCount] ?? 0) - startOf(block, block.removedCount);
    block.removedCount++;
    this.#size--;
    this.#bytes -= bytes;
    if (block.removedCount === block.lineCount) {
      this.#blocks.shift();
      this.#giveBack(block);
    }
    return bytes;
  }

  #write(block: Block, line: Uint8Array, stamp: number): void {
    const start = endOf(block);
    block.memory.set(line, start);
    block.ends[block.lineCount] = start + line.length;
    block.stamps[block.lineCount] = stamp;
    block.lineCount++;
    this.#size++;
    this.#bytes += line.length;
  }

  #takeBlock(leastBytes: number): Block {
    if (leastBytes > BLOCK_BYTES) return createBlock(leastBytes);
    return this.#spare.pop() ?? createBlock(BLOCK_BYTES);
  }

  #giveBack(block: Block): void {
    if (block.memory.length !== BLOCK_BYTES || this.#spare.length === MAX_SPARE_BLOCKS) return;
    block.lineCount = 0;
    block.removedCount = 0;
    this.#spare.push(block);
  }
}

function createBlock(bytes: number): Block {
  // Not out of Node's pool, and not zeroed: the system gives memory to what is written only.
  return { memory: Buffer.allocUnsafeSlow(bytes), ends: [], stamps: [], lineCount: 0, removedCount: 0 };
}

function endOf(block: Block): number {
  return startOf(block, block.lineCount);
}

function startOf({ ends }: Block, index: number): number {
  return index === 0 ? 0 : (ends[index - 1] ?? 0);
}

function lineAt(block: Block, index: number): StoredLine {
  const line = block.memory.subarray(startOf(block, index), block.ends[index]);
  return { line, stamp: block.stamps[index] ?? 0 };
}
