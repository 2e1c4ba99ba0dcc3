/*
 * Values of JSON as OTLP has them.
 *
 * It never knows a span, a metric or a record.
 */

/** An object of parsed JSON. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a value of parsed JSON is an object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The list that is a member of an object; empty if there is none. */
export function listOf(value: unknown, member: string): readonly unknown[] {
  const list = isJsonObject(value) ? value[member] : undefined;
  return Array.isArray(list) ? list : [];
}

/** The value of a JSON text; undefined if it is none. V8's error would quote the text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * The int of an AnyValue in JSON, where an int64 is a number, or a text as protobuf prints it. Other texts, such as ` 7`
 * and `0x7`, are ints for JavaScript and not for other readers.
 */
export function readJsonInt({ intValue }: JsonObject): number | undefined {
  const number = typeof intValue === 'string' ? Number(intValue) : intValue;
  if (typeof number !== 'number' || !Number.isSafeInteger(number)) return undefined;
  return typeof intValue === 'number' || String(number) === intValue ? number : undefined;
}
