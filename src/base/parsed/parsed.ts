/*
 * JSON of others, once parsed: nothing is known of it but what each look finds.
 *
 * It never knows what the members mean.
 */

/** The value of a JSON text; undefined if it is none. V8's error quotes its input, so it goes no further. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Whether parsed JSON is an object. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A member of parsed JSON; undefined if it is no object, or has none of that name. */
export function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined;
}

/** A member of parsed JSON if it is a text; empty if not. */
export function textOf(value: unknown, key: string): string {
  const text = memberOf(value, key);
  return typeof text === 'string' ? text : '';
}

/** The items of a list that is a member of parsed JSON; none if there is no such list. */
export function itemsOf(value: unknown, key: string): readonly unknown[] {
  const listed = memberOf(value, key);
  return Array.isArray(listed) ? listed : [];
}
