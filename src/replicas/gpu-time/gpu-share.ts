import type { GpuTimeTable } from './gpu-time-table.ts';

/**
 * The part of a replica's GPU time that one lease takes, and what that costs. It counts for no record, unless `claim` says that one is made.
 */
export class GpuShare {
  readonly #table: GpuTimeTable;
  readonly #worker: number;
  readonly #slot: number;
  readonly #began: ReturnType<GpuTimeTable['begin']>;
  #isClaimed = false;
  /** Null until it has ended. */
  #part: ReturnType<GpuTimeTable['end']> | null = null;

  /** Begins a share of the replica with this slot. */
  constructor(table: GpuTimeTable, worker: number, slot: number) {
    this.#table = table;
    this.#worker = worker;
    this.#slot = slot;
    this.#began = table.begin(worker, slot);
  }

  /** 0 until it has ended. */
  get seconds(): number {
    return (this.#part?.ms ?? 0) / 1000;
  }

  /** In units of the currency; null until it has ended, and if the replica has no price. */
  get cost(): number | null {
    return this.#part?.cost ?? null;
  }

  /** A record will contain it. */
  claim(): void {
    this.#isClaimed = true;
  }

  /** The record is not made after all. */
  disclaim(): void {
    if (!this.#isClaimed) return;
    this.#isClaimed = false;
    if (this.#part !== null) this.#table.noteUnrecorded(this.#worker, this.#slot, this.#part);
  }

  /** Ends it, unless it has ended. */
  end(): void {
    this.#part ??= this.#table.end(this.#worker, this.#slot, {
      began: this.#began,
      isRecorded: this.#isClaimed,
    });
  }
}
