import type { Spool, SpooledBatch } from '#otel/disk';

/**
 * The ledger spans that wait for export, apart from the queue of records, so that they take no record's place and are in
 * no counter of records. What is not sent at shutdown goes to a spool of its own.
 */
export class LedgerOutbox {
  readonly #spool: Spool;
  #waiting: Uint8Array[] = [];
  #batch: SpooledBatch | undefined;
  /** Those of `#batch` that are not settled. */
  #restored: readonly Uint8Array[] = [];
  /** Called when a ledger span was added. */
  onAdded: () => void = () => undefined;

  constructor(spool: Spool) {
    this.#spool = spool;
  }

  /** How many ledger spans wait. Those in files of the spool that were not read yet do not count. */
  get size(): number {
    return this.#restored.length + this.#waiting.length;
  }

  /** The one to send next; those of earlier runs come first. */
  get first(): Uint8Array | undefined {
    return this.#restored[0] ?? this.#waiting[0];
  }

  /** Adds a ledger span of this run. */
  add(encodedSpan: Uint8Array): void {
    this.#waiting.push(encodedSpan);
    this.onAdded();
  }

  /** Reads the next file of an earlier run, unless the last one is not settled yet. */
  async restoreNext(): Promise<void> {
    while (this.#restored.length === 0) {
      this.#batch = await this.#spool.next();
      if (this.#batch === undefined) return;
      this.#restored = this.#batch.encodedSpans;
      if (this.#restored.length === 0) await this.#batch.settle(0);
    }
  }

  /** The first one was delivered or rejected. */
  async settleFirst(): Promise<void> {
    if (this.#restored.length === 0) {
      this.#waiting.shift();
      return;
    }
    this.#restored = this.#restored.slice(1);
    await this.#batch?.settle(1);
  }

  /** Stores what waits for the next start. Those of earlier runs are still in their files. */
  async store(): Promise<void> {
    if (this.#waiting.length === 0) return;
    const storedCount = await this.#spool.put(this.#waiting);
    this.#waiting = this.#waiting.slice(storedCount);
  }
}
