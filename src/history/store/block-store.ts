import type { DatabaseSync } from 'node:sqlite';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { RecordChunk } from '../messages.ts';
import { FRAME_BYTES, FRAME_RECORDS, readFrames } from '../record-frame.ts';

/**
 * Spans are much alike, so short matches are not looked for: level 1 with matches of 7 bytes took 2.4 µs per record of
 * 1.7 KB, and 1.5 times as long by itself, for the same size (lab -- history). Its table then fits into the fastest memory of
 * a processor: with 1,024 places, not 8,192, it takes 0.75 times as long, and 1 % fewer bytes.
 */
const COMPRESSION = {
  params: {
    [constants.ZSTD_c_compressionLevel]: 1,
    [constants.ZSTD_c_minMatch]: 7,
    [constants.ZSTD_c_hashLog]: 10,
    [constants.ZSTD_c_checksumFlag]: 1,
  },
};
/** A frame that had no room for one more record has nearly `FRAME_BYTES`. It is a block, as one of `FRAME_RECORDS` is. */
const BLOCK_BYTES = (FRAME_BYTES * 3) / 4;
/** More than any block has: what claims to be larger is damaged. */
const MAX_BLOCK_BYTES = 64 * 1024 ** 2;

/** A chunk as it is kept. */
interface StoredChunk {
  readonly count: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly data: Uint8Array;
  readonly keys: Uint32Array;
}

/** Chunks that are too small to be a block. They are rows of their own, so that nothing waits in memory alone. */
type OpenChunks = readonly (StoredChunk & { readonly first: number })[];

/** The records, compressed in blocks. Each has an index of what its records are found by. */
export class BlockStore {
  readonly #db: DatabaseSync;
  readonly #insert;
  readonly #insertKeys;
  readonly #insertData;
  readonly #deletes;
  #next: number;
  #open: OpenChunks;
  /** As it was when the transaction began. */
  #before: { readonly next: number; readonly open: OpenChunks };

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#insert = db.prepare('INSERT INTO blocks VALUES (?, ?, ?, ?, ?)');
    this.#insertKeys = db.prepare('INSERT INTO block_keys VALUES (?, ?)');
    this.#insertData = db.prepare('INSERT INTO block_data VALUES (?, ?)');
    this.#deletes = ['blocks', 'block_keys', 'block_data'].map((table) =>
      db.prepare(`DELETE FROM ${table} WHERE first = ?`),
    );
    this.#next = Number(db.prepare('SELECT next_number AS next FROM meta').get()?.next ?? 0);
    this.#open = readOpen(db);
    this.#before = { next: this.#next, open: this.#open };
  }

  /** The number that the next record gets. */
  get next(): number {
    return this.#next;
  }

  /** A transaction begins: `rollback` returns to here. */
  begin(): void {
    this.#before = { next: this.#next, open: this.#open };
  }

  /** Nothing was written after all. */
  rollback(): void {
    this.#next = this.#before.next;
    this.#open = this.#before.open;
  }

  /** Adds the records of a chunk. Returns how many bytes they took, and how many blocks became complete. */
  add(chunk: RecordChunk): { readonly bytes: number; readonly blocks: number } {
    const stored = toStored(chunk);
    const chunks = [...this.#open, { ...stored, first: this.#next }];
    const count = sum(chunks, (each) => each.count);
    if (count < FRAME_RECORDS && sum(chunks, ({ data }) => data.length) < BLOCK_BYTES) {
      this.#write(this.#next, stored, stored.data, false);
      // A copy: the memory of the batch goes back.
      this.#open = [...this.#open, { ...stored, data: stored.data.slice(), first: this.#next }];
      this.#next += stored.count;
      return { bytes: stored.data.length, blocks: 0 };
    }
    const first = chunks[0]?.first ?? this.#next;
    for (const chunk of this.#open) for (const statement of this.#deletes) statement.run(chunk.first);
    const block = join(chunks);
    const data = zstdCompressSync(block.data, COMPRESSION);
    this.#write(first, block, data, true);
    this.#next += stored.count;
    this.#open = [];
    return { bytes: data.length, blocks: 1 };
  }

  /** Removes the oldest block. Returns when its last record arrived; null if there is none. */
  removeOldest(): number | null {
    const oldest = this.#db.prepare('SELECT first, to_ms FROM blocks ORDER BY first LIMIT 1').get();
    if (oldest === undefined) return null;
    const first = Number(oldest.first);
    for (const statement of this.#deletes) statement.run(first);
    this.#open = this.#open.filter((chunk) => chunk.first !== first);
    return Number(oldest.to_ms);
  }

  #write(
    first: number,
    { count, fromMs, toMs, keys }: StoredChunk,
    data: Uint8Array,
    isCompressed: boolean,
  ): void {
    this.#insert.run(first, count, fromMs, toMs, Number(isCompressed));
    this.#insertKeys.run(first, new Uint8Array(keys.buffer, keys.byteOffset, keys.byteLength));
    this.#insertData.run(first, data);
  }
}

/** The records of a block, each as its encoded span. Throws if it is damaged. */
export function unpackBlock(data: Uint8Array, isCompressed: boolean): readonly Uint8Array[] {
  const bytes = isCompressed ? zstdDecompressSync(data, { maxOutputLength: MAX_BLOCK_BYTES }) : data;
  return readFrames(bytes);
}

/** The keys of a block. */
export function unpackKeys(bytes: Uint8Array): Uint32Array {
  const isAligned = bytes.byteOffset % Uint32Array.BYTES_PER_ELEMENT === 0;
  const { buffer, byteOffset, byteLength } = isAligned ? bytes : bytes.slice();
  return new Uint32Array(buffer, byteOffset, Math.floor(byteLength / Uint32Array.BYTES_PER_ELEMENT));
}

function toStored({ bytes, count, keys, firstTs, lastTs }: RecordChunk): StoredChunk {
  return { count, fromMs: Date.parse(firstTs), toMs: Date.parse(lastTs), data: bytes, keys: keys.toSorted() };
}

function join(chunks: readonly StoredChunk[]): StoredChunk {
  const [only] = chunks;
  if (only !== undefined && chunks.length === 1) return only;
  return {
    count: sum(chunks, ({ count }) => count),
    fromMs: Math.min(...chunks.map(({ fromMs }) => fromMs)),
    toMs: Math.max(...chunks.map(({ toMs }) => toMs)),
    data: Buffer.concat(chunks.map(({ data }) => data)),
    keys: joinKeys(chunks.map(({ keys }) => keys)),
  };
}

/** All keys, each once, sorted. */
function joinKeys(lists: readonly Uint32Array[]): Uint32Array {
  const all = new Uint32Array(sum(lists, ({ length }) => length));
  let length = 0;
  for (const list of lists) {
    all.set(list, length);
    length += list.length;
  }
  return all.sort().filter((key, index) => index === 0 || key !== all[index - 1]);
}

/** The chunks that an earlier run has left. */
function readOpen(db: DatabaseSync): OpenChunks {
  const rows = db
    .prepare(
      `SELECT first, count, from_ms, to_ms, data, keys FROM blocks JOIN block_keys USING (first)
       JOIN block_data USING (first) WHERE is_compressed = 0 ORDER BY first`,
    )
    .all();
  return rows.map(({ first, count, from_ms, to_ms, data, keys }) => ({
    first: Number(first),
    count: Number(count),
    fromMs: Number(from_ms),
    toMs: Number(to_ms),
    data: data as Uint8Array,
    keys: unpackKeys(keys as Uint8Array),
  }));
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
