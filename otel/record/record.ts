/*
 * The contract of the record: what its span says of it, and how it is read from a span again.
 *
 * It never knows how a span is encoded. Names from outside are cut before they come here: toShownName of #otel/base.
 * Begin with attributes.ts, which also computes what a dialect adds. The names and types are in registry/, a room of their own.
 */

export { MAX_TIMINGS } from './attribute-values.ts';
export {
  type HttpFacts,
  isDoubleName,
  type RecordSpan,
  toOperationAttributes,
  toRecord,
  toRequestAttributes,
} from './attributes.ts';
export { addFailedAttempts } from './failed-attempts.ts';
export { type GenAiNames, readGenAiNames } from './gen-ai-names.ts';
export type { Dialects } from './record-attributes.ts';
export type { RequestNotes } from './request-notes.ts';
