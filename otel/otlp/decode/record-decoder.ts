import type { Attributes, AttributeValue, HrTime } from '@opentelemetry/api';
import { type KnownTexts, MalformedProtobufError, ProtobufReader } from '#otel/encoding';
import { type RecordSpan, toRecord } from '#otel/record';
import { RECORD_FIELDS, type RequestRecord, SEMCONV } from '#otel/record/registry';
import { ANY_VALUE, EVENT, KEY_VALUE, SCOPE_SPANS, SPAN } from '../protobuf/otlp-tags.ts';

const NANOS = 1_000_000_000n;

/** An attribute that was decoded, and where. */
interface Decoded {
  start: number;
  readonly length: number;
  readonly key: string;
  readonly value: AttributeValue | undefined;
}

/**
 * Decodes records from encoded spans (one span in OTLP protobuf, then those of its attempts) that share memory. Values that
 * were cut stay cut. Records that follow one another are much alike: an attribute with the same bytes as the one at the same
 * place in the span before is not decoded again, which saves half of the time.
 */
export class RecordDecoder {
  readonly #reader: ProtobufReader;
  readonly #decoded: Decoded[] = [];

  constructor(bytes: Uint8Array) {
    this.#reader = new ProtobufReader(bytes);
  }

  /** The record of the encoded span between two places; null if there is none. */
  decode(start: number, end: number): RequestRecord | null {
    const reader = this.#reader;
    reader.at = start;
    try {
      if (!reader.next(end) || reader.tag !== SCOPE_SPANS.span) return null;
      return toRecord(this.#span(reader.message()));
    } catch (error) {
      if (error instanceof MalformedProtobufError) return null;
      throw error;
    }
  }

  #span(end: number): RecordSpan {
    const reader = this.#reader;
    const attributes: Attributes = {};
    const events: RecordSpan['events'] = [];
    let startTime: HrTime = [0, 0];
    let count = 0;
    while (reader.next(end)) {
      switch (reader.tag) {
        case SPAN.startTime:
          startTime = toHrTime(reader.fixed64());
          break;
        case SPAN.attributes: {
          const { key, value } = this.#attribute(count++, reader.message());
          if (value !== undefined) attributes[key] = value;
          break;
        }
        case SPAN.events:
          events.push(this.#event(reader.message()));
          break;
        default:
          reader.skip();
      }
    }
    return { attributes, events, startTime };
  }

  #attribute(index: number, end: number): Decoded {
    const reader = this.#reader;
    const start = reader.at;
    const length = end - start;
    const before = this.#decoded[index];
    if (before !== undefined && before.length === length && reader.isSame(before.start, start, length)) {
      before.start = start;
      reader.at = end;
      return before;
    }
    const decoded = { start, length, ...readAttribute(reader, end) };
    this.#decoded[index] = decoded;
    return decoded;
  }

  #event(end: number): RecordSpan['events'][number] {
    const reader = this.#reader;
    const attributes: Attributes = {};
    let name = '';
    let time: HrTime = [0, 0];
    while (reader.next(end)) {
      if (reader.tag === EVENT.time) time = toHrTime(reader.fixed64());
      else if (reader.tag === EVENT.name) name = reader.text();
      else if (reader.tag === EVENT.attributes) {
        const { key, value } = readAttribute(reader, reader.message());
        if (value !== undefined) attributes[key] = value;
      } else reader.skip();
    }
    return { name, time, attributes };
  }
}

function toHrTime(nanos: bigint): HrTime {
  return [Number(nanos / NANOS), Number(nanos % NANOS)];
}

/** The names of a record's attributes. To find one here takes a third of decoding it. */
const KNOWN_KEYS: KnownTexts = Map.groupBy(
  [...Object.values(RECORD_FIELDS).map(({ name }) => name), ...Object.values(SEMCONV)].map((name) => ({
    bytes: Buffer.from(name),
    text: name,
  })),
  ({ bytes }) => bytes.length,
);

function readAttribute(reader: ProtobufReader, end: number): Pick<Decoded, 'key' | 'value'> {
  let key = '';
  let value: AttributeValue | undefined;
  while (reader.next(end)) {
    if (reader.tag === KEY_VALUE.key) key = reader.knownText(KNOWN_KEYS) ?? reader.text();
    else if (reader.tag === KEY_VALUE.value) value = readValue(reader, reader.message());
    else reader.skip();
  }
  return { key, value };
}

function readValue(reader: ProtobufReader, end: number): AttributeValue | undefined {
  let value: AttributeValue | undefined;
  while (reader.next(end)) {
    if (reader.tag === ANY_VALUE.string) value = reader.text();
    else if (reader.tag === ANY_VALUE.bool) value = reader.varint() !== 0;
    else if (reader.tag === ANY_VALUE.int) value = Number(reader.int64());
    else if (reader.tag === ANY_VALUE.double) value = reader.double();
    else if (reader.tag === ANY_VALUE.array) value = readTexts(reader, reader.message());
    else reader.skip();
  }
  return value;
}

function readTexts(reader: ProtobufReader, end: number): string[] {
  const texts: string[] = [];
  while (reader.next(end)) {
    if (reader.tag !== ANY_VALUE.arrayItem) throw new MalformedProtobufError();
    const itemEnd = reader.message();
    while (reader.next(itemEnd)) {
      if (reader.tag === ANY_VALUE.string) texts.push(reader.text());
      else reader.skip();
    }
  }
  return texts;
}

/** Decodes the record of an encoded span. Null if it is none. */
export function decodeRecord(encodedSpan: Uint8Array): RequestRecord | null {
  return new RecordDecoder(encodedSpan).decode(0, encodedSpan.length);
}
