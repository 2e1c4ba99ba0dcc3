import { LineStore } from './line-store.ts';
import type { RecordLedger } from './record-ledger.ts';

/** A record on its way to the collector: its encoded span, and when it came by the loop's clock. */
export interface QueuedRecord {
  readonly line: Uint8Array;
  readonly queuedAtMs: number;
}

/**
 * The records that wait for the collector, first in, first out. Records are read from the head and keep their places
 * in the ledger until they are removed, so that what is being sent still counts. A full queue refuses the newcomer.
 */
export class RecordQueue {
  readonly #ledger: RecordLedger;
  /** Stamped with when they came. */
  readonly #lines = new LineStore();

  constructor(ledger: RecordLedger) {
    this.#ledger = ledger;
  }

  /** How many records are in it; those on their way from workers have places, too. */
  get size(): number {
    return this.#lines.size;
  }

  /** What their lines are together, in bytes. */
  get bytes(): number {
    return this.#lines.bytes;
  }

  /** How full it is, by number or by weight, whichever is more: from 0 to 1. What is on its way counts. */
  get fill(): number {
    return this.#ledger.fill;
  }

  /** Appends a copy of a record of this thread, or answers false if there is no place for it. */
  offer({ line, queuedAtMs }: QueuedRecord): boolean {
    if (!this.#ledger.takeQueuePlace(line.length)) return false;
    this.#lines.append(line, queuedAtMs);
    return true;
  }

  /** Appends a copy of a record that has come from a worker, which has taken its place. */
  admit(worker: number, { line, queuedAtMs }: QueuedRecord): void {
    this.#ledger.arrive(worker, line.length);
    this.#lines.append(line, queuedAtMs);
  }

  /** Puts records before all others, in their order: the first ones, as many as there is room for. Tells how many. */
  prepend(records: readonly QueuedRecord[]): number {
    const refused = records.findIndex(({ line }) => !this.#ledger.takeQueuePlace(line.length));
    const admitted = refused === -1 ? records : records.slice(0, refused);
    this.#lines.prepend(admitted.map(({ line, queuedAtMs }) => ({ line, stamp: queuedAtMs })));
    return admitted.length;
  }

  /**
   * The oldest records, oldest first: at most `count`, and no more than weigh `maxBytes`, but one at least if there
   * is any. They stay in the queue; their lines are good until they are removed.
   */
  peek(count: number, maxBytes?: number): QueuedRecord[] {
    return this.#lines.peek(count, maxBytes).map(({ line, stamp }) => ({ line, queuedAtMs: stamp }));
  }

  /** Gives up the places of the oldest records, at most `count`. */
  remove(count: number): void {
    const removed = Math.min(count, this.#lines.size);
    for (let index = 0; index < removed; index++) this.#ledger.leave(this.#lines.removeFirst());
  }
}
