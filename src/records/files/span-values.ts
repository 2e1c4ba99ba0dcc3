import { readSpoolLine } from '#otel/disk';
import { toSpanJson } from '#otel/otlp';
import { isJsonObject, type JsonObject, listOf, parseJson, readJsonInt } from '#otel/otlp-json';

/** Reads the spans of a line: a TracesData message in JSON, or a line of a spool. Null for anything else, such as half a line. */
export function readSpans(line: Buffer): readonly unknown[] | null {
  const message = parseJson(line.toString());
  if (isJsonObject(message) && Array.isArray(message.resourceSpans)) {
    return message.resourceSpans
      .flatMap((resourceSpans) => listOf(resourceSpans, 'scopeSpans'))
      .flatMap((scopeSpans) => listOf(scopeSpans, 'spans'));
  }
  const encodedSpan = readSpoolLine(line);
  const json = encodedSpan === null ? null : toSpanJson(encodedSpan);
  if (json === null) return null;
  const spans = parseJson(`[${json}]`);
  return Array.isArray(spans) ? spans : [];
}

/** The values of a span's attributes. Of those with the same name the last one counts, as for most readers of JSON. */
export class SpanValues {
  readonly #values = new Map<string, JsonObject>();
  readonly #names = new Set<string>();

  constructor(span: unknown) {
    for (const attribute of listOf(span, 'attributes')) {
      if (!isJsonObject(attribute) || typeof attribute.key !== 'string') continue;
      this.#names.add(attribute.key);
      if (isJsonObject(attribute.value)) this.#values.set(attribute.key, attribute.value);
    }
  }

  /** Whether there is an attribute of this name, whatever its value. */
  hasName(name: string): boolean {
    return this.#names.has(name);
  }

  /** Whether the attribute has a value. */
  has(name: string): boolean {
    return this.#values.has(name);
  }

  text(name: string): string | undefined {
    const text = this.#values.get(name)?.stringValue;
    return typeof text === 'string' ? text : undefined;
  }

  /** A whole number that is not negative. */
  count(name: string): number | undefined {
    const value = this.#values.get(name);
    const number = value === undefined ? undefined : readJsonInt(value);
    return number !== undefined && number >= 0 ? number : undefined;
  }

  /** A finite number. */
  double(name: string): number | undefined {
    const number = this.#values.get(name)?.doubleValue;
    return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
  }

  isTrue(name: string): boolean {
    return this.#values.get(name)?.boolValue === true;
  }

  /** The texts of a list; what is no text is empty. */
  texts(name: string): readonly string[] {
    return listOf(this.#values.get(name)?.arrayValue, 'values').map((item) =>
      isJsonObject(item) && typeof item.stringValue === 'string' ? item.stringValue : '',
    );
  }
}
