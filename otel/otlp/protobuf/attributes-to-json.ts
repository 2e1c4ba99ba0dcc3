import { type KnownTexts, MalformedProtobufError, type ProtobufReader, readMessage } from '#otel/encoding';
import { RECORD_FIELDS, SEMCONV } from '#otel/record/registry';
import { ANY_VALUE, KEY_VALUE, SPAN } from './otlp-tags.ts';

/** Lists in lists are read to this depth. The gateway writes none. */
const MAX_DEPTH = 8;

/** Converts attributes, each with the tag that it has in a span, to OTLP's list of KeyValue in JSON. */
export function toAttributesJson(bytes: Uint8Array): string {
  const json = readMessage(bytes, (reader, end) => {
    let list = '';
    while (reader.next(end)) {
      if (reader.tag === SPAN.attributes) list += readKeyValue(reader, reader.message());
      else reader.skip();
    }
    return toList(list);
  });
  return json ?? '[]';
}

/** The items of a list, each with a comma before it, as a list. */
export function toList(items: string): string {
  return `[${items.slice(1)}]`;
}

/** The names of a record's attributes. To find one here takes a third of decoding it. */
const KNOWN_KEYS: KnownTexts = Map.groupBy(
  [...Object.values(RECORD_FIELDS).map(({ name }) => name), ...Object.values(SEMCONV)].map((name) => ({
    bytes: Buffer.from(name),
    text: JSON.stringify(name),
  })),
  ({ bytes }) => bytes.length,
);

/** Reads a KeyValue. Returns `,{"key":…,"value":…}`. */
export function readKeyValue(reader: ProtobufReader, end: number): string {
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
    if (reader.tag === ANY_VALUE.string) value = `{"stringValue":${quote(reader.text())}}`;
    else if (reader.tag === ANY_VALUE.bool) value = `{"boolValue":${reader.varint() !== 0}}`;
    else if (reader.tag === ANY_VALUE.int) value = `{"intValue":"${reader.int64()}"}`;
    else if (reader.tag === ANY_VALUE.double) value = `{"doubleValue":${toDoubleText(reader.double())}}`;
    else if (reader.tag === ANY_VALUE.array)
      value = `{"arrayValue":{"values":${readItems(reader, reader.message(), depth)}}}`;
    else reader.skip();
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

/** The numbers that JSON has no form for are strings there (protobuf.dev, "ProtoJSON Format"). */
function toDoubleText(value: number): string {
  return Number.isFinite(value) ? String(value) : `"${value}"`;
}

/** A text that needs no escapes in JSON: the usual case, and this test is faster than JSON.stringify. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** A text in JSON. */
export function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text);
}
