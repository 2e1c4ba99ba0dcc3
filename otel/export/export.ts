/*
 * One call to the collector: protobuf or JSON, its outcome, its deadline, and advice for the operator.
 *
 * It never knows where a batch comes from.
 * Begin with otlp-exporter.ts.
 */

export { convertSpans } from './convert-spans.ts';
export { DeadlineExporter } from './deadline-exporter.ts';
export { decideExport, type ExportDecision } from './decide-export.ts';
export { ExportHealth } from './export-health.ts';
export { createOtlpExporter } from './otlp-exporter.ts';
export type { ExportBatch, ExportOutcome, RecordExporter } from './record-exporter.ts';
export { nextDelayMs } from './retry.ts';
