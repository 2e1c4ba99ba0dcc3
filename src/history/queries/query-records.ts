import type { DatabaseSync } from 'node:sqlite';
import { RecordDecoder } from '#otel/otlp';
import { hasFailed } from '#otel/outcome';
import type { RequestRecord } from '#otel/record/registry';
import { hasKey, idsOf, toKey, toStatusClass } from '../block-keys.ts';
import type { Filters, FindQuery, NumberedRecord, RecordsQuery } from '../query.ts';
import { unpackBlock, unpackKeys } from '../store/block-store.ts';
import type { Pace } from './pace.ts';

/** Records that were found. */
export interface FoundRecords {
  readonly records: readonly NumberedRecord[];
  readonly next: number | null;
  readonly damagedBlocks: number;
}

interface Search<Item> {
  /** A block without one of these has none of the records. */
  readonly keys: readonly number[];
  readonly matches: (record: RequestRecord) => boolean;
  /** An encoded span without one of these is none of the records. Not given: any may be. */
  readonly texts?: readonly Buffer[];
  readonly fromMs: number;
  readonly untilMs: number;
  readonly before: number | null;
  readonly limit: number;
  /** What is kept of a record that was found. `encodedSpan` is valid until the call returns. */
  readonly toItem: (record: RequestRecord, at: { number: number; encodedSpan: Uint8Array }) => Item;
}

/** What a search has found, and before which number it goes on; null: there is no more. */
interface Found<Item> {
  readonly found: readonly Item[];
  readonly next: number | null;
  readonly damagedBlocks: number;
}

/** So many indexes are read at a time. */
const PAGE_BLOCKS = 256;

/** Finds the records with an id, newest first. */
export async function findRecords(
  db: DatabaseSync,
  { id, limit }: FindQuery,
  pace: Pace,
): Promise<FoundRecords> {
  const matches = (record: RequestRecord) => idsOf(record).includes(id);
  // To decode all spans of a block takes ten times as long. Trace ids are encoded as bytes.
  const texts = [Buffer.from(id), ...(TRACE_ID.test(id) ? [Buffer.from(id, 'hex')] : [])];
  const search = { keys: [toKey('id', id)], matches, texts, ...EVER, before: null, limit };
  return toFoundRecords(await searchBlocks(db, pace, { ...search, toItem: toNumbered }));
}

const TRACE_ID = /^[0-9a-f]{32}$/;
const EVER = { fromMs: Number.NEGATIVE_INFINITY, untilMs: Number.POSITIVE_INFINITY };

/** Lists the records that match, newest first. */
export async function listRecords(db: DatabaseSync, query: RecordsQuery, pace: Pace): Promise<FoundRecords> {
  const { filters, fromMs, untilMs, before, limit } = query;
  const matches = toMatcher(filters);
  const search = { keys: toKeys(filters), matches, fromMs, untilMs, before, limit };
  return toFoundRecords(await searchBlocks(db, pace, { ...search, toItem: toNumbered }));
}

const toNumbered = (record: RequestRecord, { number }: { number: number }): NumberedRecord => ({
  number,
  record,
});

function toFoundRecords({ found, ...rest }: Found<NumberedRecord>): FoundRecords {
  return { records: found, ...rest };
}

/** Finds records in the blocks that may have them, newest first. */
export async function searchBlocks<Item>(
  db: DatabaseSync,
  pace: Pace,
  { keys, matches, texts, fromMs, untilMs, before, limit, toItem }: Search<Item>,
): Promise<Found<Item>> {
  const selectPage = db.prepare(
    `SELECT first, from_ms, to_ms, is_compressed, keys FROM blocks JOIN block_keys USING (first)
     WHERE first < ? ORDER BY first DESC LIMIT ${PAGE_BLOCKS}`,
  );
  const selectData = db.prepare('SELECT data FROM block_data WHERE first = ?');
  const found: Item[] = [];
  let last = 0;
  let damagedBlocks = 0;
  let below = before ?? Number.MAX_SAFE_INTEGER;
  for (;;) {
    const page = selectPage.all(below);
    for (const row of page) {
      const first = Number(row.first);
      below = first;
      if (Number(row.to_ms) < fromMs || Number(row.from_ms) >= untilMs) continue;
      const index = unpackKeys(row.keys as Uint8Array);
      if (!keys.every((key) => hasKey(index, key))) continue;
      const data = selectData.get(first)?.data as Uint8Array | undefined;
      // Removed while the search paused.
      if (data === undefined) continue;
      const decoded = decodeBlock(data, row.is_compressed === 1, texts);
      if (decoded === null) {
        damagedBlocks += 1;
        continue;
      }
      for (const [offset, { record, encodedSpan }] of decoded.entries().toArray().toReversed()) {
        const number = first + offset;
        if (number >= (before ?? Number.MAX_SAFE_INTEGER) || record === null) continue;
        const arrivedMs = Date.parse(record.ts);
        if (arrivedMs < fromMs || arrivedMs >= untilMs || !matches(record)) continue;
        if (found.length === limit) return { found, next: last, damagedBlocks };
        found.push(toItem(record, { number, encodedSpan }));
        last = number;
      }
      if (pace.isDue) {
        await pace.pause();
        if (pace.isOver) return { found, next: below, damagedBlocks };
      }
    }
    if (page.length < PAGE_BLOCKS) return { found, next: null, damagedBlocks };
  }
}

interface DecodedSpan {
  readonly record: RequestRecord | null;
  readonly encodedSpan: Uint8Array;
}

/** Null: the block is damaged. A record that is not readable, or has none of the texts, is null. */
function decodeBlock(
  data: Uint8Array,
  isCompressed: boolean,
  texts?: readonly Buffer[],
): DecodedSpan[] | null {
  try {
    const spans = unpackBlock(data, isCompressed);
    const [first] = spans;
    if (first === undefined) return [];
    const decoder = new RecordDecoder(new Uint8Array(first.buffer, 0, first.buffer.byteLength));
    return spans.map((encodedSpan) => {
      const { buffer, byteOffset, length } = encodedSpan;
      const mayMatch = texts?.some((text) => Buffer.from(buffer, byteOffset, length).includes(text)) ?? true;
      const record = mayMatch ? decoder.decode(byteOffset, byteOffset + length) : null;
      return { record, encodedSpan };
    });
  } catch {
    return null;
  }
}

function toKeys({ tenant, client, model, replica, status, failed }: Filters): readonly number[] {
  const keys: number[] = [];
  if (tenant !== undefined) keys.push(toKey('tenant', tenant));
  if (client !== undefined) keys.push(toKey('client', client));
  if (model !== undefined) keys.push(toKey('model', model));
  if (replica !== undefined) keys.push(toKey('replica', replica));
  if (status !== undefined) keys.push(toKey(status.endsWith('xx') ? 'class' : 'status', status));
  if (failed === true) keys.push(toKey('failed', ''));
  return keys;
}

function toMatcher({ tenant, client, model, replica, status, failed }: Filters) {
  return (record: RequestRecord): boolean =>
    (tenant === undefined || record.tenant === tenant) &&
    (client === undefined || record.client === client) &&
    (model === undefined || record.model === model) &&
    (replica === undefined || record.replica === replica) &&
    (status === undefined || String(record.status) === status || toStatusClass(record.status) === status) &&
    (failed === undefined || hasFailed(record) === failed);
}
