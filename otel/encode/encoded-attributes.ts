import type { Attributes, AttributeValue } from '@opentelemetry/api';

const JSON_TEXT = Symbol('attributes as OTLP JSON');

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
  readonly #json: string;
  #attributes: Attributes | null = null;

  constructor(json: string) {
    this.#json = json;
  }

  get(_target: Attributes, name: string | symbol): unknown {
    if (name === JSON_TEXT) return this.#json;
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
 * Returns the attributes of a span, given their list of KeyValues in OTLP JSON. They are decoded only when they are
 * read. The gateway's own processor uses the JSON as it is (docs/decisions/0021).
 */
export function toLazyAttributes(json: string): Attributes {
  return new Proxy<Attributes>({}, new LazyAttributes(json));
}

/** The JSON of attributes that `toLazyAttributes` returned; undefined for any others. */
export function encodedJsonOf(
  attributes: Attributes & { readonly [JSON_TEXT]?: string },
): string | undefined {
  return attributes[JSON_TEXT];
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
