import type {
  Batch,
  FromHistory,
  HistoryProblem,
  HistorySettings,
  HistoryStart,
  SetAside,
} from '../messages.ts';
import { runQuery } from '../queries/run-query.ts';
import type { Gap, Query } from '../query.ts';
import { toReason } from '../store/database.ts';
import { HistoryStore, type Opening } from '../store/history-store.ts';
import type { TimelineEntry } from '../timeline-entry.ts';

/** What the writer works with. */
export interface HistoryWriterCollaborators {
  readonly send: (message: FromHistory) => void;
  /** Epoch milliseconds. */
  readonly nowMs: () => number;
}

/** What could not be written is tried again after this time. */
const RETRY_MS = 1_000;

/**
 * Writes batches in their order, each in one transaction. While the database cannot be opened or written, batches wait;
 * the main thread bounds how many.
 */
export class HistoryWriter {
  readonly #collaborators: HistoryWriterCollaborators;
  readonly #start: HistoryStart;
  #settings: HistorySettings;
  #store: HistoryStore | null = null;
  #waiting: Batch[] = [];
  #isScheduled = false;
  #retry: NodeJS.Timeout | null = null;
  #problem: HistoryProblem | null = null;
  #setAside: SetAside | null = null;
  /** Why the database before is not used any more. */
  #abandoned: Opening['abandoned'] = null;
  #hasOpened = false;
  /** The bands that go on: a new file gets them. */
  readonly #bands: Map<string, TimelineEntry>;
  #isClosed = false;
  readonly #written = { blocks: 0, records: 0, recordBytes: 0 };

  constructor(start: HistoryStart, collaborators: HistoryWriterCollaborators) {
    this.#collaborators = collaborators;
    this.#start = start;
    this.#settings = start;
    this.#bands = new Map(start.present.map((entry) => [`${entry.kind} ${entry.subject}`, entry]));
    this.#write();
  }

  /** Writes a batch as soon as all others that have arrived can be written with it. */
  add(batch: Batch): void {
    this.#waiting.push(batch);
    if (this.#isScheduled || this.#retry !== null) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#write();
    });
  }

  configure(settings: HistorySettings): void {
    this.#settings = settings;
    this.#guard((store) => store.configure(settings));
  }

  /** Answers a query. What has arrived before it is written first. */
  async answer(id: number, query: Query): Promise<void> {
    if (this.#retry === null) this.#write();
    const store = this.#store;
    const { send } = this.#collaborators;
    if (store === null) {
      const reason = this.#problem?.reason ?? 'closed';
      send({ kind: 'answer', id, answer: { kind: 'refused', reason } });
      return;
    }
    try {
      const waiting = toWaitingGaps(this.#waiting, query);
      const answer = await runQuery(store, query);
      const known = answer.kind === 'refused' ? answer : { ...answer, gaps: [...waiting, ...answer.gaps] };
      send({ kind: 'answer', id, answer: known });
    } catch (error) {
      send({ kind: 'answer', id, answer: { kind: 'refused', reason: toReason(error) } });
      this.#guard(() => {
        throw error;
      });
    }
  }

  /** Writes what waits, and closes the database. */
  close(): void {
    if (this.#retry !== null) clearTimeout(this.#retry);
    this.#retry = null;
    this.#write();
    if (this.#retry !== null) clearTimeout(this.#retry);
    const store = this.#store;
    this.#store = null;
    this.#isClosed = true;
    try {
      store?.close();
    } catch {
      // The next start finds it as after a kill, and checks it.
    }
    this.#collaborators.send({ kind: 'closed' });
  }

  #write(): void {
    const why = this.#store?.whyGone ?? null;
    // What waits goes to the file that is there now.
    if (why !== null) this.#abandon(why);
    this.#guard((store) => {
      for (let batch = this.#waiting[0]; batch !== undefined; batch = this.#waiting[0]) {
        const { blocks, records, recordBytes } = store.write(batch, this.#collaborators.nowMs());
        this.#waiting.shift();
        for (const entry of batch.events) {
          const band = `${entry.kind} ${entry.subject}`;
          if (entry.phase === 'begin') this.#bands.set(band, entry);
          else if (entry.phase === 'end') this.#bands.delete(band);
        }
        this.#written.blocks += blocks;
        this.#written.records += records;
        this.#written.recordBytes += recordBytes;
        const memory = batch.chunks.map(({ bytes }) => bytes.buffer);
        this.#collaborators.send({ kind: 'written', batches: 1, memory });
      }
    });
  }

  /** Does something with the open database, and tells how that went. If it fails, what waits is written again later. */
  #guard(work: (store: HistoryStore) => void): void {
    if (this.#isClosed) return;
    try {
      this.#store ??= this.#open();
      work(this.#store);
      this.#problem = null;
      this.#sendState();
    } catch (error) {
      this.#fail(error);
    }
  }

  #open(): HistoryStore {
    const { begun } = this.#start;
    const { store, setAside } = HistoryStore.open({
      ...this.#start,
      ...this.#settings,
      ...(this.#hasOpened && { startedMs: this.#collaborators.nowMs() }),
      present: [...this.#bands.values()],
      // The end of the run before was noted in the first one.
      begun: this.#hasOpened && begun === 'after_kill' ? 'new' : begun,
      abandoned: this.#abandoned,
    });
    this.#abandoned = null;
    this.#hasOpened = true;
    if (setAside !== null) this.#setAside = setAside;
    return store;
  }

  #fail(error: unknown): void {
    const reason = toReason(error);
    this.#problem = { reason, sinceMs: this.#problem?.sinceMs ?? this.#collaborators.nowMs() };
    if (reason === 'damaged' && this.#store !== null) this.#abandon('damaged');
    this.#sendState();
    this.#retry ??= setTimeout(() => {
      this.#retry = null;
      this.#write();
    }, RETRY_MS);
  }

  #abandon(why: NonNullable<Opening['abandoned']>): void {
    const store = this.#store;
    this.#store = null;
    this.#abandoned = why;
    try {
      store?.abandon();
    } catch {
      // It is opened anew either way.
    }
  }

  #sendState(): void {
    let usedBytes = 0;
    try {
      usedBytes = this.#store?.usedBytes ?? 0;
    } catch {
      // The next write says why.
    }
    const state = { ...this.#written, usedBytes, problem: this.#problem, setAside: this.#setAside };
    this.#collaborators.send({ kind: 'state', state });
  }
}

/** What an answer lacks while nothing can be written: at most one gap, from the first arrival to the last end. */
function toWaitingGaps(waiting: readonly Batch[], query: Query): readonly Gap[] {
  const chunks = waiting.flatMap((batch) => batch.chunks);
  const endMs = waiting.at(-1)?.endMs;
  if (chunks.length === 0 || endMs === undefined) return [];
  const fromMs = Math.min(...chunks.map(({ firstTs }) => Date.parse(firstTs)));
  const toMs = Math.max(fromMs, endMs);
  if (query.kind !== 'find' && (fromMs >= query.untilMs || toMs < query.fromMs)) return [];
  const records = chunks.reduce((sum, { count }) => sum + count, 0);
  return [{ fromMs, toMs, records, reason: 'waiting' }];
}
