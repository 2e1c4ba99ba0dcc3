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
/** Of the sums, so much is removed at a time when the file is full of them. */
const USAGE_PIECE_MS = { usage_minutes: 3_600_000, usage_hours: 86_400_000 } as const;
/** The timeline, losses, instances and gaps are kept as long as the sums of hours. */
const KEPT_MS = USAGE_TABLES.usage_hours.keptMs;
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

  constructor(db: DatabaseSync, settings: HistorySettings, stores: Stores) {
    this.#db = db;
    this.#settings = settings;
    this.#stores = stores;
  }

  get maxSizeBytes(): number {
    return this.#settings.maxSizeBytes;
  }

  configure(settings: HistorySettings): void {
    this.#settings = settings;
    this.#trimmedMs = Number.NEGATIVE_INFINITY;
  }

  /** Removes what is too old. Where a full disk has no room for that, one batch fails with it; the next one may have room. */
  trim(nowMs: number): void {
    if (Math.abs(nowMs - this.#trimmedMs) < TRIM_INTERVAL_MS) return;
    this.#trimmedMs = nowMs;
    const db = this.#db;
    const { losses, timeline } = this.#stores;
    const oldest = db.prepare('SELECT to_ms FROM blocks ORDER BY first LIMIT 1');
    const recordsMs = nowMs - this.#settings.maxAgeMs;
    while (Number(oldest.get()?.to_ms ?? Number.POSITIVE_INFINITY) < recordsMs) this.#removeBlock();
    for (const table of ['usage_minutes', 'usage_hours'] as const) {
      this.#removeUsageBefore(table, nowMs - USAGE_TABLES[table].keptMs);
    }
    timeline.trim(nowMs - KEPT_MS);
    const lossesMs = losses.trim(nowMs - KEPT_MS);
    db.prepare('UPDATE meta SET losses_ms = max(losses_ms, ?)').run(lossesMs);
    db.prepare('DELETE FROM gaps WHERE to_ms < ?').run(nowMs - KEPT_MS);
    db.prepare('DELETE FROM gaps WHERE rowid <= (SELECT max(rowid) FROM gaps) - ?').run(MAX_GAPS);
    db.prepare('DELETE FROM instances WHERE written_ms < ?').run(nowMs - KEPT_MS);
    db.prepare(
      `DELETE FROM instances WHERE instance IN
       (SELECT instance FROM instances ORDER BY written_ms DESC LIMIT -1 OFFSET ?)`,
    ).run(MAX_INSTANCES);
    db.prepare('UPDATE meta SET timeline_ms = max(timeline_ms, ?)').run(nowMs - KEPT_MS);
  }

  /**
   * Removes the oldest records until there is room for so many bytes more, as if nothing could be compressed; if the sums
   * take more than half, the oldest of them.
   */
  makeRoom(bytes: number): void {
    // What a batch takes beside its records is little.
    const budget = toBudget(this.#settings.maxSizeBytes) * 0.95 - bytes;
    while (usedBytes(this.#db) > budget) {
      const recordBytes = Number(
        this.#db.prepare('SELECT sum(length(data)) AS bytes FROM block_data').get()?.bytes ?? 0,
      );
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
