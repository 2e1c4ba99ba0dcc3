import type { DatabaseSync } from 'node:sqlite';
import type { HistorySettings } from '../messages.ts';
import type { BlockStore } from './block-store.ts';
import { toBudget, usedBytes } from './database.ts';
import type { LossStore } from './loss-store.ts';
import { USAGE_TABLES, type UsageTable } from './schema.ts';
import type { TimelineStore } from './timeline-store.ts';
import type { UsageStore } from './usage-store.ts';

/** How often what is too old is removed. */
const TRIM_INTERVAL_MS = 60_000;
/** At most so much goes at a time, unless `max_age` has become shorter: a clock that is years ahead for a while takes little. */
const PIECE_MS = 3_600_000;
/** Of the sums, so much is removed at a time when the file is full of them. */
const USAGE_PIECE_MS = { usage_minutes: 3_600_000, usage_hours: 86_400_000 } as const;
const MAX_INSTANCES = 10_000;
const MAX_GAPS = 10_000;

/** What a database consists of. */
interface Stores {
  readonly blocks: BlockStore;
  readonly losses: LossStore;
  readonly timeline: TimelineStore;
  readonly usage: UsageStore;
  /** Adds what waits to the sums. Returns whether anything waited. */
  readonly sum: () => boolean;
}

/** Decides what a history keeps: what is too old goes, and what goes first when it is full. */
export class Retention {
  readonly #db: DatabaseSync;
  readonly #stores: Stores;
  #settings: HistorySettings;
  #trimmedMs = Number.NEGATIVE_INFINITY;
  #pieceMs = PIECE_MS;

  constructor(db: DatabaseSync, settings: HistorySettings, stores: Stores) {
    this.#db = db;
    this.#settings = settings;
    this.#stores = stores;
  }

  get maxSizeBytes(): number {
    return this.#settings.maxSizeBytes;
  }

  configure(settings: HistorySettings): void {
    if (settings.maxAgeMs < this.#settings.maxAgeMs) this.#pieceMs = Number.POSITIVE_INFINITY;
    this.#settings = settings;
    this.#trimmedMs = Number.NEGATIVE_INFINITY;
  }

  /** Removes what is too old. Where a full disk has no room for that, one batch fails with it; the next one may have room. */
  trim(nowMs: number): void {
    if (Math.abs(nowMs - this.#trimmedMs) < TRIM_INTERVAL_MS) return;
    this.#trimmedMs = nowMs;
    const db = this.#db;
    const { losses, timeline, usage } = this.#stores;
    // A clock that was ahead may have made blocks before it.
    const oldest = db.prepare('SELECT to_ms FROM blocks WHERE to_ms <= ? ORDER BY first LIMIT 1');
    const readOldest = () => Number(oldest.get(nowMs)?.to_ms ?? Number.POSITIVE_INFINITY);
    const recordsMs = Math.min(nowMs - this.#settings.maxAgeMs, readOldest() + this.#pieceMs);
    while (readOldest() < recordsMs) this.#removeBlock();
    const cut = (table: UsageTable) =>
      Math.min(nowMs - USAGE_TABLES[table].keptMs, usage.span(table).oldest + this.#pieceMs);
    const keptMs = cut('usage_hours');
    this.#removeUsageBefore('usage_minutes', cut('usage_minutes'));
    this.#removeUsageBefore('usage_hours', keptMs);
    this.#pieceMs = PIECE_MS;
    timeline.trim(keptMs);
    db.prepare('UPDATE meta SET losses_ms = max(losses_ms, ?)').run(losses.trim(keptMs));
    db.prepare('UPDATE meta SET timeline_ms = max(timeline_ms, ?)').run(keptMs);
    const gaps = db.prepare('DELETE FROM gaps WHERE to_ms < ? OR rowid <= (SELECT max(rowid) FROM gaps) - ?');
    gaps.run(keptMs, MAX_GAPS);
    const latest = 'SELECT instance FROM instances ORDER BY written_ms DESC LIMIT ?';
    const instances = db.prepare(`DELETE FROM instances WHERE written_ms < ? OR instance NOT IN (${latest})`);
    instances.run(keptMs, MAX_INSTANCES);
  }

  /**
   * Removes the oldest records until there is room for so many bytes more, as if nothing could be compressed; if the sums
   * take more than half, the oldest of them.
   */
  makeRoom(bytes: number): void {
    // What a batch takes beside its records is little.
    const budget = toBudget(this.#settings.maxSizeBytes) * 0.95 - bytes;
    const records = this.#db.prepare('SELECT sum(length(data)) AS bytes FROM block_data');
    while (usedBytes(this.#db) > budget) {
      const recordBytes = Number(records.get()?.bytes ?? 0);
      if (recordBytes > budget / 2 && this.#removeBlock()) continue;
      if (this.#stores.sum()) continue;
      if (this.#removeOldestUsage('usage_minutes') || this.#removeOldestUsage('usage_hours')) continue;
      if (!this.#removeBlock()) return;
    }
  }

  #removeBlock(): boolean {
    const toMs = this.#stores.blocks.removeOldest();
    if (toMs === null) return false;
    this.#db.prepare('UPDATE meta SET records_ms = max(records_ms, ?)').run(toMs + 1);
    return true;
  }

  /** False: only what is being summed is left. */
  #removeOldestUsage(table: UsageTable): boolean {
    const { oldest, newest } = this.#stores.usage.span(table);
    if (newest - oldest < USAGE_PIECE_MS[table]) return false;
    this.#removeUsageBefore(table, oldest + USAGE_PIECE_MS[table]);
    return true;
  }

  #removeUsageBefore(table: UsageTable, ms: number): void {
    const beforeMs = ms - (ms % USAGE_TABLES[table].stepMs);
    if (this.#stores.usage.removeBefore(table, beforeMs) === 0) return;
    const column = table === 'usage_minutes' ? 'minutes_ms' : 'hours_ms';
    this.#db.prepare(`UPDATE meta SET ${column} = max(${column}, ?)`).run(beforeMs);
  }
}
