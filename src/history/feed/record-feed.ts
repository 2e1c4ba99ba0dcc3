import type { RecordLoss } from '#otel/ledger';
import type { RequestRecord } from '#otel/record/registry';
import { KeyCollector } from '../block-keys.ts';
import type { Batch, InstanceSpan, RecordChunk } from '../messages.ts';
import { type Gap, type GapReason, joinGaps } from '../query.ts';
import { FrameWriter } from '../record-frame.ts';
import type { TimelineEntry } from '../timeline-entry.ts';
import { UsageSums } from '../usage-sums.ts';

/** A record that has ended, with its span in OTLP; null if it could not be encoded. */
export interface FedRecord {
  readonly record: Readonly<RequestRecord>;
  readonly encodedSpan: Uint8Array | null;
}

/** About what a range of lost records takes until it is written. */
const LOSS_BYTES = 128;

/**
 * Gathers what goes to the history: records as copies of their encoded spans, what they are found by, their sums. It does
 * what each record needs in under a microsecond, because it runs where requests are served.
 */
export class RecordFeed {
  readonly #frame = new FrameWriter();
  #firstTs = '';
  #lastTs = '';
  readonly #keys = new KeyCollector();
  #chunks: RecordChunk[] = [];
  #chunkBytes = 0;
  readonly #usage = new UsageSums();
  #instances = new Map<string, { firstSeq: number; lastSeq: number; count: number }>();
  #gaps = new Map<GapReason, Gap>();
  #events: TimelineEntry[] = [];
  #losses: { -readonly [Key in keyof RecordLoss]: RecordLoss[Key] }[] = [];

  /** The bytes of the records, and of the losses, that were added. */
  get bytes(): number {
    return this.#chunkBytes + this.#frame.bytes + this.#losses.length * LOSS_BYTES;
  }

  /** Those of the records that are in whole frames. */
  get wholeBytes(): number {
    return this.#chunkBytes;
  }

  /** Whether nothing was added. */
  get isEmpty(): boolean {
    return this.bytes === 0 && this.#gaps.size === 0 && this.#events.length === 0;
  }

  add({ record, encodedSpan }: FedRecord & { readonly encodedSpan: Uint8Array }): void {
    if (!this.#frame.hasRoom(encodedSpan.length)) this.#closeChunk();
    this.#frame.add(encodedSpan);
    const { ts } = record;
    if (this.#firstTs === '' || ts < this.#firstTs) this.#firstTs = ts;
    if (ts > this.#lastTs) this.#lastTs = ts;
    this.#keys.add(record);
    this.#usage.add(record);
    this.#addToInstance(record);
    if (this.#frame.isFull) this.#closeChunk();
  }

  /** Records are not in the history; none: it lacks something else. */
  addGap(gap: Gap): void {
    const known = this.#gaps.get(gap.reason);
    this.#gaps.set(gap.reason, known === undefined ? gap : joinGaps(known, gap));
  }

  /** Records are not exported. They come in the order of their numbers: successive ones are one range. */
  addLoss(loss: RecordLoss): void {
    const { instance, why, isKnown, first, last } = loss;
    const latest = this.#losses.findLast((each) => each.instance === instance && each.why === why);
    if (latest?.isKnown === isKnown && latest.last + 1 === first) latest.last = last;
    else this.#losses.push({ ...loss });
  }

  addEvent(entry: TimelineEntry): void {
    this.#events.push(entry);
  }

  /** Memory of records that are on disk. */
  reuse(memory: readonly ArrayBuffer[]): void {
    this.#frame.reuse(memory);
  }

  /** Returns all that was added, and begins anew. */
  take(nowMs: number): Batch {
    this.#closeChunk();
    this.#frame.trim();
    const batch = {
      endMs: nowMs,
      chunks: this.#chunks,
      usage: this.#usage.take(),
      instances: Array.from(this.#instances, ([instance, span]): InstanceSpan => ({ instance, ...span })),
      gaps: [...this.#gaps.values()].map((gap) => ({ ...gap, records: gap.records || null })),
      events: this.#events,
      losses: this.#losses,
    };
    this.#chunks = [];
    this.#chunkBytes = 0;
    this.#instances = new Map();
    this.#gaps = new Map();
    this.#events = [];
    this.#losses = [];
    return batch;
  }

  #closeChunk(): void {
    const { bytes } = this.#frame;
    const frame = this.#frame.take();
    if (frame === null) return;
    this.#chunks.push({
      ...frame,
      keys: this.#keys.take(),
      firstTs: this.#firstTs,
      lastTs: this.#lastTs,
    });
    this.#chunkBytes += bytes;
    this.#firstTs = '';
    this.#lastTs = '';
  }

  #addToInstance({ instance, seq }: Readonly<RequestRecord>): void {
    if (instance === undefined || seq === undefined) return;
    const span = this.#instances.get(instance);
    if (span === undefined) {
      this.#instances.set(instance, { firstSeq: seq, lastSeq: seq, count: 1 });
      return;
    }
    // The records of a thread end, and are numbered, in one order; they may arrive in another one.
    if (seq < span.firstSeq) span.firstSeq = seq;
    if (seq > span.lastSeq) span.lastSeq = seq;
    span.count += 1;
  }
}
