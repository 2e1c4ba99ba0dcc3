import { MAX_TIMINGS } from '#otel/encode/record-bounds.ts';
import type { JsonCursor } from '../../../json/cursor.ts';
import type { UsageFigures } from '../../response/usage-tally.ts';

/** How an API spells the figures of its usage object. */
export interface UsageNames {
  readonly counts: ReadonlyMap<string, keyof UsageFigures>;
  /** The objects in it that have further figures. */
  readonly details: ReadonlySet<string>;
}

/** The figures in the details; the last two are vLLM's. */
const DETAILS: ReadonlyMap<string, keyof UsageFigures> = new Map([
  ['cached_tokens', 'cachedTokens'],
  ['reasoning_tokens', 'reasoningTokens'],
  ['created_cache_tokens', 'cacheCreationTokens'],
  ['cache_write_tokens', 'cacheCreationTokens'],
]);

/** Reads a usage object. Figures are non-negative integers, or seconds; anything else says nothing. */
export function readUsage(json: JsonCursor, { counts, details }: UsageNames): UsageFigures {
  const figures: UsageFigures = {};
  json.beginObject();
  while (json.nextKey()) {
    const key = json.key();
    const name = counts.get(key);
    if (name !== undefined) setCount(figures, name, json);
    else if (details.has(key) && json.peek() === 'object') readDetails(json, figures);
    else json.skip();
  }
  return figures;
}

function readDetails(json: JsonCursor, figures: UsageFigures): void {
  json.beginObject();
  while (json.nextKey()) {
    const name = DETAILS.get(json.key());
    if (name === undefined) json.skip();
    else setCount(figures, name, json);
  }
}

function setCount(figures: UsageFigures, name: keyof UsageFigures, json: JsonCursor): void {
  if (json.peek() !== 'number') {
    json.skip();
    return;
  }
  const value = json.readNumber();
  const isFigure = name === 'audioSeconds' ? Number.isFinite(value) : Number.isSafeInteger(value);
  if (isFigure && value >= 0) figures[name] = value;
}

const TIMING_NAME = /^[A-Za-z0-9_.]{1,64}$/;

/** Reads the numbers of an engine's own object. Names are checked, since they reach the record. */
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
  // Unlike an assignment, this turns a key `__proto__` into a plain member.
  return Object.fromEntries(timings);
}
