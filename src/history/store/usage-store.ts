import type { DatabaseSync } from 'node:sqlite';
import type { Span } from '../query.ts';
import { addSums, createSums, DIMENSIONS, type RequestSums, type UsageDelta } from '../usage-sums.ts';
import {
  KEY_COLUMNS,
  NAMED,
  type Named,
  USAGE_TABLES,
  USAGE_VALUES,
  type UsageTable,
  WHO,
} from './schema.ts';
import { isIntact, type RowKey, toKeyValues, toRowValues } from './usage-row.ts';

/**
 * A minute, and an hour, have so many rows with all names at most, and as many with those of `WHO`. The names of tenants may
 * be anybody's: what comes beyond is summed in one row, so that the sums stay right.
 */
export const MAX_USAGE_KEYS = 2_000;
/** Of so many minutes and hours it is known which rows they have. Records of others are looked up again. */
const MAX_KNOWN = 4;

/** The keys that have a row, by its names. */
type KnownKeys = Readonly<Record<'all' | 'who', Set<string>>>;

const TABLES = Object.keys(USAGE_TABLES) as UsageTable[];

/** The sums of requests by minute and by hour. */
export class UsageStore {
  readonly #db: DatabaseSync;
  readonly #selects;
  readonly #replaces;
  readonly #known: Record<UsageTable, Map<number, KnownKeys>> = {
    usage_minutes: new Map(),
    usage_hours: new Map(),
  };

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#selects = prepareEach(db, toSelect);
    this.#replaces = prepareEach(db, toReplace);
  }

  /**
   * Adds to the sums of their minutes and hours. Each row is written once: many keys may have one in common. Returns the
   * spans whose rows were damaged, and begin anew.
   */
  add(deltas: readonly UsageDelta[]): readonly Span[] {
    return TABLES.flatMap((table) => {
      const rows = new Map<string, { readonly key: RowKey; readonly added: RequestSums }>();
      for (const delta of deltas) {
        const key = this.#toRowKey(table, delta);
        const id = toKeyValues(key).join('\n');
        const row = rows.get(id) ?? { key, added: createSums() };
        addSums(row.added, delta);
        rows.set(id, row);
      }
      return [...rows.values()].flatMap(({ key, added }) => this.#addRow(table, key, added));
    });
  }

  #addRow(table: UsageTable, key: RowKey, added: RequestSums): readonly Span[] {
    const old = this.#selects[table].get(...toKeyValues(key));
    const isDamaged = old !== undefined && !isIntact(old);
    this.#replaces[table].run(...toRowValues(key, added, isDamaged ? undefined : old));
    return isDamaged ? [{ fromMs: key.at, untilMs: key.at + USAGE_TABLES[table].stepMs }] : [];
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

  /** The row that sums a key: with all its names, those of `WHO`, or none. A name with a line break has no row of its own. */
  #toRowKey(table: UsageTable, { minuteMs, key }: UsageDelta): RowKey {
    const at = minuteMs - (minuteMs % USAGE_TABLES[table].stepMs);
    const names = key.split('\n');
    const who = DIMENSIONS.map((_, index) => (index < WHO.length ? (names[index] ?? '') : ''));
    const known = this.#keysAt(table, at);
    if (names.length === DIMENSIONS.length) {
      if (admit(known.all, key)) return { at, named: 'all', names };
      if (admit(known.who, who.join('\n'))) return { at, named: 'who', names: who };
    }
    return { at, named: 'none', names: DIMENSIONS.map(() => '') };
  }

  #keysAt(table: UsageTable, at: number): KnownKeys {
    const known = this.#known[table];
    const keys = known.get(at);
    if (keys !== undefined) return keys;
    const select = this.#db.prepare(
      `SELECT ${DIMENSIONS.join(', ')} FROM ${table} WHERE at = ? AND is_other = ?`,
    );
    const readKeys = (named: Named) =>
      new Set(select.all(at, NAMED[named]).map((row) => DIMENSIONS.map((name) => row[name]).join('\n')));
    const read = { all: readKeys('all'), who: readKeys('who') };
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

/** Whether the key has a row, or gets one. */
function admit(keys: Set<string>, key: string): boolean {
  if (keys.size < MAX_USAGE_KEYS) keys.add(key);
  return keys.has(key);
}
