import type { JsonCursor } from '#json';
import { MAX_TIMINGS } from '#otel/record';
import type { UsageFigures } from '../../response/usage-tally.ts';

/** How an API spells the figures of its usage object. */
export interface UsageNames {
  readonly counts: ReadonlyMap<string, keyof UsageFigures>;
  /** The objects in it that have further figures. */
  readonly details: ReadonlySet<string>;
}

type FigureNames = ReadonlyMap<string, keyof UsageFigures>;

/** The figures in the details of a prompt; those of the cache's tokens that were written are vLLM's, images SGLang's. */
const PROMPT_DETAILS: FigureNames = new Map([
  ['cached_tokens', 'cachedTokens'],
  ['created_cache_tokens', 'cacheCreationTokens'],
  ['cache_write_tokens', 'cacheCreationTokens'],
  ['audio_tokens', 'promptAudioTokens'],
  ['image_tokens', 'promptImageTokens'],
]);

/** vLLM's `multimodal_tokens` in the details of a prompt (vllm/entrypoints/serve/engine/protocol.py). */
const MODALITIES: FigureNames = new Map([
  ['audio', 'promptAudioTokens'],
  ['image', 'promptImageTokens'],
]);

/** The figures in the details of a completion. */
const COMPLETION_DETAILS: FigureNames = new Map([
  ['reasoning_tokens', 'reasoningTokens'],
  ['audio_tokens', 'completionAudioTokens'],
]);

const IS_OF_PROMPT = /^(?:prompt|input)_/;

/** Reads a usage object. Figures are non-negative integers, or seconds; anything else says nothing. */
export function readUsage(json: JsonCursor, { counts, details }: UsageNames): UsageFigures {
  const figures: UsageFigures = {};
  json.beginObject();
  while (json.nextKey()) {
    const key = json.key();
    const name = counts.get(key);
    if (name !== undefined) setCount(figures, name, json);
    else if (details.has(key) && json.peek() === 'object') {
      readDetails(json, IS_OF_PROMPT.test(key) ? PROMPT_DETAILS : COMPLETION_DETAILS, figures);
    } else json.skip();
  }
  return figures;
}

function readDetails(json: JsonCursor, names: FigureNames, figures: UsageFigures): void {
  json.beginObject();
  while (json.nextKey()) {
    const key = json.key();
    const name = names.get(key);
    if (name !== undefined) setCount(figures, name, json);
    else if (names === PROMPT_DETAILS && key === 'multimodal_tokens' && json.peek() === 'object') {
      readDetails(json, MODALITIES, figures);
    } else json.skip();
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

/** The object in vLLM's `metrics` that has numbers, too (vllm-project/vllm#48915). */
const TIMING_GROUP = 'speculative_decoding';

/**
 * The list in it that is recorded, by position: how many steps accepted no draft token, one, two. Its list of every single
 * step has no bound.
 */
const TIMING_LIST = 'acceptance_histogram';

/**
 * Reads the numbers of an engine's own object, and those of speculative decoding in it:
 * `speculative_decoding.num_draft_tokens`. Names are checked, since they reach the record.
 */
export function readTimings(json: JsonCursor): Record<string, number> {
  const timings = new Map<string, number>();
  readNumbersOf(json, timings, '');
  // Unlike an assignment, this turns a key `__proto__` into a plain member.
  return Object.fromEntries(timings);
}

function readNumbersOf(json: JsonCursor, timings: Map<string, number>, prefix: string): void {
  json.beginObject();
  while (json.nextKey()) {
    const key = json.key();
    const name = prefix + key;
    const kind = json.peek();
    if (kind === 'number') setTiming(timings, name, json.readNumber());
    else if (kind === 'object' && name === TIMING_GROUP) readNumbersOf(json, timings, `${TIMING_GROUP}.`);
    else if (kind === 'array' && name === `${TIMING_GROUP}.${TIMING_LIST}`)
      readTimingList(json, timings, name);
    else json.skip();
  }
}

function readTimingList(json: JsonCursor, timings: Map<string, number>, name: string): void {
  json.beginArray();
  for (let position = 0; json.nextElement(); position++) {
    if (json.peek() === 'number') setTiming(timings, `${name}.${position}`, json.readNumber());
    else json.skip();
  }
}

function setTiming(timings: Map<string, number>, name: string, value: number): void {
  const isKept = timings.has(name) || timings.size < MAX_TIMINGS;
  if (Number.isFinite(value) && isKept && TIMING_NAME.test(name)) timings.set(name, value);
}
