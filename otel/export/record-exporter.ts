import type { OtlpOptions } from '#otel/collector';

/** The result of one export call, before anything is decided. */
export type ExportOutcome =
  /** The batch was accepted, but for `rejectedCount` of its records (OTLP partial success). */
  | { readonly kind: 'taken'; readonly rejectedCount: number; readonly message?: string | undefined }
  /** The collector answered with a status other than 2xx. */
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly retryAfterMs?: number | undefined;
      readonly message?: string | undefined;
    }
  /** The collector answered 2xx with a body of more than the 4 MiB at which OTLP lets a client stop reading. */
  | { readonly kind: 'oversized' }
  /** No complete answer: network, time-out, full disk. `code` is the system's, `timeout` or `aborted`. */
  | { readonly kind: 'unanswered'; readonly code: string };

/** Sends one batch of encoded spans once. Never rejects, and settles soon after the signal is aborted. */
export type ExportBatch = (
  encodedSpans: readonly Uint8Array[],
  signal: AbortSignal,
) => Promise<ExportOutcome>;

/** Sends batches to the collector, or writes them to files. */
export interface RecordExporter {
  readonly exportBatch: ExportBatch;
  /** How to reach the collector that takes spans; undefined for files. */
  readonly collector?: OtlpOptions | undefined;
  close(): void;
}
