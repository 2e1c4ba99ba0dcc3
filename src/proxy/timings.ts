import { MAX_TIMINGS } from '#otel/record-bounds.ts';
import type { JsonCursor } from '../json/cursor.ts';

const TIMING_NAME = /^[A-Za-z0-9_.]{1,64}$/;

/** Reads the numbers of an engine's own object. Names are checked: nothing else of it may reach a record. */
export function readTimings(json: JsonCursor): Record<string, number> {
  // An engine's key may be `__proto__`.
  const timings: Record<string, number> = Object.create(null);
  let count = 0;
  json.beginObject();
  while (json.nextKey()) {
    const name = json.key();
    if (json.peek() !== 'number') {
      json.skip();
      continue;
    }
    const value = json.readNumber();
    if (Number.isFinite(value) && TIMING_NAME.test(name) && count++ < MAX_TIMINGS) timings[name] = value;
  }
  return timings;
}
