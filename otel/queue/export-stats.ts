/**
 * Where the records went. Always: recorded + restored = exported + dropped + rejected + queued + spooled + lost.
 * All are counts of records, except `failedCalls` and `unreadable`.
 */
export interface ExportStats {
  /** Records of requests that ended in this process. */
  readonly recorded: number;
  /** Records that the collector (or the file) has accepted. */
  readonly exported: number;
  /** Records dropped because the queue was full. */
  readonly dropped: number;
  /** Records rejected for good: whole batches, or by partial success. */
  readonly rejected: number;
  /** Records in the queue, those of the current batch included: at most the queue's capacity. */
  readonly queued: number;
  /** Export calls that failed: each attempt, and each final rejection. */
  readonly failedCalls: number;
  /** Records of an earlier run that were read back into the queue. */
  readonly restored: number;
  /** Records written to the spool at shutdown, for the next start. */
  readonly spooled: number;
  /** Damaged lines of the spool. They are not in the sum, because they never entered the queue. */
  readonly unreadable: number;
  /** Records of requests whose worker died before they ended. */
  readonly lost: number;
}

type CounterName = Exclude<keyof ExportStats, 'queued'>;

/** All counters but `queued`, which the queue knows. They only grow. */
export class ExportCounters {
  readonly #values: Record<CounterName, number> = {
    recorded: 0,
    exported: 0,
    dropped: 0,
    rejected: 0,
    failedCalls: 0,
    restored: 0,
    spooled: 0,
    unreadable: 0,
    lost: 0,
  };

  /** The counters now. */
  get values(): Readonly<Record<CounterName, number>> {
    return { ...this.#values };
  }

  add(name: CounterName, count = 1): void {
    this.#values[name] += count;
  }
}
