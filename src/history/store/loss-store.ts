import type { DatabaseSync } from 'node:sqlite';
import type { RecordLoss } from '#otel/ledger';

/** So many ranges are kept; the oldest go first. */
const MAX_LOSSES = 50_000;
/** Of so many instances it is known where their last range ends. */
const MAX_KNOWN = 256;

/** A range of records that were not exported, and when that became known: epoch milliseconds. */
export interface KeptLoss extends RecordLoss {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Which records were not exported, and why. Ranges that follow each other are one row. */
export class LossStore {
  readonly #db: DatabaseSync;
  readonly #insert;
  readonly #extend;
  /** The last range of each instance and reason. */
  readonly #latest = new Map<string, { readonly first: number; readonly last: number }>();

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#insert = db.prepare(
      `INSERT INTO losses (instance, why, first_seq, last_seq, is_known, from_ms, to_ms) VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET last_seq = max(last_seq, excluded.last_seq), to_ms = excluded.to_ms`,
    );
    this.#extend = db.prepare(
      'UPDATE losses SET last_seq = ?, to_ms = ? WHERE instance = ? AND why = ? AND first_seq = ?',
    );
  }

  add({ instance, why, first, last, isKnown }: RecordLoss, atMs: number): void {
    const key = `${instance}\n${why}\n${isKnown}`;
    const latest = this.#latest.get(key);
    if (latest?.last === first - 1 && this.#extend.run(last, atMs, instance, why, latest.first).changes > 0) {
      this.#latest.set(key, { first: latest.first, last });
      return;
    }
    this.#insert.run(instance, why, first, last, Number(isKnown), atMs, atMs);
    if (this.#latest.size >= MAX_KNOWN) this.#latest.clear();
    this.#latest.set(key, { first, last });
  }

  /** Forgets where ranges end: a transaction was not carried out. */
  forget(): void {
    this.#latest.clear();
  }

  /** Removes what became known before a time, and the oldest beyond the most that are kept. Returns since when all are kept. */
  trim(beforeMs: number): number {
    const surplus = this.#db
      .prepare('SELECT to_ms FROM losses ORDER BY to_ms DESC LIMIT 1 OFFSET ?')
      .get(MAX_LOSSES);
    const keptMs = Math.max(beforeMs, Number(surplus?.to_ms ?? -1) + 1);
    this.#db.prepare('DELETE FROM losses WHERE to_ms < ?').run(keptMs);
    return keptMs;
  }
}

/** What became known since a time, by instance and number. */
export function readLosses(db: DatabaseSync, sinceMs: number): readonly KeptLoss[] {
  const rows = db.prepare('SELECT * FROM losses WHERE to_ms >= ? ORDER BY instance, first_seq').all(sinceMs);
  return rows.map((row) => ({
    instance: String(row.instance),
    why: String(row.why) as RecordLoss['why'],
    first: Number(row.first_seq),
    last: Number(row.last_seq),
    isKnown: row.is_known === 1,
    fromMs: Number(row.from_ms),
    toMs: Number(row.to_ms),
  }));
}
