import type { DatabaseSync } from 'node:sqlite';
import type { RecordLoss } from '#otel/ledger';

/** So many ranges are kept; the oldest go first. */
const MAX_LOSSES = 50_000;

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

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#insert = db.prepare(
      `INSERT INTO losses (instance, why, first_seq, last_seq, is_known, from_ms, to_ms)
       VALUES (:instance, :why, :first, :last, :known, :at, :at)
       ON CONFLICT DO UPDATE SET last_seq = max(last_seq, excluded.last_seq), to_ms = excluded.to_ms`,
    );
    this.#extend = db.prepare(
      `UPDATE losses SET last_seq = :last, to_ms = :at WHERE instance = :instance AND why = :why AND first_seq =
         (SELECT max(first_seq) FROM losses WHERE instance = :instance AND why = :why)
       AND last_seq = :first - 1 AND is_known = :known`,
    );
  }

  add({ isKnown, ...range }: RecordLoss, atMs: number): void {
    const values = { ...range, known: Number(isKnown), at: atMs };
    if (this.#extend.run(values).changes === 0) this.#insert.run(values);
  }

  /** Removes what became known before a time, and the oldest beyond the most that are kept. Returns since when all are kept. */
  trim(beforeMs: number): number {
    const surplus = this.#db.prepare('SELECT to_ms FROM losses ORDER BY to_ms DESC LIMIT 1 OFFSET ?');
    const keptMs = Math.max(beforeMs, Number(surplus.get(MAX_LOSSES)?.to_ms ?? -1) + 1);
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
