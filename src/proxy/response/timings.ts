import { MAX_TIMINGS } from '#otel/encode/record-bounds.ts';
import type { JsonCursor } from '../../json/cursor.ts';

const TIMING_NAME = /^[A-Za-z0-9_.]{1,64}$/;

/** Reads the numbers of an engine's own object. Names are checked: nothing else of it may reach a record. */
export function readTimings(json: JsonCursor): Record<string, number> {
  const timings = new Map<string, number>();
  json.beginObject();
  while (json.nextKey()) {
    const name = json.key();
    if (json.peek() !== 'number') {
      json.skip();
      continue;
    }
    const value = json.readNumber();
    const isKept = timings.has(name) || timings.size < MAX_TIMINGS;
    if (Number.isFinite(value) && TIMING_NAME.test(name) && isKept) timings.set(name, value);
  }
  // Unlike an assignment, this makes a member of an engine's `__proto__` too.
  return Object.fromEntries(timings);
}
