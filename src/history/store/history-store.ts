import { rmSync } from 'node:fs';
import type { DatabaseSync } from 'node:sqlite';
import type { Batch, HistorySettings, HistoryStart, SetAside } from '../messages.ts';
import type { Gap, Kept } from '../query.ts';
import { BlockStore } from './block-store.ts';
import { identifyFile, limitFile, openDatabase, usedBytes } from './database.ts';
import { LossStore } from './loss-store.ts';
import { Retention } from './retention.ts';
import { TimelineStore } from './timeline-store.ts';
import { UsageStore } from './usage-store.ts';

/** Who opens the history. */
export interface Opening extends HistoryStart {
  /** Why the one before, of the same run, is not used any more; null: this is the first. */
  readonly abandoned: 'damaged' | 'deleted' | 'replaced' | null;
}

/** What one transaction has written. */
export interface Written {
  readonly blocks: number;
  readonly records: number;
  readonly recordBytes: number;
}

/** A record comes so long after its end at most, from a worker that is busy. */
const LATE_MS = 1_000;
/** Records that are left out so soon after others are of the same gap: only so many are kept, and told. */
const SAME_GAP_MS = 60_000;

/** Nothing is kept since a time that has not come: the clock was ahead when that was noted, and was set back. */
const NOTE_WRITTEN = `UPDATE meta SET next_number = :next, written_ms = :written,
  records_ms = min(records_ms, :now), minutes_ms = min(minutes_ms, :now), hours_ms = min(hours_ms, :now),
  timeline_ms = min(timeline_ms, :now), losses_ms = min(losses_ms, :now)`;
const ADD_INSTANCE = `INSERT INTO instances VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
  first_seq = min(first_seq, excluded.first_seq), last_seq = max(last_seq, excluded.last_seq),
  count = count + excluded.count, written_ms = excluded.written_ms`;
const EXTEND_GAP = `UPDATE gaps SET from_ms = min(from_ms, :from), to_ms = max(to_ms, :to), records = records + :records
  WHERE rowid = (SELECT rowid FROM gaps WHERE reason = :reason ORDER BY rowid DESC LIMIT 1)
  AND to_ms >= :from - ${SAME_GAP_MS} AND from_ms <= :to + ${SAME_GAP_MS}`;

/**
 * The history in its database. Everything of a batch is one transaction: after any end of the process the sums are those
 * of the records, and no record is in twice.
 */
export class HistoryStore {
  readonly #db: DatabaseSync;
  readonly #blocks: BlockStore;
  readonly #usage: UsageStore;
  readonly #timeline: TimelineStore;
  readonly #losses: LossStore;
  readonly #retention: Retention;
  readonly #noteWritten;
  readonly #addInstance;
  readonly #path: string;
  readonly #file: string | null;
  /** Its log of writes, since there is one. */
  #log: string | null = null;
  #isLimited = true;

  /** Opens the history, and notes the start of the gateway. Throws what `openDatabase` throws. */
  static open(opening: Opening): { readonly store: HistoryStore; readonly setAside: SetAside | null } {
    const { path, startedMs, abandoned } = opening;
    const { db, wasOpen, ...opened } = openDatabase(path, startedMs, abandoned === 'damaged');
    const isGone = abandoned === 'deleted' || abandoned === 'replaced';
    const setAside = opened.setAside ?? (isGone ? { name: null, reason: abandoned, atMs: startedMs } : null);
    try {
      const store = new HistoryStore(db, opening);
      store.#noteStart(opening, { wasOpen, setAside });
      store.#log = identifyFile(`${path}-wal`);
      return { store, setAside };
    } catch (error) {
      db.close();
      throw error;
    }
  }

  private constructor(db: DatabaseSync, { path, ...settings }: HistorySettings & { readonly path: string }) {
    this.#db = db;
    this.#path = path;
    this.#file = identifyFile(path);
    this.#blocks = new BlockStore(db);
    this.#usage = new UsageStore(db);
    this.#timeline = new TimelineStore(db);
    this.#losses = new LossStore(db);
    this.#retention = new Retention(db, settings, {
      blocks: this.#blocks,
      losses: this.#losses,
      timeline: this.#timeline,
      usage: this.#usage,
      sum: () => this.#sum().length > 0,
    });
    this.#noteWritten = db.prepare(NOTE_WRITTEN);
    this.#addInstance = db.prepare(ADD_INSTANCE);
    limitFile(db, settings.maxSizeBytes);
  }

  /** For queries. */
  get db(): DatabaseSync {
    return this.#db;
  }

  /** Why what is written is in no file that anybody finds; null: it is in its file. */
  get whyGone(): 'deleted' | 'replaced' | null {
    try {
      const now = identifyFile(this.#path);
      if (now === this.#file) return null;
      return now === null ? 'deleted' : 'replaced';
    } catch {
      // Nobody can say where it is; whether it can be written, the next write says.
      return null;
    }
  }

  get usedBytes(): number {
    return usedBytes(this.#db);
  }

  /** From when on each kind is kept. */
  kept(): Kept {
    const { records_ms, minutes_ms, hours_ms, timeline_ms, losses_ms } =
      this.#db.prepare('SELECT * FROM meta').get() ?? {};
    return {
      recordsMs: Number(records_ms),
      minutesMs: Number(minutes_ms),
      hoursMs: Number(hours_ms),
      timelineMs: Number(timeline_ms),
      lossesMs: Number(losses_ms),
    };
  }

  configure(settings: HistorySettings): void {
    this.#retention.configure(settings);
    this.#isLimited = false;
    this.#limit();
  }

  /** Brings the file below a new limit. What cannot be removed now, as on a full disk, is removed before the next batch. */
  #limit(): void {
    if (this.#isLimited) return;
    // The file becomes smaller before its limit does: a smaller one would be ignored.
    this.#transact(() => this.#retention.makeRoom(0));
    this.#db.exec('PRAGMA incremental_vacuum');
    limitFile(this.#db, this.#retention.maxSizeBytes);
    this.#isLimited = true;
  }

  /** Writes a batch. Throws the error of SQLite: then nothing of it is written. */
  write(batch: Batch, nowMs: number): Written {
    this.#limit();
    return this.#transact(() => {
      const written = { blocks: 0, records: 0, recordBytes: 0 };
      this.#retention.trim(nowMs);
      this.#retention.makeRoom(batch.chunks.reduce((sum, { bytes }) => sum + bytes.length, 0));
      for (const chunk of batch.chunks) {
        const { bytes, blocks } = this.#blocks.add(chunk);
        written.blocks += blocks;
        written.records += chunk.count;
        written.recordBytes += bytes;
      }
      if (this.#usage.wait(batch.usage, nowMs)) this.#sum();
      for (const event of batch.events) this.#timeline.add(event);
      this.#addInstances(batch);
      for (const gap of batch.gaps) this.#addGap(gap);
      for (const loss of batch.losses) this.#losses.add(loss, batch.endMs);
      this.#noteWritten.run({ next: this.#blocks.next, written: batch.endMs, now: nowMs });
      return written;
    });
  }

  /** Adds what waits to the sums. Returns what they lack, if it cannot be written now. */
  settle(): readonly Gap[] {
    try {
      this.#transact(() => this.#sum());
      return [];
    } catch {
      // The next batch says why.
      return this.#usage.waiting;
    }
  }

  /** Closes the database. It then is known that nothing is missing at the end of the last batch. */
  close(): void {
    try {
      this.settle();
      this.#db.exec('UPDATE meta SET is_open = 0');
    } finally {
      this.#db.close();
    }
  }

  /** Leaves a file that is damaged, or has gone. */
  abandon(): void {
    try {
      this.#db.close();
    } finally {
      // SQLite leaves the log of a file that has gone where it is, and would apply it to the one in its place.
      const log = `${this.#path}-wal`;
      if (this.#log !== null && identifyFile(log) === this.#log) rmSync(log, { force: true });
    }
  }

  #noteStart(
    { version, instanceId, startedMs: nowMs, begun, present }: Opening,
    { wasOpen, setAside }: { readonly wasOpen: boolean; readonly setAside: SetAside | null },
  ): void {
    const moment = { phase: 'moment', subject: '', fromMs: nowMs, atMs: nowMs } as const;
    this.#transact(() => {
      if (setAside !== null) {
        const { name, reason } = setAside;
        this.#timeline.add({ ...moment, kind: 'set_aside', details: { name, reason } });
      }
      if (begun === 'again') return;
      const writtenMs = Number(this.#db.prepare('SELECT written_ms FROM meta').get()?.written_ms);
      this.#timeline.catchUp(present, writtenMs);
      if (wasOpen || begun === 'after_kill') {
        const details = { sentence: 'The gateway ended without a shutdown: its last second may be missing.' };
        this.#timeline.add({ ...moment, kind: 'killed', fromMs: writtenMs, phase: 'span', details });
        const fromMs = Math.min(writtenMs - LATE_MS, nowMs);
        const toMs = nowMs < writtenMs ? writtenMs + SAME_GAP_MS : nowMs; // the clock was set back
        this.#addGap({ fromMs, toMs, records: null, reason: 'killed' });
      }
      // What came before is written, or in the gap: a kill before the first batch of this run takes nothing of it.
      this.#db.prepare('UPDATE meta SET written_ms = ?').run(nowMs);
      const details = { version, instance_id: instanceId };
      const sentence = begun === 'after_off' && { sentence: 'The history was off before' };
      this.#timeline.add({ ...moment, kind: 'start', details: { ...details, ...sentence } });
    });
  }

  #transact<T>(work: () => T): T {
    this.#blocks.begin();
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.#db.exec('COMMIT');
      return result;
    } catch (error) {
      this.#blocks.rollback();
      // SQLite has rolled it back by itself after some errors.
      if (this.#db.isTransaction) this.#db.exec('ROLLBACK');
      throw error;
    }
  }

  /** Returns what waited. */
  #sum(): readonly Gap[] {
    const { waiting } = this.#usage;
    for (const { fromMs, untilMs } of this.#usage.sum())
      this.#addGap({ fromMs, toMs: untilMs - 1, records: null, reason: 'damaged' });
    return waiting;
  }

  #addInstances({ instances, endMs }: Batch): void {
    for (const { instance, firstSeq, lastSeq, count } of instances) {
      this.#addInstance.run(instance, firstSeq, lastSeq, count, endMs);
    }
  }

  #addGap({ fromMs, toMs, records, reason }: Gap): void {
    // Its ends are by different clocks if the clock was set back in between.
    const [from, to] = [Math.min(fromMs, toMs), Math.max(fromMs, toMs)];
    if (records !== null && this.#db.prepare(EXTEND_GAP).run({ from, to, records, reason }).changes > 0)
      return;
    this.#db.prepare('INSERT INTO gaps VALUES (?, ?, ?, ?)').run(from, to, records, reason);
  }
}
