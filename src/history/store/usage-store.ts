import type { DatabaseSync } from 'node:sqlite';
import { Histogram } from '../histogram.ts';
import type { Span } from '../query.ts';
import { DIMENSIONS, type UsageDelta } from '../usage-sums.ts';
import { KEY_COLUMNS, USAGE_TABLES, USAGE_VALUES, type UsageTable } from './schema.ts';
import { isIntact, toKeyValues, toRowValues } from './usage-row.ts';

/**
 * A minute, and an hour, have so many rows at most. The names of tenants may be anybody's: what comes beyond is summed in
 * one row, so that the sums stay right.
 */
export const MAX_USAGE_KEYS = 2_000;
/** Of so many minutes and hours it is known which rows they have. Records of others are looked up again. */
const MAX_KNOWN = 4;

const TABLES = Object.keys(USAGE_TABLES) as UsageTable[];

/** The sums of requests by minute and by hour. */
export class UsageStore {
  readonly #db: DatabaseSync;
  readonly #selects;
  readonly #replaces;
  readonly #known: Record<UsageTable, Map<number, Set<string>>> = {
    usage_minutes: new Map(),
    usage_hours: new Map(),
  };

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#selects = prepareEach(db, toSelect);
    this.#replaces = prepareEach(db, toReplace);
  }

  /** Adds to the sums of a minute and of its hour: one row each. Returns the spans whose rows were damaged, and begin anew. */
  add({ minuteMs, key, durations, firstTokens, ...delta }: UsageDelta): readonly Span[] {
    const added = {
      ...delta,
      durations: encodeBuckets(durations),
      firstTokens: encodeBuckets(firstTokens),
    };
    return TABLES.flatMap((table) => {
      const { stepMs } = USAGE_TABLES[table];
      const at = minuteMs - (minuteMs % stepMs);
      const rowKey = { at, names: this.#admit(table, at, key) ? key.split('\n') : null };
      const old = this.#selects[table].get(...toKeyValues(rowKey));
      const isDamaged = old !== undefined && !isIntact(old);
      this.#replaces[table].run(...toRowValues(rowKey, added, isDamaged ? undefined : old));
      return isDamaged ? [{ fromMs: at, untilMs: at + stepMs }] : [];
    });
  }

  /** Forgets what rows there are: a transaction was not carried out, or rows were removed. */
  forget(): void {
    for (const table of TABLES) this.#known[table].clear();
  }

  /** Removes the rows before a time. Returns how many there were. */
  removeBefore(table: UsageTable, ms: number): number {
    return Number(this.#db.prepare(`DELETE FROM ${table} WHERE at < ?`).run(ms).changes);
  }

  /** When the oldest rows begin; null if there is none. */
  oldest(table: UsageTable): number | null {
    const at = this.#db.prepare(`SELECT min(at) AS at FROM ${table}`).get()?.at;
    return typeof at === 'number' ? at : null;
  }

  /** Whether the key has a row of its own, or gets one. */
  #admit(table: UsageTable, at: number, key: string): boolean {
    const keys = this.#keysAt(table, at);
    if (keys.has(key)) return true;
    if (keys.size >= MAX_USAGE_KEYS || key.split('\n').length !== DIMENSIONS.length) return false;
    keys.add(key);
    return true;
  }

  #keysAt(table: UsageTable, at: number): Set<string> {
    const known = this.#known[table];
    const keys = known.get(at);
    if (keys !== undefined) return keys;
    const rows = this.#db
      .prepare(`SELECT ${DIMENSIONS.join(', ')} FROM ${table} WHERE at = ? AND is_other = 0`)
      .all(at);
    const read = new Set(rows.map((row) => DIMENSIONS.map((name) => String(row[name])).join('\n')));
    known.set(at, read);
    const [oldest] = known.keys();
    if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
    return read;
  }
}

function prepareEach(db: DatabaseSync, toSql: (table: UsageTable) => string) {
  const statements = TABLES.map((table) => [table, db.prepare(toSql(table))] as const);
  return Object.fromEntries(statements) as Record<UsageTable, ReturnType<DatabaseSync['prepare']>>;
}

function toSelect(table: UsageTable): string {
  return `SELECT * FROM ${table} WHERE ${['at', ...KEY_COLUMNS].map((name) => `${name} = ?`).join(' AND ')}`;
}

function toReplace(table: UsageTable): string {
  const columns = [...USAGE_VALUES, 'crc'];
  return `INSERT OR REPLACE INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`;
}

function encodeBuckets(buckets: readonly number[]): Uint8Array {
  const histogram = new Histogram();
  for (const bucket of buckets) histogram.add(bucket);
  return histogram.encode();
}
