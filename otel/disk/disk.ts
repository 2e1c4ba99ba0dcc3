/*
 * Records on disk: files of records, and the spool of what the collector has not taken.
 *
 * It never knows a queue.
 * Begin with spool.ts and record-files.ts. When the spool is written and sent, otel/queue decides:
 * export-loop/spool-transfer.ts.
 */

export { openFileExporter } from './file-exporter.ts';
export type { RecordFileSettings } from './record-files.ts';
export { openSpool, readSpoolLine, type Spool, type SpooledBatch } from './spool.ts';
