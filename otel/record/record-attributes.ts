import type { Attributes } from '@opentelemetry/api';
import { ProtobufWriter } from '#otel/encoding';
import type { RequestRecord } from '#otel/record/registry';
import type { HttpFacts } from './attributes.ts';
import { type AttributeSet, DEFAULT_LAYOUT, type RecordLayout } from './layout/record-layout.ts';
import { decodeAttributes } from './protobuf/attributes-to-json.ts';
import { RecordAttributesWriter } from './record-attributes-writer.ts';

const FACTS = Symbol('the facts that attributes are made from');

/** What the attributes of a request's span are made from. */
export interface RecordFacts {
  /** It gets its number before it is encoded. */
  readonly record: RequestRecord;
  readonly http: HttpFacts;
}

interface RecordAttributes {
  readonly [FACTS]?: RecordFacts;
}

/** Most records fit into this size. */
const ATTRIBUTES_BYTES = 4 * 1024;

/** Makes the attributes when the first of them is read. */
class LazyAttributes implements ProxyHandler<Attributes> {
  readonly #facts: RecordFacts;
  readonly #set: AttributeSet;
  #attributes: Attributes | null = null;

  constructor(facts: RecordFacts, set: AttributeSet) {
    this.#facts = facts;
    this.#set = set;
  }

  get(_target: Attributes, name: string | symbol): unknown {
    return name === FACTS ? this.#facts : Reflect.get(this.#all, name);
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
    this.#attributes ??= decodeSet(this.#facts, this.#set);
    return this.#attributes;
  }
}

/** These attributes of a record. They are encoded and decoded again, so that everybody sees what is sent. */
export function decodeSet({ record, http }: RecordFacts, set: AttributeSet): Attributes {
  const writer = new ProtobufWriter(ATTRIBUTES_BYTES);
  new RecordAttributesWriter(writer, set).write(record, http);
  return decodeAttributes(writer.bytes.subarray(0, writer.at));
}

/**
 * The attributes of a record's span. They are made only when somebody asks: our own processor takes the record as it is
 * (docs/decisions/0021).
 */
export function toRecordAttributes(
  record: RequestRecord,
  http: HttpFacts,
  { request }: RecordLayout = DEFAULT_LAYOUT,
): Attributes {
  return new Proxy<Attributes>({}, new LazyAttributes({ record, http }, request));
}

/** What the attributes of a request's span are made from; undefined for any other span. */
export function recordFactsOf(attributes: Attributes & RecordAttributes): RecordFacts | undefined {
  return attributes[FACTS];
}
