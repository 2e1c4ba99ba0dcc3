import type { ExportBatch } from './export-outcome.ts';

/** Where batches go, and what must be let go of at the end. */
export interface Sink {
  readonly exportBatch: ExportBatch;
  /** Where a collector takes spans; undefined for files. */
  readonly url?: URL | undefined;
  close(): void;
}
