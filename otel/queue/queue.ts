/*
 * The bounded queue of records and its export loop: capacity, counters, the records of workers, the latest
 * ones.
 *
 * It never knows the SDK, nor what makes a span.
 * Begin with record-receiver.ts and export-loop/export-loop.ts; export-loop/spool-transfer.ts puts what an earlier run
 * has left before new records.
 */

export { Drops } from './drops.ts';
export { ExportLoop } from './export-loop/export-loop.ts';
export { SpoolTransfer } from './export-loop/spool-transfer.ts';
export { ExportCounters, type ExportStats } from './export-stats.ts';
export { RecentRecords } from './recent-records.ts';
export type { EndedRecord, RecordConsumer } from './record-consumer.ts';
export { RecordQueue } from './record-queue.ts';
export { RecordReceiver } from './record-receiver.ts';
export { type PackedRecords, WorkerRecordSender } from './worker-record-sender.ts';
