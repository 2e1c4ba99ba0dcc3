import { Refusal } from './failure.ts';

/** A JSON object whose members are still to be looked at. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** Whether a JSON value is an object: no array, no null. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The body as a JSON object. Throws Refusal `invalid_json`. */
export function parseJsonObject(body: Buffer): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch {
    throw new Refusal({ code: 'invalid_json' });
  }
  if (!isJsonObject(value)) throw new Refusal({ code: 'invalid_json' });
  return value;
}

/** An integer member within bounds, or null where it is absent or null. Throws Refusal `wrong_value`. */
export function integerMember(body: JsonObject, field: string, least: number, most: number): number | null {
  const value = body[field] ?? null;
  if (value === null) return null;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most) return value;
  throw new Refusal({ code: 'wrong_value', field, expected: `an integer from ${least} to ${most}` });
}
