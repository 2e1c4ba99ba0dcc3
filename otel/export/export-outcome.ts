/** What became of one export call, before anything is decided. */
export type ExportOutcome =
  /** The sink has the batch; `rejectedCount` of its records it refused (OTLP partial success). */
  | { readonly kind: 'taken'; readonly rejectedCount: number; readonly message?: string | undefined }
  /** The collector answered with another status than 2xx. */
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly retryAfterMs?: number | undefined;
      readonly message?: string | undefined;
    }
  /** The collector answered 2xx with more than the 4 MiB that OTLP lets a client read. */
  | { readonly kind: 'oversized' }
  /** No complete answer: network, time-out, full disk. `code` is the system's, `timeout` or `aborted`. */
  | { readonly kind: 'unanswered'; readonly code: string };

/**
 * Sends one batch, each line being one encoded span, and says what became of it. Tries once, never rejects,
 * and settles soon after the signal is aborted.
 */
export type ExportBatch = (lines: readonly Uint8Array[], signal: AbortSignal) => Promise<ExportOutcome>;

/** What to do with a batch after a call: its counts, its end, or another try. */
export type ExportDecision =
  | {
      readonly action: 'settle';
      readonly exportedCount: number;
      readonly rejectedCount: number;
      readonly message?: string | undefined;
    }
  | { readonly action: 'refuse'; readonly reason: string; readonly message?: string | undefined }
  /** Send its records in smaller batches. */
  | { readonly action: 'split'; readonly reason: string }
  | {
      readonly action: 'retry';
      readonly reason: string;
      readonly retryAfterMs?: number | undefined;
      /** If it happens again, the batch may be what the collector will not read to the end. */
      readonly mayBeTooLarge?: true | undefined;
    };

/** OTLP/HTTP, "Retryable Response Codes": all other 4xx and 5xx must not be retried. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** RFC 9110 §15.5.14. OTLP/HTTP does not let it be retried, but half of the batch is another request. */
const CONTENT_TOO_LARGE = 413;

/** What a sender sees of a server that closes without reading on: its answer, a 413 say, can be lost with that. */
const CUT_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/** Decides what happens to a batch of `batchCount` records. A partial success is a success, never sent again. */
export function decideExport(outcome: ExportOutcome, batchCount: number): ExportDecision {
  switch (outcome.kind) {
    case 'taken': {
      // It tells how many spans, not which. Attempts' spans count as records of their own, up to all there are:
      // what is called exported did arrive. Nor may a collector that claims too much unbalance the counters.
      const rejectedCount = Math.min(Math.max(outcome.rejectedCount, 0), batchCount);
      return {
        action: 'settle',
        exportedCount: batchCount - rejectedCount,
        rejectedCount,
        message: outcome.message,
      };
    }
    case 'answered': {
      const reason = `http_${outcome.status}`;
      if (outcome.status === CONTENT_TOO_LARGE && batchCount > 1) return { action: 'split', reason };
      return RETRYABLE_STATUSES.has(outcome.status)
        ? { action: 'retry', reason, retryAfterMs: outcome.retryAfterMs }
        : { action: 'refuse', reason, message: outcome.message };
    }
    case 'oversized':
      return { action: 'refuse', reason: 'response_too_large' };
    case 'unanswered':
      return CUT_CODES.has(outcome.code)
        ? { action: 'retry', reason: outcome.code, mayBeTooLarge: true }
        : { action: 'retry', reason: outcome.code };
  }
}
