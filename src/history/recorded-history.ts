import { existsSync } from 'node:fs';
import type { Log } from '#otel/base';
import type { RecordLoss } from '#otel/ledger';
import type { AdminAction } from '#otel/span';
import { type FedRecord, RecordFeed } from './feed/record-feed.ts';
import { HistoryRefusal, HistoryThread } from './history-thread.ts';
import type { HistorySettings, HistoryStart, WriterState } from './messages.ts';
import type { Answer, Query } from './query.ts';
import { RunMarker } from './run-marker.ts';
import { type PresentFact, type TimelineEntry, toPresentEntry, toTimelineEntry } from './timeline-entry.ts';

/** How the history is doing. */
export interface HistoryState extends WriterState {
  /** Records that are not in it, since the start. */
  readonly leftOut: number;
  /** Bytes of records that are not on disk yet. */
  readonly waitingBytes: number;
}

/** What the history works with. */
export interface HistoryCollaborators {
  /** Where the database is. */
  readonly path: string;
  readonly version: string;
  /** The lasting id of the gateway. */
  readonly instanceId: string;
  /** Epoch milliseconds. */
  readonly nowMs: () => number;
  /** What the history cannot have heard of: from before it began, or while it was off. */
  readonly present: () => readonly PresentFact[];
  readonly log: Log<'warn'>;
}

/** Records wait so long for others before they are written. */
const INTERVAL_MS = 1_000;
/** If nothing comes, that is written: a kill then takes no more, and what is too old goes. */
const IDLE_MS = 60_000;
/**
 * So many bytes of records, in whole frames, are written sooner. V8 counts the memory that comes back from the thread
 * towards its next major collection: after 4 MiB, in frames of 1 MiB, it began one each second.
 */
const BATCH_BYTES = 1024 ** 2;
/** When so many bytes of records are not on disk, further records are left out. */
const MAX_UNWRITTEN_BYTES = 32 * 1024 ** 2;
/** So many events may wait for the thread. */
const MAX_WAITING_EVENTS = 1_000;
/** What is not written by then is left out at a shutdown. */
const CLOSE_MS = 5_000;
/** A thread that has ended by an error is started again after this time. */
const RESTART_MS = 5_000;

const NOTHING_WRITTEN: WriterState = {
  blocks: 0,
  records: 0,
  recordBytes: 0,
  usedBytes: 0,
  problem: null,
  setAside: null,
};

/** A batch that the thread has and has not written. */
interface Unwritten {
  readonly bytes: number;
  readonly records: number;
  readonly startMs: number;
  readonly endMs: number;
}

/**
 * The history as the main thread has it: hears of every record and every action, and gives them to the thread that writes
 * them. Nothing ever waits for it.
 */
export class RecordedHistory {
  readonly #collaborators: HistoryCollaborators;
  readonly #feed = new RecordFeed();
  readonly #marker: RunMarker;
  #settings: HistorySettings | null = null;
  #thread: HistoryThread | null = null;
  #timer: NodeJS.Timeout | null = null;
  #restart: NodeJS.Timeout | null = null;
  #idle: NodeJS.Timeout | null = null;
  #unwritten: Unwritten[] = [];
  #unwrittenBytes = 0;
  #events = 0;
  #records = 0;
  #batchStartMs = 0;
  #leftOut = 0;
  #state: WriterState = NOTHING_WRITTEN;
  /** Since when it has been switched off, and what ended since; null records: nobody knows, as it was in an earlier run. */
  #off: { readonly fromMs: number; records: number | null } | null = null;

  constructor(collaborators: HistoryCollaborators) {
    this.#collaborators = collaborators;
    this.#marker = new RunMarker(collaborators.path);
  }

  /** Of its file. */
  get path(): string {
    return this.#collaborators.path;
  }

  /** How it is doing; null while it is off. */
  get state(): HistoryState | null {
    if (this.#settings === null) return null;
    const waitingBytes = this.#unwrittenBytes + this.#feed.bytes;
    return { ...this.#state, leftOut: this.#leftOut, waitingBytes };
  }

  /** Applies settings; null: it is off. Resolves when what was on is closed. */
  async configure(settings: HistorySettings | null): Promise<void> {
    const before = this.#settings;
    this.#settings = settings;
    if (settings === null) {
      if (before !== null) {
        this.#off = { fromMs: this.#collaborators.nowMs(), records: 0 };
        await this.#close('The history was switched off');
      } else this.#off ??= this.#beginOff();
    } else if (before === null) {
      const left = this.#marker.begin();
      if (typeof left === 'object') this.#off ??= { fromMs: left.offSinceMs, records: null };
      const wasOff = this.#off !== null;
      this.#noteOff();
      this.#idle = setInterval(() => this.#flush(true), IDLE_MS).unref();
      this.#startThread(settings, left === 'killed' ? 'after_kill' : wasOff ? 'after_off' : 'new');
    } else this.#thread?.configure(settings);
  }

  /** A request has ended. It is cheap, and never throws. */
  record({ record, encodedSpan }: FedRecord): void {
    if (this.#settings === null) {
      if (this.#off?.records != null) this.#off.records += 1;
      return;
    }
    const waitingBytes = this.#unwrittenBytes + this.#feed.bytes + (encodedSpan?.length ?? 0);
    if (encodedSpan === null || waitingBytes > MAX_UNWRITTEN_BYTES) {
      this.#leaveOut(encodedSpan === null ? 'unencodable' : 'behind', Date.parse(record.ts));
      return;
    }
    this.#schedule();
    this.#feed.add({ record, encodedSpan });
    this.#records += 1;
    if (this.#feed.wholeBytes >= BATCH_BYTES) this.#flush();
  }

  /** Records are not exported: a statement of usage does not list them. */
  loss(loss: RecordLoss): void {
    if (this.#settings === null) return;
    this.#schedule();
    if (this.#unwrittenBytes + this.#feed.bytes <= MAX_UNWRITTEN_BYTES) this.#feed.addLoss(loss);
    else this.#leaveOut('behind', this.#collaborators.nowMs(), 0);
  }

  /** An operator, or the gateway itself, has acted. */
  action(action: AdminAction): void {
    this.#addEvent(toTimelineEntry(action, this.#collaborators.nowMs()));
  }

  /** Something is so by the action of another gateway. */
  note(fact: PresentFact): void {
    this.#addEvent(toPresentEntry(fact));
  }

  /** Answers a query, with everything that has ended so far. Rejects with a HistoryRefusal. */
  async ask<Q extends Query>(query: Q): Promise<Answer<Q['kind']>> {
    if (this.#settings === null) throw new HistoryRefusal('off');
    if (this.#thread === null) throw new HistoryRefusal('ended');
    this.#flush();
    return (await this.#thread.ask(query)) as Answer<Q['kind']>;
  }

  /** Writes what waits, and ends. */
  async stop(): Promise<void> {
    if (this.#settings !== null) await this.#close();
    else if (this.#off?.records === 0 && typeof this.#marker.read() === 'object') this.#marker.end();
    this.#settings = null;
  }

  /** It is off from the start: what earlier runs have written lacks what ends now. */
  #beginOff() {
    const left = this.#marker.read();
    if (typeof left === 'object') return { fromMs: left.offSinceMs, records: null };
    // After a kill that gap goes on.
    if (left === 'killed' || !existsSync(this.path)) return null;
    const fromMs = this.#collaborators.nowMs();
    this.#marker.off(fromMs);
    return { fromMs, records: 0 };
  }

  #leaveOut(reason: 'behind' | 'unencodable', arrivedMs: number, records = 1): void {
    this.#leftOut += records;
    this.#schedule();
    const toMs = this.#collaborators.nowMs();
    this.#feed.addGap({ fromMs: arrivedMs, toMs, records, reason });
  }

  #noteOff(): void {
    const off = this.#off;
    this.#off = null;
    if (off === null || off.records === 0) return;
    const toMs = this.#collaborators.nowMs();
    this.#feed.addGap({ fromMs: off.fromMs, toMs, records: off.records ?? 0, reason: 'off' });
    this.#schedule();
  }

  #addEvent(entry: TimelineEntry): void {
    if (this.#settings === null || this.#events >= MAX_WAITING_EVENTS) return;
    this.#schedule();
    this.#events += 1;
    this.#feed.addEvent(entry);
  }

  #schedule(): void {
    if (this.#timer !== null) return;
    this.#batchStartMs = this.#collaborators.nowMs();
    this.#timer = setTimeout(() => this.#flush(), INTERVAL_MS).unref();
  }

  #flush(isIdle = false): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#feed.isEmpty && !(isIdle && this.#unwritten.length === 0)) return;
    const thread = this.#thread;
    // It starts again soon: until then records wait, up to the bound.
    if (thread === null) return;
    const { bytes } = this.#feed;
    const batch = this.#feed.take(this.#collaborators.nowMs());
    const { endMs } = batch;
    this.#unwritten.push({ bytes, records: this.#records, startMs: this.#batchStartMs, endMs });
    this.#unwrittenBytes += bytes;
    this.#records = 0;
    this.#events = 0;
    thread.write(batch);
  }

  #written(batches: number): void {
    for (const { bytes } of this.#unwritten.splice(0, batches)) this.#unwrittenBytes -= bytes;
  }

  #startThread(settings: HistorySettings, begun: HistoryStart['begun']): void {
    const { path, version, instanceId, nowMs } = this.#collaborators;
    const present = this.#collaborators.present().map(toPresentEntry);
    const start = { ...settings, path, version, instanceId, startedMs: nowMs(), begun, present };
    const thread = new HistoryThread(start, {
      onWritten: (batches, memory) => {
        this.#feed.reuse(memory);
        this.#written(batches);
      },
      onState: (state) => {
        this.#state = state;
      },
      onEnd: () => this.#threadEnded(),
    });
    this.#thread = thread;
    this.#flush();
  }

  /** What it had and had not written may be in the database or not: it is not given again. */
  #threadEnded(): void {
    this.#thread = null;
    const sinceMs = this.#collaborators.nowMs();
    this.#state = { ...this.#state, problem: { reason: 'thread_ended', sinceMs } };
    this.#dropUnwritten();
    this.#restart = setTimeout(() => {
      if (this.#settings !== null) this.#startThread(this.#settings, 'again');
    }, RESTART_MS).unref();
  }

  #dropUnwritten(): void {
    const records = this.#unwritten.reduce((sum, batch) => sum + batch.records, 0);
    const [first] = this.#unwritten;
    const last = this.#unwritten.at(-1);
    if (records > 0 && first !== undefined && last !== undefined) {
      this.#leftOut += records;
      this.#feed.addGap({ fromMs: first.startMs, toMs: last.endMs, records, reason: 'thread_ended' });
    }
    this.#unwritten = [];
    this.#unwrittenBytes = 0;
  }

  /** `sentence`: why, if the gateway goes on. */
  async #close(sentence: string | null = null): Promise<void> {
    if (this.#restart !== null) clearTimeout(this.#restart);
    if (this.#idle !== null) clearInterval(this.#idle);
    const thread = this.#thread;
    if (thread === null) {
      // Its thread has ended by an error, and has not started again.
      this.#feed.take(this.#collaborators.nowMs());
      this.#records = 0;
      this.#state = NOTHING_WRITTEN;
      return;
    }
    const atMs = this.#collaborators.nowMs();
    const details = sentence === null ? {} : { sentence };
    this.#feed.addEvent({ phase: 'moment', kind: 'stop', subject: '', fromMs: atMs, atMs, details });
    this.#flush();
    this.#thread = null;
    const isDone = await thread.close(CLOSE_MS);
    const records = this.#unwritten.reduce((sum, batch) => sum + batch.records, 0);
    if (!isDone || records > 0) {
      const reason = this.#state.problem?.reason ?? 'too_slow';
      this.#collaborators.log.warn({ records, reason }, 'the history could not be written to its end');
    } else if (sentence === null) this.#marker.end();
    else this.#marker.off(atMs);
    this.#dropUnwritten();
    this.#state = NOTHING_WRITTEN;
  }
}
