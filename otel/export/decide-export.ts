import type { ExportOutcome } from './record-exporter.ts';

/** What to do with a batch after a call. */
export type ExportDecision =
  /** Remove and count its records. */
  | {
      readonly action: 'settle';
      readonly exportedCount: number;
      readonly rejectedCount: number;
      readonly message?: string | undefined;
    }
  | { readonly action: 'reject'; readonly reason: string; readonly message?: string | undefined }
  /** Send its records in smaller batches. */
  | { readonly action: 'split'; readonly reason: string }
  | {
      readonly action: 'retry';
      readonly reason: string;
      readonly retryAfterMs?: number | undefined;
      /** If this happens again, the batch may be larger than the collector accepts. */
      readonly mayBeTooLarge?: true | undefined;
    };

/** OTLP/HTTP, "Retryable Response Codes": all other 4xx and 5xx must not be retried. */
const RETRYABLE_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** RFC 9110 §15.5.14. OTLP/HTTP forbids a retry, but half of the batch is another request. */
const CONTENT_TOO_LARGE = 413;

/** A server that closes the connection without reading on: its answer, for example a 413, can be lost with that. */
const CUT_CODES: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE']);

/** OTLP says nothing of redirects, and they are not followed: a proxy or a login page is in the way, until it is not. */
const isRedirect = (status: number) => status >= 300 && status < 400;

/** Decides what happens to a batch of `batchCount` records. A partial success is a success, and is never sent again. */
export function decideExport(outcome: ExportOutcome, batchCount: number): ExportDecision {
  switch (outcome.kind) {
    case 'taken': {
      // The collector tells how many spans it rejected, not which ones, and attempt spans count too. Each rejected span
      // counts as a rejected record, up to the size of the batch, so that records called exported did arrive, and a
      // wrong number cannot unbalance the counters.
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
      return RETRYABLE_STATUSES.has(outcome.status) || isRedirect(outcome.status)
        ? { action: 'retry', reason, retryAfterMs: outcome.retryAfterMs }
        : { action: 'reject', reason, message: outcome.message };
    }
    case 'oversized':
      return { action: 'reject', reason: 'response_too_large' };
    case 'unanswered':
      return CUT_CODES.has(outcome.code)
        ? { action: 'retry', reason: outcome.code, mayBeTooLarge: true }
        : { action: 'retry', reason: outcome.code };
  }
}
