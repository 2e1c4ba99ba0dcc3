import type { Attributes, AttributeValue } from '@opentelemetry/api';
import type { RequestRecord } from './request-record.ts';

const JSON_TEXT = Symbol('attributes as OTLP JSON');
const RECORD = Symbol('the record that attributes are made from');

interface RecordAttributes {
  readonly [JSON_TEXT]?: string;
  readonly [RECORD]?: Readonly<RequestRecord>;
}

/** One of OTLP's KeyValues in JSON, as `createAttributesEncoder` writes it. */
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

/** Decodes attributes from their JSON when the first of them is read. */
class LazyAttributes implements ProxyHandler<Attributes> {
  readonly #record: Readonly<RequestRecord>;
  readonly #json: string;
  #attributes: Attributes | null = null;

  constructor(record: Readonly<RequestRecord>, json: string) {
    this.#record = record;
    this.#json = json;
  }

  get(_target: Attributes, name: string | symbol): unknown {
    if (name === JSON_TEXT) return this.#json;
    if (name === RECORD) return this.#record;
    return Reflect.get(this.#all, name);
  }

  has(_target: Attributes, name: string | symbol): boolean {
    return Reflect.has(this.#all, name);
  }

  ownKeys(): (string | symbol)[] {
    return Reflect.ownKeys(this.#all);
  }

  getOwnPropertyDescriptor(_target: Attributes, name: string | symbol): PropertyDescriptor | undefined {
    return Reflect.getOwnPropertyDescriptor(this.#all, name);
  }

  /** The attributes of a span that has ended do not change. */
  set(): boolean {
    return false;
  }

  get #all(): Attributes {
    this.#attributes ??= decodeAttributes(this.#json);
    return this.#attributes;
  }
}

/**
 * The attributes of a record's span. `json`: their list of KeyValues in OTLP JSON. They are read from it only when
 * somebody asks: our own processor takes the record and the JSON as they are (docs/decisions/0021).
 */
export function toRecordAttributes(record: Readonly<RequestRecord>, json: string): Attributes {
  return new Proxy<Attributes>({}, new LazyAttributes(record, json));
}

/** The JSON that a record's attributes are read from; undefined for any other attributes. */
export function encodedJsonOf(attributes: Attributes & RecordAttributes): string | undefined {
  return attributes[JSON_TEXT];
}

/** The record of a span with these attributes; undefined for any other span. */
export function recordOf(attributes: Attributes & RecordAttributes): Readonly<RequestRecord> | undefined {
  return attributes[RECORD];
}

function decodeAttributes(json: string): Attributes {
  const encoded = JSON.parse(json) as readonly EncodedAttribute[];
  return Object.fromEntries(encoded.map(({ key, value }) => [key, decodeValue(value)]));
}

function decodeValue(value: EncodedValue): AttributeValue | undefined {
  const { stringValue, boolValue, intValue, doubleValue, arrayValue } = value;
  if (arrayValue !== undefined) return arrayValue.values.map((item) => item.stringValue ?? '');
  return stringValue ?? boolValue ?? doubleValue ?? (intValue === undefined ? undefined : Number(intValue));
}
