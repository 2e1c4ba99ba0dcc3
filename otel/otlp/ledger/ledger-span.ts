import { randomBytes } from 'node:crypto';
import { ProtobufWriter } from '#otel/encoding';
import { LEDGER } from '#otel/record/registry';
import { writeAttributes } from '../protobuf/any-value.ts';
import { SCOPE_SPANS, SPAN } from '../protobuf/otlp-tags.ts';
import { AttributesDigester } from './canonical-attributes.ts';

/** The values of a ledger span's attributes, all but `chain`. Undefined ones are absent. */
export type LedgerAttributes = Readonly<Record<string, string | number | boolean | string[] | undefined>>;

/** A ledger span that is ready to be exported. */
export interface LedgerSpan {
  /** In OTLP protobuf, as a field of ScopeSpans. */
  readonly encodedSpan: Uint8Array;
  /** 64 hex digits. The next ledger span of the instance names it as `previous`. */
  readonly chain: string;
}

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
/** SPAN_KIND_INTERNAL of trace.proto. */
const INTERNAL = 1;
/** OTLP's span flags: sampled, and the parent (there is none) is known not to be remote. */
const FLAGS = 0x101;
const SOME_BYTES = 64 * 1024;
/** With their tag. */
const FLAGS_BYTES = 6;

/** Encodes a ledger span, a trace of its own. `startMs` and `endMs`: epoch milliseconds. */
export function encodeLedgerSpan(
  attributes: LedgerAttributes,
  { startMs, endMs }: { readonly startMs: number; readonly endMs: number },
): LedgerSpan {
  const encodedAttributes = new ProtobufWriter(SOME_BYTES);
  writeAttributes(encodedAttributes, SPAN.attributes, attributes);
  const covered = encodedAttributes.bytes.subarray(0, encodedAttributes.at);
  const chain = new AttributesDigester().digestAttributes(covered).toString('hex');
  writeAttributes(encodedAttributes, SPAN.attributes, { [LEDGER.chain]: chain });

  const writer = new ProtobufWriter(SOME_BYTES);
  // In the memory that it begins with, there is room for all but the attributes.
  const span = writer.begin(SCOPE_SPANS.span);
  writeId(writer, SPAN.traceId, TRACE_ID_BYTES);
  writeId(writer, SPAN.spanId, SPAN_ID_BYTES);
  writer.textField(SPAN.name, LEDGER.span);
  writer.byte(SPAN.kind);
  writer.varint(INTERNAL);
  writer.byte(SPAN.startTime);
  writer.time(toHrTime(startMs));
  writer.byte(SPAN.endTime);
  writer.time(toHrTime(endMs));
  writer.raw(encodedAttributes.bytes.subarray(0, encodedAttributes.at));
  writer.reserve(FLAGS_BYTES);
  writer.varint(SPAN.flags);
  writer.fixed32(FLAGS);
  writer.end(span);
  return { encodedSpan: writer.bytes.subarray(0, writer.at), chain };
}

function writeId(writer: ProtobufWriter, tag: number, byteCount: number): void {
  writer.byte(tag);
  writer.byte(byteCount);
  writer.raw(randomBytes(byteCount));
}

function toHrTime(epochMs: number): [number, number] {
  return [Math.floor(epochMs / 1000), Math.round((epochMs % 1000) * 1e6)];
}
