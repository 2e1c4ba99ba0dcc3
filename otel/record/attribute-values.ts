import type { Attributes } from '@opentelemetry/api';

/** Longer strings are cut. The record's names are at most 256; this limit is for everything else. */
export const MAX_STRING_CHARS = 1024;
/** Longer lists are cut. The configuration allows no more prefix hashes than this. */
const MAX_ITEMS = 4096;
/** Longer keys of an engine are cut. */
export const MAX_KEY_CHARS = 64;
/** The most timings in a record. An engine reports about a dozen, and each is an attribute. */
export const MAX_TIMINGS = 32;

const DOT = 0x2e;

// A value that makes a Collector refuse the whole batch is left out or cut: NaN, infinities, integers beyond 2^53, lone
// surrogates, unlimited strings and lists.

/** Whether a value is a string. */
export const isText = (value: unknown): value is string => typeof value === 'string';

/** Whether a value is an integer that every reader takes as it is. */
export const isInt = (value: unknown): value is number => Number.isSafeInteger(value);

/** Whether a value is a finite number. */
export const isDouble = (value: unknown): value is number => Number.isFinite(value);

/** Whether a value is a boolean. */
export const isBool = (value: unknown): value is boolean => typeof value === 'boolean';

/** Whether a value is a list of strings. */
export const isTexts = (value: unknown): value is string[] => Array.isArray(value) && value.every(isText);

/** A text of at most MAX_STRING_CHARS UTF-16 units, with U+FFFD in place of lone surrogates. */
export function toText(text: string): string {
  return (text.length > MAX_STRING_CHARS ? text.slice(0, MAX_STRING_CHARS) : text).toWellFormed();
}

/** A list of at most MAX_ITEMS such texts: the same one if it is one. */
export function toTexts(texts: readonly string[]): string[] {
  if (texts.length <= MAX_ITEMS && texts.every(isWhole)) return texts as string[];
  return texts.slice(0, MAX_ITEMS).map(toText);
}

const isWhole = (text: string): boolean => text.length <= MAX_STRING_CHARS && text.isWellFormed();

/** Sets one attribute for each number. */
export function setDoubles(attributes: Attributes, prefix: string, numbers: object | undefined): void {
  for (const [key, number] of Object.entries(numbers ?? {}).slice(0, MAX_TIMINGS)) {
    if (isDouble(number)) attributes[prefix + key.slice(0, MAX_KEY_CHARS).toWellFormed()] = number;
  }
}

/** The numbers of the attributes whose names begin so, by the rest of their names; undefined if there is none. */
export function readDoubles(attributes: Attributes, prefix: string): Record<string, number> | undefined {
  let numbers: Record<string, number> | undefined;
  const dot = prefix.length - 1;
  for (const name in attributes) {
    // Hardly any other name has a dot there. To compare all of each name takes as long as to read a record.
    if (name.charCodeAt(dot) !== DOT || !name.startsWith(prefix)) continue;
    const number = attributes[name];
    // A computed key defines a member even if an engine's key is `__proto__`.
    if (isDouble(number)) numbers = { ...numbers, [name.slice(prefix.length)]: number };
  }
  return numbers;
}
