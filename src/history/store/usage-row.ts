import { crc32 } from 'node:zlib';
import { Histogram } from '../histogram.ts';
import { addTo, DIMENSIONS, SUMS, type SumName } from '../usage-sums.ts';
import { USAGE_VALUES } from './schema.ts';

/** A row of sums as it is in the database. */
export type StoredRow = Readonly<Record<string, unknown>>;

/** What identifies a row: its time, and the values of DIMENSIONS; null: it sums what has no row of its own. */
export interface RowKey {
  readonly at: number;
  readonly names: readonly string[] | null;
}

/** What is added to a row. */
export interface RowSums {
  readonly sums: Readonly<Record<SumName, number>>;
  readonly failures: ReadonlyMap<string, number>;
  readonly costs: ReadonlyMap<string, number>;
  readonly durations: Uint8Array;
  readonly firstTokens: Uint8Array;
}

type Value = string | number | Uint8Array;

/** The values that find a row. */
export function toKeyValues({ at, names }: RowKey): readonly (string | number)[] {
  return [at, Number(names === null), ...(names ?? DIMENSIONS.map(() => ''))];
}

/** The values of a row, with the checksum last. `old`: the row as it was; undefined: there was none. */
export function toRowValues(key: RowKey, added: RowSums, old: StoredRow | undefined): readonly Value[] {
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

function addBuckets(old: unknown, added: Uint8Array): Uint8Array {
  if (old === undefined) return added;
  const histogram = new Histogram();
  histogram.addEncoded(old as Uint8Array);
  histogram.addEncoded(added);
  return histogram.encode();
}
