import type { Attributes } from '@opentelemetry/api';
import type { HttpFacts } from './attributes.ts';
import { decodeAttributes } from './protobuf/attributes-to-json.ts';
import { ProtobufWriter } from './protobuf/protobuf-writer.ts';
import { RecordAttributesWriter } from './record-attributes-writer.ts';
import type { RequestRecord } from './request-record.ts';

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
  #attributes: Attributes | null = null;

  constructor(facts: RecordFacts) {
    this.#facts = facts;
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

  /** They are encoded and decoded again, so that everybody sees what is sent. */
  get #all(): Attributes {
    if (this.#attributes !== null) return this.#attributes;
    const writer = new ProtobufWriter(ATTRIBUTES_BYTES);
    new RecordAttributesWriter(writer).write(this.#facts.record, this.#facts.http);
    this.#attributes = decodeAttributes(writer.bytes.subarray(0, writer.at));
    return this.#attributes;
  }
}

/**
 * The attributes of a record's span. They are made only when somebody asks: our own processor takes the record as it is
 * (docs/decisions/0021).
 */
export function toRecordAttributes(record: RequestRecord, http: HttpFacts): Attributes {
  return new Proxy<Attributes>({}, new LazyAttributes({ record, http }));
}

/** What the attributes of a request's span are made from; undefined for any other span. */
export function recordFactsOf(attributes: Attributes & RecordAttributes): RecordFacts | undefined {
  return attributes[FACTS];
}
