/*
 * The contract of the record: how it is encoded, decoded and digested for a ledger. It does no input or output, so that
 * whatever reads records can stand on it.
 *
 * It never knows a queue, a file or a network.
 * Begin with encode-span.ts and decode/record-decoder.ts. The names and types are in registry/, a room of their own.
 */

export { MAX_TIMINGS } from './attribute-values.ts';
export {
  type GenAiNames,
  type HttpFacts,
  toErrorType,
  toFailureType,
  toOperationAttributes,
  toRecord,
  toRequestAttributes,
} from './attributes.ts';
export { decodeRecords } from './decode/decode-file-line.ts';
export { decodeRecord, RecordDecoder } from './decode/record-decoder.ts';
export { SpanEncoder } from './encode-span.ts';
export { addFailedAttempts } from './failed-attempts.ts';
export { AttributesDigester, DIGEST_BYTES } from './ledger/canonical-attributes.ts';
export { encodeLedgerSpan, type LedgerSpan } from './ledger/ledger-span.ts';
export { toSpanJson } from './protobuf/span-to-json.ts';
export { hasFailed, type RequestOutcome, toOutcome } from './request-outcome.ts';
export {
  type EncodedResourceSpans,
  encodeResourceSpans,
  joinBatch,
  joinJsonBatch,
} from './resource-spans.ts';
