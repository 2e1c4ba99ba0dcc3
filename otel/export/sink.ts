import type { ExportBatch } from './export-outcome.ts';
import type { OtlpOptions } from './otlp-options.ts';

/** Where batches go, and what must be let go of at the end. */
export interface Sink {
  readonly exportBatch: ExportBatch;
  /** How the collector that takes spans is reached; undefined for files. */
  readonly collector?: OtlpOptions | undefined;
  close(): void;
}
