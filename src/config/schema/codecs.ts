import { z } from 'zod';
import {
  DURATION_PATTERN,
  parseDuration,
  parsePeriod,
  parseSize,
  printDuration,
  printPeriod,
  printSize,
} from '#config/values';
import { facts, type In } from './keys.ts';

/*
 * The types of value in the configuration file, as zod codecs: decoding reads the file, encoding prints the configuration
 * in effect. The `title` of a codec says what is expected, in error messages and in the "value" column of the reference.
 * Patterns accept `${VARIABLE}` for editors; the loader expands it before decoding.
 */

/** A kind of text in the configuration file: how it is described, read and printed. */
interface TextFormat<T, P extends string | number> {
  readonly title: string;
  readonly pattern: string;
  /** Null if the text does not have this format. */
  readonly parse: (text: string) => T | null;
  readonly print: (value: T) => P;
  /** What is wrong with a text, if that can be said without quoting it. */
  readonly explain?: (text: string) => string | null;
}

/** A pattern for editors, which also lets `${VARIABLE}` pass. */
const orVariable = (pattern: string) => `^(?:${pattern}|.*\\$\\{.+)$`;

/** The codec of such a text. */
export function textOf<T>({ title, pattern, parse, print, explain = () => null }: TextFormat<T, string>) {
  const text = z.string({ error: title }).meta({ title, pattern: orVariable(pattern) });
  return z.codec(text, z.custom<T>(), {
    decode(given, context) {
      const value = parse(given);
      if (value !== null) return value;
      const explanation = explain(given);
      return refuse(context, given, explanation === null ? title : `${title}; ${explanation}`);
    },
    encode: print,
  });
}

/** Says what was expected instead. */
function refuse(context: z.core.ParsePayload, input: unknown, title: string): never {
  context.issues.push({ code: 'custom', message: title, input });
  return z.NEVER;
}

const MAX_DURATION_MS = 24 * 3_600_000; // timers allow 2^31 − 1 ms; no setting needs more than a day
const MAX_SIZE_BYTES = 1024 ** 4;

/** `[min, max]` is the range of a plain number, which is whole unless `number` says otherwise. */
function textOrNumberOf<T>(
  { title, pattern, parse, print }: TextFormat<T, string | number>,
  [min, max]: readonly [min: number, max: number],
  number: z.ZodNumber = z.int(),
) {
  const text = z.string().meta({ pattern: orVariable(pattern) });
  const inRange = number.min(min, { error: title }).max(max, { error: title });
  const given = z.union([inRange, text], { error: title }).meta({ title });
  return z.codec(given, z.custom<T>(), {
    decode: (value, context) => parse(String(value)) ?? refuse(context, value, title),
    encode: print,
  });
}

const within = (value: number | null, min: number, max: number) =>
  value === null || value < min || value > max ? null : value;

/** `500ms`, `10s`, `1h30m`; decodes to milliseconds. */
export function duration({ minMs = 1 } = {}) {
  return textOf<In<'Ms'>>({
    title: `a duration from ${printDuration(minMs)} to 24h, such as 500ms, 10s, 15m or 1h30m`,
    pattern: DURATION_PATTERN,
    parse: (text) => within(parseDuration(text), minMs, MAX_DURATION_MS),
    print: printDuration,
  }).register(facts, { unit: 'Ms' });
}

/**
 * `auto`, `off` or a duration; decodes to milliseconds, which are null for `off`. `false` means `off`: tools that write
 * YAML 1.1, such as helm, turn one into the other.
 */
export function durationOrAuto({ minMs = 1 } = {}) {
  const title = `auto, off, or a duration from ${printDuration(minMs)} to 24h, such as 500ms, 10s, 15m or 1h30m`;
  const text = z.string().meta({ pattern: orVariable(`auto|off|false|${DURATION_PATTERN}`) });
  const given = z.union([z.literal(false), text], { error: title }).meta({ title });
  return z
    .codec(given, z.custom<In<'Ms'> | 'auto' | null>(), {
      decode(value, context) {
        const word = String(value);
        if (word === 'auto') return word;
        if (word === 'off' || word === 'false') return null;
        return within(parseDuration(word), minMs, MAX_DURATION_MS) ?? refuse(context, value, title);
      },
      encode(value) {
        if (value === 'auto') return value;
        return value === null ? 'off' : printDuration(value);
      },
    })
    .register(facts, { unit: 'Ms' });
}

/** `35d`, or a duration; decodes to milliseconds. For what no timer waits for. */
export function period({ minMs, maxMs }: { readonly minMs: number; readonly maxMs: number }) {
  return textOf<In<'Ms'>>({
    title: `a time from ${printPeriod(minMs)} to ${printPeriod(maxMs)}, such as 12h or 35d`,
    pattern: `\\d+d|${DURATION_PATTERN}`,
    parse: (text) => within(parsePeriod(text), minMs, maxMs),
    print: printPeriod,
  }).register(facts, { unit: 'Ms' });
}

/** `32MiB`, `10MB` or plain bytes; decodes to bytes. */
export function size({ minBytes = 1 } = {}) {
  return textOrNumberOf<In<'Bytes'>>(
    {
      title: `a size from ${printSize(minBytes)} to 1024GiB, such as 512KiB, 32MiB, 10MB or plain bytes`,
      pattern: '[\\d.]+(?:B|KiB|MiB|GiB|kB|KB|MB|GB)?',
      parse: (text) => within(parseSize(text), minBytes, MAX_SIZE_BYTES),
      print: printSize,
    },
    [minBytes, MAX_SIZE_BYTES],
  ).register(facts, { unit: 'Bytes' });
}

/** A whole number, or digits as text, which an expanded variable yields. */
export function wholeNumber(min: number, max: number) {
  return textOrNumberOf(
    {
      title: `a whole number from ${min} to ${max}`,
      pattern: '\\d+',
      parse: (text) => within(parseWholeNumber(text), min, max),
      print: (value) => value,
    },
    [min, max],
  );
}

/** A number from 0 on, such as 2.49, or one as text, which an expanded variable yields. */
export function amount(max: number) {
  return textOrNumberOf(
    {
      title: `a number from 0 to ${max}, such as 2.49`,
      pattern: '\\d+(?:\\.\\d+)?',
      parse: (text) => within(/^\d{1,15}(?:\.\d{1,15})?$/.test(text) ? Number(text) : null, 0, max),
      print: (value) => value,
    },
    [0, max],
    z.number(),
  );
}

/** `5%`, a whole number of per cent; decodes to a share, 0.05. */
export function percent(min: number, max: number) {
  return textOf<In<'Share'>>({
    title: `a whole number of per cent from ${min}% to ${max}%`,
    pattern: '\\d+%',
    parse(text) {
      const value = text.endsWith('%') ? within(parseWholeNumber(text.slice(0, -1)), min, max) : null;
      return value === null ? null : value / 100;
    },
    print: (share) => `${Math.round(share * 100)}%`,
  }).register(facts, { unit: 'Share' });
}

/** A time as in RFC 3339; decodes to milliseconds since 1970. */
export function time() {
  const title = 'a time such as 2027-01-31T00:00:00Z';
  const text = z.iso.datetime({ offset: true, error: title }).meta({ title });
  return z
    .codec(text, z.custom<In<'AtMs'>>(), {
      decode: (given) => Date.parse(given),
      encode: (atMs) => new Date(atMs).toISOString().replace('.000Z', 'Z'),
    })
    .register(facts, { unit: 'AtMs' });
}

const RETRIED_STATUSES: ReadonlySet<number | null> = new Set([429, 500, 501, 502, 503, 504]);

/** A status with which a server says that another one could serve the request, or that it may work later. */
export function retriedStatus() {
  return textOrNumberOf(
    {
      title: '429, or a status from 500 to 504',
      pattern: '429|50[0-4]',
      parse(text) {
        const status = parseWholeNumber(text);
        return RETRIED_STATUSES.has(status) ? status : null;
      },
      print: (status) => status,
    },
    [429, 504],
  );
}

/** `auto`, or a whole number. */
export function wholeNumberOrAuto(min: number, max: number) {
  return textOrNumberOf<number | 'auto'>(
    {
      title: `auto, or a whole number from ${min} to ${max}`,
      pattern: 'auto|\\d+',
      parse: (text) => (text === 'auto' ? text : within(parseWholeNumber(text), min, max)),
      print: (value) => value,
    },
    [min, max],
  );
}

function parseWholeNumber(text: string): number | null {
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/** `true` or `false`, also as text, which an expanded variable yields. */
export function flag() {
  const title = 'true or false';
  const text = z.string().meta({ pattern: orVariable('true|false') });
  return z.codec(z.union([z.boolean(), text], { error: title }).meta({ title }), z.boolean(), {
    decode: (value, context) => {
      if (value === 'true' || value === true) return true;
      return value === 'false' || value === false ? false : refuse(context, value, title);
    },
    encode: (value) => value,
  });
}

/** `false` or `true`, also as text, or a text instead of `true`; decodes to a text, which is null for `false`. */
export function flagOrText({
  title,
  pattern,
  parse,
  meaningOfTrue,
}: Omit<TextFormat<string, string>, 'print' | 'explain'> & { readonly meaningOfTrue: string }) {
  const text = z.string().meta({ pattern: orVariable(`true|false|${pattern}`) });
  const given = z.union([z.boolean(), text], { error: title }).meta({ title });
  return z.codec(given, z.custom<string | null>(), {
    decode(value, context) {
      const word = String(value);
      if (word === 'false') return null;
      return (word === 'true' ? meaningOfTrue : parse(word)) ?? refuse(context, value, title);
    },
    encode: (value) => value ?? false,
  });
}

/** A text that matches a pattern. */
export function text(title: string, pattern: RegExp) {
  return z.string({ error: title }).regex(pattern, { error: title }).meta({ title });
}

/** One of a few words. */
export function oneOf<const T extends string>(words: readonly [T, ...T[]]) {
  const title = words.length === 1 ? words[0] : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
  return z.enum(words, { error: title }).meta({ title });
}

/** A list of such items: at least `min`, and with `isSet` different ones. */
export function listOf<T extends z.ZodType>(item: T, title: string, { min = 0, isSet = false } = {}) {
  const items = z.array(item, { error: title });
  const list = min === 0 ? items : items.min(min, { error: title });
  const isGood = (given: readonly unknown[]) => new Set(given).size === given.length;
  return (isSet ? list.refine(isGood, { error: title }) : list).meta({ title });
}

/** A list, or one item of it without brackets; decodes to a list. */
export function oneOrMore<T extends z.ZodType<string, string>>(
  item: () => T,
  title: string,
  listTitle = title,
) {
  const list = z.array(item(), { error: title }).min(1, { error: title });
  const given = z.union([item(), list], { error: title }).meta({ title: listTitle });
  return z.codec(given, z.custom<readonly string[]>(), {
    decode: (value) => [value].flat() as string[],
    encode: (values) => (values.length === 1 ? values[0] : [...values]) as never,
  });
}
