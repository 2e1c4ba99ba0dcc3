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
/** A row has so many ids at most, or those of one chunk: the fewer rows, the sooner all are read. */
const ROW_IDS = 4096;

/** Records next to each other, as they are kept. */
interface StoredChunk {
  readonly first: number;
  readonly count: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly data: Uint8Array;
  readonly names: Uint32Array;
}

/** Removes the ids whose records are all gone. */
const DELETE_IDS = `DELETE FROM record_ids WHERE first <
  (SELECT max(first) FROM record_ids WHERE first <= (SELECT min(first) FROM blocks))`;

/** What a transaction changes. */
interface Tail {
  readonly next: number;
  /** Those that are too small to be a block. They are rows of their own, so that nothing waits in memory alone. */
  readonly open: readonly StoredChunk[];
  /** The ids of the last row, and the number of the first record that it is about. */
  readonly from: number;
  readonly ids: Uint32Array;
}

/** The records, compressed in blocks. Each has the names of its records; the ids of several blocks are in one row. */
export class BlockStore {
  readonly #db: DatabaseSync;
  readonly #insert;
  readonly #writeIds;
  readonly #insertData;
  readonly #deletes;
  readonly #deleteIds;
  #tail: Tail;
  /** As it was when the transaction began. */
  #before: Tail;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#insert = db.prepare('INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?)');
    this.#writeIds = db.prepare('INSERT OR REPLACE INTO record_ids VALUES (?, ?)');
    this.#insertData = db.prepare('INSERT INTO block_data VALUES (?, ?)');
    const toDelete = (table: string) => db.prepare(`DELETE FROM ${table} WHERE first = ?`);
    this.#deletes = ['blocks', 'block_data'].map(toDelete);
    this.#deleteIds = db.prepare(DELETE_IDS);
    const next = Number(db.prepare('SELECT next_number AS next FROM meta').get()?.next ?? 0);
    this.#tail = { next, open: readOpen(db), from: next, ids: new Uint32Array() };
    this.#before = this.#tail;
  }

  /** The number that the next record gets. */
  get next(): number {
    return this.#tail.next;
  }

  /** A transaction begins: `rollback` returns to here. */
  begin(): void {
    this.#before = this.#tail;
  }

  /** Nothing was written after all. */
  rollback(): void {
    this.#tail = this.#before;
  }

  /** Adds the records of a chunk. Returns how many bytes they took, and how many blocks became complete. */
  add(chunk: RecordChunk): { readonly bytes: number; readonly blocks: number } {
    const { bytes: data, count, keys, firstTs, lastTs } = chunk;
    const { next: first, open } = this.#tail;
    const [fromMs, toMs] = [Date.parse(firstTs), Date.parse(lastTs)];
    const added = { first, count, fromMs, toMs, data, names: keys.names };
    const tail = { next: first + count, ...this.#addIds(keys.ids) };
    const openBytes = open.reduce((sum, chunk) => sum + chunk.data.length, 0);
    if (tail.next - (open[0]?.first ?? first) < FRAME_RECORDS && openBytes + data.length < BLOCK_BYTES) {
      this.#write(added, false);
      // A copy: the memory of the batch goes back.
      this.#tail = { ...tail, open: [...open, { ...added, data: data.slice() }] };
      return { bytes: data.length, blocks: 0 };
    }
    const block = join([...open, added]);
    for (const { first } of open) for (const statement of this.#deletes) statement.run(first);
    const compressed = zstdCompressSync(block.data, COMPRESSION);
    this.#write({ ...block, data: compressed }, true);
    this.#tail = { ...tail, open: [] };
    return { bytes: compressed.length, blocks: 1 };
  }

  /** Removes the oldest block. Returns when its last record arrived; null if there is none. */
  removeOldest(): number | null {
    const oldest = this.#db.prepare('SELECT first, to_ms FROM blocks ORDER BY first LIMIT 1').get();
    if (oldest === undefined) return null;
    const first = Number(oldest.first);
    for (const statement of this.#deletes) statement.run(first);
    this.#deleteIds.run();
    this.#tail = { ...this.#tail, open: this.#tail.open.filter((chunk) => chunk.first !== first) };
    return Number(oldest.to_ms);
  }

  #write({ first, count, fromMs, toMs, data, names }: StoredChunk, isCompressed: boolean): void {
    this.#insert.run(first, count, fromMs, toMs, Number(isCompressed), toBytes(names));
    this.#insertData.run(first, data);
  }

  /** Adds the ids of the next records to the last row, or begins another one. */
  #addIds(added: Uint32Array): Pick<Tail, 'from' | 'ids'> {
    const { next, from, ids } = this.#tail;
    const isFull = ids.length + added.length > ROW_IDS;
    const row = isFull ? { from: next, ids: added } : { from, ids: concat(ids, added) };
    this.#writeIds.run(row.from, toBytes(row.ids));
    return row;
  }
}

/** The records of a block, each as its encoded span. Throws if it is damaged. */
export function unpackBlock(data: Uint8Array, isCompressed: boolean): readonly Buffer[] {
  const bytes = isCompressed ? zstdDecompressSync(data, { maxOutputLength: MAX_BLOCK_BYTES }) : data;
  return readFrames(bytes);
}

/** The keys of a row. */
export function unpackKeys(bytes: Uint8Array): Uint32Array {
  const isAligned = bytes.byteOffset % Uint32Array.BYTES_PER_ELEMENT === 0;
  const { buffer, byteOffset, byteLength } = isAligned ? bytes : bytes.slice();
  return new Uint32Array(buffer, byteOffset, Math.floor(byteLength / Uint32Array.BYTES_PER_ELEMENT));
}

function toBytes({ buffer, byteOffset, byteLength }: Uint32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function join(chunks: readonly [...StoredChunk[], StoredChunk]): StoredChunk {
  const [oldest] = chunks;
  if (chunks.length === 1) return oldest;
  return {
    first: oldest.first,
    count: chunks.reduce((sum, { count }) => sum + count, 0),
    fromMs: Math.min(...chunks.map(({ fromMs }) => fromMs)),
    toMs: Math.max(...chunks.map(({ toMs }) => toMs)),
    data: Buffer.concat(chunks.map(({ data }) => data)),
    names: Uint32Array.from(new Set(chunks.flatMap(({ names }) => [...names]))),
  };
}

function concat(a: Uint32Array, b: Uint32Array): Uint32Array {
  const both = new Uint32Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** The chunks that an earlier run has left. */
function readOpen(db: DatabaseSync): readonly StoredChunk[] {
  const rows = db
    .prepare('SELECT * FROM blocks JOIN block_data USING (first) WHERE is_compressed = 0 ORDER BY first')
    .all();
  return rows.map(({ first, count, from_ms, to_ms, data, names }) => ({
    first: Number(first),
    count: Number(count),
    fromMs: Number(from_ms),
    toMs: Number(to_ms),
    data: data as Uint8Array,
    names: unpackKeys(names as Uint8Array),
  }));
}
