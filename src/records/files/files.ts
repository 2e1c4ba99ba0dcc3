/*
 * Files of exported records: opened lines of OTLP JSON and of a spool, and the values of the spans in them.
 *
 * It never knows what is done with a record.
 * Begin with record-source.ts and span-values.ts.
 */

export { readLines } from './file-lines.ts';
export { type RecordSource, readSources, UnreadableError } from './record-source.ts';
export { readSpans, SpanValues } from './span-values.ts';
