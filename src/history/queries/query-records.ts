import type { DatabaseSync } from 'node:sqlite';
import { RecordDecoder } from '#otel/otlp';
import { hasFailed } from '#otel/outcome';
import type { RequestRecord } from '#otel/record/registry';
import { idsOf, toKey, toStatusClass } from '../block-keys.ts';
import type { Filters, FindQuery, NumberedRecord, RecordsQuery } from '../query.ts';
import { unpackBlock, unpackKeys } from '../store/block-store.ts';
import type { Pace } from './pace.ts';

/** Records by their numbers: the first, and what comes behind the last. */
interface NumberRange {
  readonly from: number;
  readonly before: number;
}

interface Search<Item> {
  /** A block without one of these has none of the records. */
  readonly names: readonly number[];
  readonly matches: (record: RequestRecord) => boolean;
  /** Whether an encoded span may be one of the records. To decode all takes ten times as long. */
  readonly mayMatch: (encodedSpan: Buffer) => boolean;
  readonly fromMs: number;
  readonly untilMs: number;
  /** Where the records may be, the latest first. */
  readonly ranges: readonly NumberRange[];
  readonly limit: number;
  /** What is kept of a record that was found. `encodedSpan` is valid until the call returns. */
  readonly toItem: (record: RequestRecord, at: { number: number; encodedSpan: Uint8Array }) => Item;
}

/** What a search has found, and before which number it goes on; null: there is no more. */
interface Found<Item> {
  readonly records: readonly Item[];
  readonly next: number | null;
  readonly damagedBlocks: number;
}

/** So many rows are read at a time. */
const PAGE_ROWS = 256;

/** Finds the records with an id, newest first. */
export async function findRecords(
  db: DatabaseSync,
  { id, limit }: FindQuery,
  pace: Pace,
): Promise<Found<NumberedRecord>> {
  const matches = (record: RequestRecord) => idsOf(record).includes(id);
  // Trace ids are encoded as bytes.
  const texts = [Buffer.from(id), ...(TRACE_ID.test(id) ? [Buffer.from(id, 'hex')] : [])];
  const mayMatch = (encodedSpan: Buffer) => texts.some((text) => encodedSpan.includes(text));
  const { ranges, next } = await readRanges(db, toKey('id', id), pace);
  const search = { names: [], matches, mayMatch, ...EVER, ranges, limit, toItem: toNumbered };
  const found = await searchBlocks(db, pace, search);
  return { ...found, next: found.next ?? next };
}

const TRACE_ID = /^[0-9a-f]{32}$/;
/** All times: as numbers of SQLite, too. */
export const EVER = { fromMs: 0, untilMs: Number.MAX_SAFE_INTEGER };

/** Lists the records that match, newest first. */
export async function listRecords(
  db: DatabaseSync,
  { filters, fromMs, untilMs, before, limit }: RecordsQuery,
  pace: Pace,
): Promise<Found<NumberedRecord>> {
  const texts = NAMES.map((name) => filters[name]).filter((text) => text !== undefined);
  return await searchBlocks(db, pace, {
    names: toKeys(filters),
    matches: toMatcher(filters),
    fromMs,
    untilMs,
    limit,
    mayMatch: (encodedSpan: Buffer) => texts.every((text) => encodedSpan.includes(text)),
    ranges: [toRange(before)],
    toItem: toNumbered,
  });
}

/** All records before a number; null: all. */
export function toRange(before: number | null): NumberRange {
  return { from: 0, before: before ?? Number.MAX_SAFE_INTEGER };
}

const toNumbered = (record: RequestRecord, { number }: { number: number }) => ({ number, record });

/** Where the records with an id may be, the latest first, and before which number nobody has looked; null: everywhere. */
async function readRanges(
  db: DatabaseSync,
  key: number,
  pace: Pace,
): Promise<{ readonly ranges: readonly NumberRange[]; readonly next: number | null }> {
  const selectPage = db.prepare(
    `SELECT first, ids FROM record_ids WHERE first < ? ORDER BY first DESC LIMIT ${PAGE_ROWS}`,
  );
  const ranges: NumberRange[] = [];
  let { before } = toRange(null);
  for (;;) {
    const page = selectPage.all(before);
    for (const row of page) {
      const from = Number(row.first);
      if (unpackKeys(row.ids as Uint8Array).includes(key)) ranges.push({ from, before });
      before = from;
    }
    if (page.length < PAGE_ROWS) return { ranges, next: null };
    if (pace.isDue && !(await pace.pause())) return { ranges, next: before };
  }
}

/** Finds records in the blocks that may have them, newest first. */
export async function searchBlocks<Item>(
  db: DatabaseSync,
  pace: Pace,
  { names, matches, mayMatch, fromMs, untilMs, ranges, limit, toItem }: Search<Item>,
): Promise<Found<Item>> {
  const selectPage = db.prepare(
    `SELECT first, from_ms, to_ms, is_compressed, names FROM blocks
     WHERE first < ? AND first >= coalesce((SELECT max(first) FROM blocks WHERE first <= ?), 0)
     ORDER BY first DESC LIMIT ${PAGE_ROWS}`,
  );
  const selectData = db.prepare('SELECT data FROM block_data WHERE first = ?');
  const records: Item[] = [];
  let [last, damagedBlocks] = [0, 0];
  for (const { from, before } of ranges) {
    let below = before;
    for (let page = null; page === null || page.length === PAGE_ROWS; ) {
      page = selectPage.all(below, from);
      for (const row of page) {
        if (pace.isDue && !(await pace.pause())) return { records, next: below, damagedBlocks };
        const first = Number(row.first);
        below = first;
        if (Number(row.to_ms) < fromMs || Number(row.from_ms) >= untilMs) continue;
        const index = unpackKeys(row.names as Uint8Array);
        if (!names.every((key) => index.includes(key))) continue;
        const data = selectData.get(first)?.data as Uint8Array | undefined;
        // Removed while the search paused.
        if (data === undefined) continue;
        const block = readBlock(data, row.is_compressed === 1);
        if (block === null) {
          damagedBlocks += 1;
          continue;
        }
        for (const [offset, encodedSpan] of block.spans.entries().toArray().toReversed()) {
          const number = first + offset;
          if (number < from || number >= before || !mayMatch(encodedSpan)) continue;
          const record = block.decode(encodedSpan);
          if (record === null) continue;
          const arrivedMs = Date.parse(record.ts);
          if (arrivedMs < fromMs || arrivedMs >= untilMs || !matches(record)) continue;
          if (records.length === limit) return { records, next: last, damagedBlocks };
          records.push(toItem(record, { number, encodedSpan }));
          last = number;
        }
      }
    }
  }
  return { records, next: null, damagedBlocks };
}

/** The encoded spans of a block, and what decodes one: null if it is not readable. Null: the block is damaged. */
function readBlock(data: Uint8Array, isCompressed: boolean) {
  try {
    const spans = unpackBlock(data, isCompressed);
    const decoder = new RecordDecoder(new Uint8Array(spans[0]?.buffer ?? new ArrayBuffer()));
    const decode = ({ byteOffset, length }: Uint8Array) => decoder.decode(byteOffset, byteOffset + length);
    return { spans, decode };
  } catch {
    return null;
  }
}

/** What a record is found by as it is. */
export const NAMES = ['tenant', 'client', 'model', 'replica'] as const;

function toKeys({ status, failed, ...names }: Filters): readonly number[] {
  return [
    ...NAMES.flatMap((name) => (names[name] === undefined ? [] : [toKey(name, names[name])])),
    ...(status === undefined ? [] : [toKey(status.endsWith('xx') ? 'class' : 'status', status)]),
    ...(failed === true ? [toKey('failed', '')] : []),
  ];
}

function toMatcher({ status, failed, ...names }: Filters) {
  return (record: RequestRecord): boolean =>
    NAMES.every((name) => names[name] === undefined || record[name] === names[name]) &&
    (status === undefined || String(record.status) === status || toStatusClass(record.status) === status) &&
    (failed === undefined || hasFailed(record) === failed);
}
