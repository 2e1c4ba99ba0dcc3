import type { DatabaseSync } from 'node:sqlite';
import { deserialize, serialize } from 'node:v8';
import { crc32 } from 'node:zlib';
import type { Gap, Span } from '../query.ts';
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

/** What waits is summed when it takes so much, or another minute has begun. */
const MAX_UNSUMMED_BYTES = 1024 ** 2;

/** The keys that have a row, by its names. */
type KnownKeys = Readonly<Record<'all' | 'who', Set<string>>>;

const MINUTE_MS = USAGE_TABLES.usage_minutes.stepMs;
const TABLES = Object.keys(USAGE_TABLES) as UsageTable[];

/**
 * The sums of requests by minute and by hour. To add to them costs as much for one request as for a thousand: what comes is
 * kept as it is, in one row for each batch, and added once in a minute, or before somebody reads them.
 */
export class UsageStore {
  readonly #db: DatabaseSync;
  readonly #selects;
  readonly #replaces;
  readonly #wait;
  #waitingBytes = 0;
  /** That of the last batch. */
  #minute = Number.NaN;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#selects = prepareEach(db, toSelect);
    this.#replaces = prepareEach(db, toReplace);
    this.#wait = db.prepare('INSERT INTO usage_waiting VALUES (?, ?, ?, ?, ?)');
  }

  /** What is not in the sums yet: a gap, or none. */
  get waiting(): readonly Gap[] {
    const sql = 'SELECT min(from_ms) AS a, max(to_ms) AS z, sum(requests) AS n FROM usage_waiting';
    const { a, z, n } = this.#db.prepare(sql).get() ?? {};
    return n === null ? [] : [{ fromMs: Number(a), toMs: Number(z), records: Number(n), reason: 'waiting' }];
  }

  /** Keeps what is to be added. Returns whether it is time to sum what waits. */
  wait(deltas: readonly UsageDelta[], nowMs: number): boolean {
    if (deltas.length > 0) {
      const bytes = serialize(deltas);
      const minutes = deltas.map(({ minuteMs }) => minuteMs);
      const requests = deltas.reduce((sum, { sums }) => sum + sums.requests, 0);
      const toMs = Math.max(...minutes) + MINUTE_MS - 1;
      this.#wait.run(bytes, crc32(bytes), Math.min(...minutes), toMs, requests);
      this.#waitingBytes += bytes.length;
    }
    const before = this.#minute;
    this.#minute = Math.floor(nowMs / MINUTE_MS);
    return this.#waitingBytes > MAX_UNSUMMED_BYTES || this.#minute !== before;
  }

  /** Adds what waits to the sums. Returns the spans of what was damaged, and is left out or begins anew. */
  sum(): readonly Span[] {
    const damaged: Span[] = [];
    const deltas: UsageDelta[] = [];
    const rows = this.#db.prepare('SELECT * FROM usage_waiting').all();
    // First of all: a file that is full has room for sums then.
    this.#db.exec('DELETE FROM usage_waiting');
    for (const { deltas: bytes, crc, from_ms, to_ms } of rows)
      if (crc32(bytes as Uint8Array) === crc) deltas.push(...deserialize(bytes as Uint8Array));
      else damaged.push({ fromMs: Number(from_ms), untilMs: Number(to_ms) + 1 });
    this.#waitingBytes = 0;
    return [...damaged, ...this.#add(deltas)];
  }

  /** Each row is written once: many keys may have one in common. */
  #add(deltas: readonly UsageDelta[]): readonly Span[] {
    return TABLES.flatMap((table) => {
      const known = new Map<number, KnownKeys>();
      const rows = new Map<string, { readonly key: RowKey; readonly added: RequestSums }>();
      for (const delta of deltas) {
        const at = delta.minuteMs - (delta.minuteMs % USAGE_TABLES[table].stepMs);
        const keys = known.get(at) ?? this.#readKeys(table, at);
        known.set(at, keys);
        const key = toRowKey(at, delta.key, keys);
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

  /** Removes the rows before a time. Returns how many there were. */
  removeBefore(table: UsageTable, ms: number): number {
    return Number(this.#db.prepare(`DELETE FROM ${table} WHERE at < ?`).run(ms).changes);
  }

  /** When the oldest rows begin, and the newest; 0 if there is none. */
  span(table: UsageTable): { readonly oldest: number; readonly newest: number } {
    const { a, z } = this.#db.prepare(`SELECT min(at) AS a, max(at) AS z FROM ${table}`).get() ?? {};
    return { oldest: Number(a), newest: Number(z) };
  }

  #readKeys(table: UsageTable, at: number): KnownKeys {
    const select = this.#db.prepare(
      `SELECT ${DIMENSIONS.join(', ')} FROM ${table} WHERE at = ? AND is_other = ?`,
    );
    const readKeys = (named: Named) =>
      new Set(select.all(at, NAMED[named]).map((row) => DIMENSIONS.map((name) => row[name]).join('\n')));
    return { all: readKeys('all'), who: readKeys('who') };
  }
}

/** The row that sums a key: with all its names, those of `WHO`, or none. A name with a line break has no row of its own. */
function toRowKey(at: number, key: string, known: KnownKeys): RowKey {
  const names = key.split('\n');
  const who = DIMENSIONS.map((_, index) => (index < WHO.length ? (names[index] ?? '') : ''));
  if (names.length === DIMENSIONS.length) {
    if (admit(known.all, key)) return { at, named: 'all', names };
    if (admit(known.who, who.join('\n'))) return { at, named: 'who', names: who };
  }
  return { at, named: 'none', names: DIMENSIONS.map(() => '') };
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
