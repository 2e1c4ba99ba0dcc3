import { crc32 } from 'node:zlib';
import { Histogram } from '../histogram.ts';
import { addTo, type RequestSums, SUMS } from '../usage-sums.ts';
import { NAMED, type Named, USAGE_VALUES } from './schema.ts';

/** A row of sums as it is in the database. */
export type StoredRow = Readonly<Record<string, unknown>>;

/** What identifies a row: its time, which names it has, and the values of DIMENSIONS. */
export interface RowKey {
  readonly at: number;
  readonly named: Named;
  readonly names: readonly string[];
}

type Value = string | number | Uint8Array;

/** The values that find a row. */
export function toKeyValues({ at, named, names }: RowKey): readonly (string | number)[] {
  return [at, NAMED[named], ...names];
}

/** The values of a row, with the checksum last. `old`: the row as it was; undefined: there was none. */
export function toRowValues(key: RowKey, added: RequestSums, old: StoredRow | undefined): readonly Value[] {
  const values = [
    ...toKeyValues(key),
    ...SUMS.map((name) => Number(old?.[name] ?? 0) + added.sums[name]),
    addNamed(old?.failures, added.failures),
    addNamed(old?.costs, added.costs),
    addBuckets(old?.durations, added.durations),
    addBuckets(old?.first_tokens, added.firstTokens),
  ];
  return [...values, toCrc(values)];
}

/**
 * Whether a row is as it was written. SQLite notices damage to its structure, not to what is in it, and a sum must never be
 * wrong.
 */
export function isIntact(row: StoredRow): boolean {
  return row.crc === null || row.crc === toCrc(USAGE_VALUES.map((name) => row[name] as Value));
}

function toCrc(values: readonly Value[]): number {
  let crc = 0;
  let text = '';
  for (const value of values) {
    if (typeof value === 'object') crc = crc32(value, crc);
    else text += `${value}\n`;
  }
  return crc32(text, crc);
}

function addNamed(old: unknown, added: ReadonlyMap<string, number>): string {
  if (added.size === 0) return old === undefined ? '{}' : String(old);
  const sums = new Map<string, number>(old === undefined ? [] : Object.entries(JSON.parse(String(old))));
  for (const [name, value] of added) addTo(sums, name, value);
  return JSON.stringify(Object.fromEntries(sums));
}

function addBuckets(old: unknown, added: readonly number[]): Uint8Array {
  const histogram = new Histogram();
  if (old !== undefined) histogram.addEncoded(old as Uint8Array);
  for (const bucket of added) histogram.add(bucket);
  return histogram.encode();
}
