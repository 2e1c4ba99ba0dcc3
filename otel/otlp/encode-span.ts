import type { Link } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { MAX_VARINT_BYTES, ProtobufWriter, sizeOfVarint } from '#otel/encoding';
import { writeAttributes } from './protobuf/any-value.ts';
import { EVENT, LINK, SCOPE_SPANS, SPAN, STATUS } from './protobuf/otlp-tags.ts';
import { SpanAttributesWriter } from './span-attributes-writer.ts';

/** Bits 8 and 9 of OTLP's span flags: whether `IS_REMOTE` is known, and whether the other side is remote. */
const HAS_IS_REMOTE = 0x100;
const IS_REMOTE = 0x200;

/** Room for the tag and the length before the first span. */
const HEAD_BYTES = 1 + MAX_VARINT_BYTES;
/** Room for the fields of a span without text, lists and attributes: 28 of the ids, 10 of the parent, and so on. */
const FIXED_BYTES = 128;
/** Most records fit into this size. The memory grows for others, and shrinks back when it has grown too much. */
const MEMORY_BYTES = 64 * 1024;
const MAX_MEMORY_BYTES = 1024 * 1024;

/** The kinds of trace.proto: the API counts from 0, the protocol from 1, where 0 is "unspecified". */
const FIRST_KIND = 1;

type TimedEvent = ReadableSpan['events'][number];

/**
 * Encodes spans in OTLP protobuf (opentelemetry-proto, trace.proto). The bytes equal those of ProtobufTraceSerializer,
 * except that integral doubles stay doubles.
 *
 * The memory is reused, and the attributes of a span are written over those of the last one
 * (span-attributes-writer.ts).
 */
export class SpanEncoder {
  #writer = new ProtobufWriter(MEMORY_BYTES);
  #attributes = new SpanAttributesWriter(this.#writer);

  /**
   * Encodes a record for a batch: its span and then the spans below it, each a field of ScopeSpans. They are one
   * piece, so that they are queued, sent and rejected together. The bytes are valid until the next call.
   */
  encode(span: ReadableSpan, children: readonly ReadableSpan[] = []): Uint8Array {
    if (this.#writer.bytes.length > MAX_MEMORY_BYTES) {
      this.#writer = new ProtobufWriter(MEMORY_BYTES);
      this.#attributes = new SpanAttributesWriter(this.#writer);
    }
    try {
      return this.#encode(this.#writer, span, children);
    } catch (error) {
      this.#attributes.forget();
      throw error;
    }
  }

  #encode(writer: ProtobufWriter, span: ReadableSpan, children: readonly ReadableSpan[]): Uint8Array {
    // The span begins at the same place each time, so that its attributes do, too. Its length is written before it.
    writer.at = HEAD_BYTES;
    writeHead(writer, span);
    this.#attributes.write(span.attributes);
    writeTail(writer, span);
    const end = writer.at;
    const length = end - HEAD_BYTES;
    const start = HEAD_BYTES - 1 - sizeOfVarint(length);
    writer.at = start;
    writer.byte(SCOPE_SPANS.span);
    writer.varint(length);
    writer.at = end;
    for (const child of children) writeSpan(writer, child);
    return writer.bytes.subarray(start, writer.at);
  }
}

/** Writes a span with its tag and length. */
function writeSpan(writer: ProtobufWriter, span: ReadableSpan): void {
  const begun = writer.begin(SCOPE_SPANS.span);
  writeHead(writer, span);
  writeAttributes(writer, SPAN.attributes, span.attributes);
  writeTail(writer, span);
  writer.end(begun);
}

/** Writes the fields of a span before its attributes, in the order of their numbers. */
function writeHead(writer: ProtobufWriter, span: ReadableSpan): void {
  const { traceId, spanId, traceState } = span.spanContext();
  const parent = span.parentSpanContext;
  writer.reserve(FIXED_BYTES);
  writeId(writer, SPAN.traceId, traceId);
  writeId(writer, SPAN.spanId, spanId);
  if (traceState !== undefined) {
    writer.textField(SPAN.traceState, traceState.serialize());
    writer.reserve(FIXED_BYTES);
  }
  if (parent !== undefined) writeId(writer, SPAN.parentSpanId, parent.spanId);
  writer.textField(SPAN.name, span.name);
  writer.reserve(FIXED_BYTES);
  writer.byte(SPAN.kind);
  writer.varint(span.kind + FIRST_KIND);
  writer.byte(SPAN.startTime);
  writer.time(span.startTime);
  writer.byte(SPAN.endTime);
  writer.time(span.endTime);
}

/** Writes the fields of a span after its attributes. */
function writeTail(writer: ProtobufWriter, span: ReadableSpan): void {
  writeCount(writer, SPAN.droppedAttributesCount, span.droppedAttributesCount);
  for (const event of span.events) writeEvent(writer, event);
  writeCount(writer, SPAN.droppedEventsCount, span.droppedEventsCount);
  for (const link of span.links) writeLink(writer, link);
  writeCount(writer, SPAN.droppedLinksCount, span.droppedLinksCount);
  writeStatus(writer, span.status);
  writeFlags(writer, SPAN.flags, toFlags(span.spanContext().traceFlags, span.parentSpanContext?.isRemote));
}

function writeEvent(writer: ProtobufWriter, event: TimedEvent): void {
  const begun = writer.begin(SPAN.events);
  writer.reserve(FIXED_BYTES);
  writer.byte(EVENT.time);
  writer.time(event.time);
  writer.textField(EVENT.name, event.name);
  writeAttributes(writer, EVENT.attributes, event.attributes ?? {});
  writeCount(writer, EVENT.droppedAttributesCount, event.droppedAttributesCount ?? 0);
  writer.end(begun);
}

function writeLink(writer: ProtobufWriter, { context, attributes, droppedAttributesCount }: Link): void {
  const begun = writer.begin(SPAN.links);
  writer.reserve(FIXED_BYTES);
  writeId(writer, LINK.traceId, context.traceId);
  writeId(writer, LINK.spanId, context.spanId);
  writeAttributes(writer, LINK.attributes, attributes ?? {});
  writeCount(writer, LINK.droppedAttributesCount, droppedAttributesCount ?? 0);
  writeFlags(writer, LINK.flags, toFlags(context.traceFlags, context.isRemote));
  writer.end(begun);
}

function writeStatus(writer: ProtobufWriter, { code, message }: ReadableSpan['status']): void {
  const begun = writer.begin(SPAN.status);
  if (message !== undefined && message !== '') writer.textField(STATUS.message, message);
  writeCount(writer, STATUS.code, code);
  writer.end(begun);
}

/** `hex`: an id of whole bytes. There must be room. */
function writeId(writer: ProtobufWriter, tag: number, hex: string): void {
  writer.byte(tag);
  writer.byte(hex.length / 2);
  writer.hex(hex);
}

function writeCount(writer: ProtobufWriter, tag: number, count: number): void {
  writer.reserve(1 + MAX_VARINT_BYTES);
  writer.byte(tag);
  writer.varint(count);
}

function writeFlags(writer: ProtobufWriter, tag: number, flags: number): void {
  writer.reserve(2 + Uint32Array.BYTES_PER_ELEMENT);
  writer.varint(tag);
  writer.fixed32(flags);
}

function toFlags(traceFlags: number, isRemote: boolean | undefined): number {
  return (traceFlags & 0xff) | HAS_IS_REMOTE | (isRemote === true ? IS_REMOTE : 0);
}
