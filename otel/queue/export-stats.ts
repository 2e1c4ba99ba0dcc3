/**
 * Where the records went. Always: recorded + restored = exported + dropped + rejected + queued + spooled + lost.
 * All are counts of records but `failedCalls`, which counts export calls.
 */
export interface ExportStats {
  /** Records that ended in this process. */
  readonly recorded: number;
  /** Records the collector (or the file) has taken. */
  readonly exported: number;
  /** Records dropped because the queue was full. */
  readonly dropped: number;
  /** Records refused for good, whole batches or by partial success. */
  readonly rejected: number;
  /** Records waiting, those of the batch under way included: at most the queue's capacity. */
  readonly queued: number;
  /** Export calls that failed: each attempt, and each refusal for good. */
  readonly failedCalls: number;
  /** Records of an earlier run that were read back into the queue. */
  readonly restored: number;
  /** Records put aside at shutdown, for the next start. */
  readonly spooled: number;
  /** Lines of the spool that were no record any more. Not in the sum: they were not read into the queue. */
  readonly unreadable: number;
  /** Records of a worker that died before they ended. */
  readonly lost: number;
}

/** The counters as they are kept; `queued` is not among them, the queue knows its size. */
export type ExportCounters = { -readonly [Name in Exclude<keyof ExportStats, 'queued'>]: ExportStats[Name] };

/** All counters at zero. */
export function createExportCounters(): ExportCounters {
  return {
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
}
