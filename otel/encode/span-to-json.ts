import type { Attributes, AttributeValue } from '@opentelemetry/api';
import { RECORD_ATTRIBUTES } from './attributes.ts';
import { ANY_VALUE, EVENT, KEY_VALUE, LINK, SCOPE_SPANS, SPAN, STATUS } from './otlp-tags.ts';
import { type KnownTexts, MalformedProtobufError, ProtobufReader } from './protobuf-reader.ts';

/** Lists in lists are read to this depth. The gateway writes none. */
const MAX_DEPTH = 8;

/**
 * Converts an encoded span to OTLP JSON (hex ids; nanoseconds and int64 as strings): the span, and after commas those of
 * its attempts. Every member is there, lists that are empty and counts that are zero included. Null for anything that is
 * no encoded span.
 */
export function toSpanJson(encodedSpan: Uint8Array): string | null {
  return read(encodedSpan, (reader, end) => {
    let json = '';
    while (reader.next(end)) {
      if (reader.tag === SCOPE_SPANS.span)
        json += `${json === '' ? '' : ','}${readSpan(reader, reader.message())}`;
      else throw new MalformedProtobufError();
    }
    return json === '' ? null : json;
  });
}

/** Converts attributes, each with the tag that it has in a span, to OTLP's list of KeyValue in JSON. */
export function toAttributesJson(bytes: Uint8Array): string {
  const json = read(bytes, (reader, end) => {
    let list = '';
    while (reader.next(end)) {
      if (reader.tag === SPAN.attributes) list += readKeyValue(reader, reader.message());
      else reader.skip();
    }
    return toList(list);
  });
  return json ?? '[]';
}

/** Decodes attributes, each with the tag that it has in a span. */
export function decodeAttributes(bytes: Uint8Array): Attributes {
  const encoded: readonly EncodedAttribute[] = JSON.parse(toAttributesJson(bytes));
  return Object.fromEntries(encoded.map(({ key, value }) => [key, decodeValue(value)]));
}

/** One of OTLP's KeyValues in JSON. */
interface EncodedAttribute {
  readonly key: string;
  readonly value: EncodedValue;
}

interface EncodedValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: string;
  readonly doubleValue?: number;
  readonly arrayValue?: { readonly values: readonly EncodedValue[] };
}

function decodeValue(value: EncodedValue): AttributeValue | undefined {
  const { stringValue, boolValue, intValue, doubleValue, arrayValue } = value;
  if (arrayValue !== undefined) return arrayValue.values.map((item) => item.stringValue ?? '');
  return stringValue ?? boolValue ?? doubleValue ?? (intValue === undefined ? undefined : Number(intValue));
}

/** Null for bytes that are malformed. */
function read(
  bytes: Uint8Array,
  message: (reader: ProtobufReader, end: number) => string | null,
): string | null {
  const reader = new ProtobufReader(bytes);
  try {
    return message(reader, reader.end);
  } catch (error) {
    if (error instanceof MalformedProtobufError) return null;
    throw error;
  }
}

function readSpan(reader: ProtobufReader, end: number): string {
  let ids = '';
  let name = '""';
  let kind = 0;
  let times = '';
  let attributes = '';
  let droppedAttributes = 0;
  let events = '';
  let droppedEvents = 0;
  let links = '';
  let droppedLinks = 0;
  let status = '{"code":0}';
  let flags = 0;
  while (reader.next(end)) {
    switch (reader.tag) {
      case SPAN.traceId:
        ids += `"traceId":"${reader.hex()}",`;
        break;
      case SPAN.spanId:
        ids += `"spanId":"${reader.hex()}",`;
        break;
      case SPAN.parentSpanId:
        ids += `"parentSpanId":"${reader.hex()}",`;
        break;
      case SPAN.name:
        name = quote(reader.text());
        break;
      case SPAN.kind:
        kind = reader.varint();
        break;
      case SPAN.startTime:
        times += `"startTimeUnixNano":"${reader.fixed64()}",`;
        break;
      case SPAN.endTime:
        times += `"endTimeUnixNano":"${reader.fixed64()}",`;
        break;
      case SPAN.attributes:
        attributes += readKeyValue(reader, reader.message());
        break;
      case SPAN.droppedAttributesCount:
        droppedAttributes = reader.varint();
        break;
      case SPAN.events:
        events += readEvent(reader, reader.message());
        break;
      case SPAN.droppedEventsCount:
        droppedEvents = reader.varint();
        break;
      case SPAN.links:
        links += readLink(reader, reader.message());
        break;
      case SPAN.droppedLinksCount:
        droppedLinks = reader.varint();
        break;
      case SPAN.status:
        status = readStatus(reader, reader.message());
        break;
      case SPAN.flags:
        flags = reader.fixed32();
        break;
      default:
        reader.skip();
    }
  }
  return (
    `{${ids}"name":${name},"kind":${kind},${times}"attributes":${toList(attributes)},` +
    `"droppedAttributesCount":${droppedAttributes},"events":${toList(events)},"droppedEventsCount":${droppedEvents},` +
    `"status":${status},"links":${toList(links)},"droppedLinksCount":${droppedLinks},"flags":${flags}}`
  );
}

/** The items of a list, each with a comma before it, as a list. */
function toList(items: string): string {
  return `[${items.slice(1)}]`;
}

/** The names of a record's attributes. To find one here takes a third of decoding it. */
const KNOWN_KEYS: KnownTexts = Map.groupBy(
  RECORD_ATTRIBUTES.map(({ name }) => ({ bytes: Buffer.from(name), json: JSON.stringify(name) })),
  ({ bytes }) => bytes.length,
);

/** Returns `,{"key":…,"value":…}`. */
function readKeyValue(reader: ProtobufReader, end: number): string {
  let key = '""';
  let value = '{}';
  while (reader.next(end)) {
    if (reader.tag === KEY_VALUE.key) key = reader.knownText(KNOWN_KEYS) ?? quote(reader.text());
    else if (reader.tag === KEY_VALUE.value) value = readAnyValue(reader, reader.message());
    else reader.skip();
  }
  return `,{"key":${key},"value":${value}}`;
}

function readAnyValue(reader: ProtobufReader, end: number, depth = 0): string {
  if (depth > MAX_DEPTH) throw new MalformedProtobufError();
  let value = '{}';
  while (reader.next(end)) {
    switch (reader.tag) {
      case ANY_VALUE.string:
        value = `{"stringValue":${quote(reader.text())}}`;
        break;
      case ANY_VALUE.bool:
        value = `{"boolValue":${reader.varint() !== 0}}`;
        break;
      case ANY_VALUE.int:
        value = `{"intValue":"${reader.int64()}"}`;
        break;
      case ANY_VALUE.double:
        value = `{"doubleValue":${toDoubleText(reader.double())}}`;
        break;
      case ANY_VALUE.array:
        value = `{"arrayValue":{"values":${readItems(reader, reader.message(), depth)}}}`;
        break;
      default:
        reader.skip();
    }
  }
  return value;
}

function readItems(reader: ProtobufReader, end: number, depth: number): string {
  let items = '';
  while (reader.next(end)) {
    if (reader.tag === ANY_VALUE.arrayItem) items += `,${readAnyValue(reader, reader.message(), depth + 1)}`;
    else reader.skip();
  }
  return toList(items);
}

/** Returns the event with a comma before it. */
function readEvent(reader: ProtobufReader, end: number): string {
  let attributes = '';
  let name = '""';
  let time = 0n;
  let droppedAttributes = 0;
  while (reader.next(end)) {
    switch (reader.tag) {
      case EVENT.time:
        time = reader.fixed64();
        break;
      case EVENT.name:
        name = quote(reader.text());
        break;
      case EVENT.attributes:
        attributes += readKeyValue(reader, reader.message());
        break;
      case EVENT.droppedAttributesCount:
        droppedAttributes = reader.varint();
        break;
      default:
        reader.skip();
    }
  }
  return (
    `,{"attributes":${toList(attributes)},"name":${name},` +
    `"timeUnixNano":"${time}","droppedAttributesCount":${droppedAttributes}}`
  );
}

/** Returns the link with a comma before it. */
function readLink(reader: ProtobufReader, end: number): string {
  let attributes = '';
  let traceId = '';
  let spanId = '';
  let droppedAttributes = 0;
  let flags = 0;
  while (reader.next(end)) {
    switch (reader.tag) {
      case LINK.traceId:
        traceId = reader.hex();
        break;
      case LINK.spanId:
        spanId = reader.hex();
        break;
      case LINK.attributes:
        attributes += readKeyValue(reader, reader.message());
        break;
      case LINK.droppedAttributesCount:
        droppedAttributes = reader.varint();
        break;
      case LINK.flags:
        flags = reader.fixed32();
        break;
      default:
        reader.skip();
    }
  }
  return (
    `,{"attributes":${toList(attributes)},"spanId":"${spanId}","traceId":"${traceId}",` +
    `"droppedAttributesCount":${droppedAttributes},"flags":${flags}}`
  );
}

function readStatus(reader: ProtobufReader, end: number): string {
  let code = 0;
  let message = '';
  while (reader.next(end)) {
    if (reader.tag === STATUS.code) code = reader.varint();
    else if (reader.tag === STATUS.message) message = reader.text();
    else reader.skip();
  }
  return `{"code":${code}${message === '' ? '' : `,"message":${quote(message)}`}}`;
}

/** The numbers that JSON has no form for are strings there (protobuf.dev, "ProtoJSON Format"). */
function toDoubleText(value: number): string {
  return Number.isFinite(value) ? String(value) : `"${value}"`;
}

/** A text that needs no escapes in JSON: the usual case, and this test is faster than JSON.stringify. */
const PLAIN = /^[ !#-[\]-~]*$/;

function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}
