import type { GpuTimeTable } from '#replicas/shared';

/** Whose GPU time is divided. `gpuCount` may change. */
interface SharedReplica {
  readonly slot: number;
  readonly config: { readonly gpuCount: number | null };
}

/**
 * The part of a replica's GPU time that one lease takes. It counts for no record, unless `claim` says that one is made.
 */
export class GpuShare {
  readonly #table: GpuTimeTable;
  readonly #worker: number;
  readonly #replica: SharedReplica;
  readonly #beganAt: number;
  #isClaimed = false;
  /** Null until it has ended. */
  #ms: number | null = null;

  /** Begins a share. */
  constructor(table: GpuTimeTable, worker: number, replica: SharedReplica) {
    this.#table = table;
    this.#worker = worker;
    this.#replica = replica;
    this.#beganAt = table.begin(worker, replica.slot, replica.config.gpuCount ?? 0);
  }

  /** 0 until it has ended. */
  get seconds(): number {
    return (this.#ms ?? 0) / 1000;
  }

  /** A record will contain it. */
  claim(): void {
    this.#isClaimed = true;
  }

  /** The record is not made after all. */
  disclaim(): void {
    if (!this.#isClaimed) return;
    this.#isClaimed = false;
    if (this.#ms !== null) this.#table.noteUnrecorded(this.#worker, this.#replica.slot, this.#ms);
  }

  /** Ends it, unless it has ended. */
  end(): void {
    if (this.#ms !== null) return;
    const { slot, config } = this.#replica;
    this.#ms = this.#table.end(this.#worker, slot, {
      gpuCount: config.gpuCount ?? 0,
      beganAt: this.#beganAt,
      isRecorded: this.#isClaimed,
    });
  }
}
