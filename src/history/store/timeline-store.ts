import type { DatabaseSync } from 'node:sqlite';
import type { EventKind, ShownEvent, TimelineEntry } from '../timeline-entry.ts';
import { FILE_NUMBERS } from './database.ts';

/** So many events are kept; the oldest go first. */
const MAX_EVENTS = 100_000;

const OPEN = 'SELECT number, kind, subject FROM timeline WHERE to_ms IS NULL';

/** What happened: moments, and bands that may go on. */
export class TimelineStore {
  readonly #db: DatabaseSync;
  readonly #insert;
  readonly #open;
  readonly #close;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#insert = db.prepare(
      `INSERT INTO timeline (number, kind, subject, from_ms, to_ms, details) VALUES (
        (SELECT coalesce(max(number), (SELECT next_number - next_number % ${FILE_NUMBERS} FROM meta)) + 1 FROM timeline),
        ?, ?, ?, ?, ?)`,
    );
    this.#open = db.prepare(
      'SELECT number FROM timeline WHERE kind = ? AND subject = ? AND to_ms IS NULL ORDER BY number DESC LIMIT 1',
    );
    this.#close = db.prepare('UPDATE timeline SET to_ms = max(from_ms, ?) WHERE number = ?');
  }

  add({ phase, kind, subject, fromMs, atMs, details }: TimelineEntry): void {
    const text = JSON.stringify(details);
    // The clock may have been set back in between.
    const insertSpan = () =>
      this.#insert.run(kind, subject, Math.min(fromMs, atMs), Math.max(fromMs, atMs), text);
    if (phase === 'moment') this.#insert.run(kind, subject, atMs, atMs, text);
    else if (phase === 'span') insertSpan();
    else {
      const open = this.#open.get(kind, subject)?.number;
      if (phase === 'begin') {
        // What is begun again goes on.
        if (open === undefined) this.#insert.run(kind, subject, atMs, null, text);
      } else if (open !== undefined) this.#close.run(atMs, Number(open));
      else if (fromMs < atMs) insertSpan();
    }
  }

  /**
   * Catches up with what nobody has told since `untoldMs`. A band that is not of the present, or is a later one of the same
   * subject, has ended: then, if nobody knows when.
   */
  catchUp(present: readonly TimelineEntry[], untoldMs: number): void {
    const entries = new Map(present.map((entry) => [`${entry.kind} ${entry.subject}`, entry]));
    for (const { number, kind, subject } of this.#db.prepare(OPEN).all()) {
      const entry = entries.get(`${kind} ${subject}`);
      if (entry?.phase === 'begin' && entry.atMs <= untoldMs) entries.delete(`${kind} ${subject}`);
      else this.#close.run(entry?.phase === 'end' ? entry.atMs : untoldMs, Number(number));
    }
    for (const entry of entries.values()) if (entry.phase === 'begin') this.add(entry);
  }

  /** Removes events that ended before a time, and the oldest beyond the most that are kept. */
  trim(beforeMs: number): void {
    this.#db.prepare('DELETE FROM timeline WHERE to_ms < ?').run(beforeMs);
    this.#db
      .prepare('DELETE FROM timeline WHERE number <= (SELECT max(number) FROM timeline) - ?')
      .run(MAX_EVENTS);
  }
}

/** A row as an event. */
export function toEvent(row: Readonly<Record<string, unknown>>): ShownEvent {
  return {
    number: Number(row.number),
    kind: String(row.kind) as EventKind,
    subject: String(row.subject),
    fromMs: Number(row.from_ms),
    untilMs: row.to_ms === null ? null : Number(row.to_ms),
    details: JSON.parse(String(row.details)),
  };
}
