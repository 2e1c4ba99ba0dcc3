/*
 * What can be done with exported records without a gateway: `gateway verify` compares them with their ledger,
 * `gateway export-trace` makes a trace of them.
 *
 * It never knows a gateway: the registry of records is all it stands on.
 * Begin with verify/verify-records.ts and trace/write-trace.ts.
 */

export type { CacheSummary } from './trace/prefix-hits.ts';
export { isCoarseEnough } from './trace/trace-lines.ts';
export { type TraceCounts, type TraceSettings, WINDOW, writeTrace } from './trace/write-trace.ts';
export type { ReportedInstance, ReportedRanges, VerifyReport } from './verify/report.ts';
export { verifyRecords } from './verify/verify-records.ts';
