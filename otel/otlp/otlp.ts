/*
 * Records as OTLP: how spans are encoded, decoded and digested for a ledger. It does no input or output.
 *
 * It never knows a queue, a file or a network.
 * Begin with encode-span.ts and decode/record-decoder.ts.
 */

export { decodeRecords } from './decode/decode-file-line.ts';
export { decodeRecord, RecordDecoder } from './decode/record-decoder.ts';
export { SpanEncoder } from './encode-span.ts';
export { AttributesDigester, DIGEST_BYTES } from './ledger/canonical-attributes.ts';
export { encodeLedgerSpan } from './ledger/ledger-span.ts';
export { toSpanJson } from './protobuf/span-to-json.ts';
export {
  type EncodedResourceSpans,
  encodeResourceSpans,
  joinBatch,
  joinJsonBatch,
} from './resource-spans.ts';
