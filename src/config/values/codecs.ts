import { z } from 'zod';
import { orVariable, refuse, type TextFormat, textOf } from './text-codec.ts';
import { DURATION_PATTERN, parseDuration, parseSize, printDuration, printSize } from './values.ts';

const MAX_DURATION_MS = 24 * 3_600_000; // timers allow 2^31 − 1 ms; no setting needs more than a day
const MAX_SIZE_BYTES = 1024 ** 4;

/** `[min, max]` is the range of a plain number. */
function textOrNumberOf<T>(
  { title, pattern, parse, print }: TextFormat<T, string | number>,
  [min, max]: readonly [min: number, max: number],
) {
  const text = z.string().meta({ pattern: orVariable(pattern) });
  const number = z.int().min(min, { error: title }).max(max, { error: title });
  const given = z.union([number, text], { error: title }).meta({ title });
  return z.codec(given, z.custom<T>(), {
    decode: (value, context) => parse(String(value)) ?? refuse(context, value, title),
    encode: print,
  });
}

const within = (value: number | null, min: number, max: number) =>
  value === null || value < min || value > max ? null : value;

/** `500ms`, `10s`, `1h30m`; decodes to milliseconds. */
export function duration({ minMs = 1 } = {}) {
  return textOf({
    title: `a duration from ${printDuration(minMs)} to 24h, such as 500ms, 10s, 15m or 1h30m`,
    pattern: DURATION_PATTERN,
    parse: (text) => within(parseDuration(text), minMs, MAX_DURATION_MS),
    print: printDuration,
  });
}

/** `32MiB`, `10MB` or plain bytes; decodes to bytes. */
export function size({ minBytes = 1 } = {}) {
  return textOrNumberOf(
    {
      title: `a size from ${printSize(minBytes)} to 1024GiB, such as 512KiB, 32MiB, 10MB or plain bytes`,
      pattern: '[\\d.]+(?:B|KiB|MiB|GiB|kB|KB|MB|GB)?',
      parse: (text) => within(parseSize(text), minBytes, MAX_SIZE_BYTES),
      print: printSize,
    },
    [minBytes, MAX_SIZE_BYTES],
  );
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

/** `5%`, a whole number of per cent; decodes to a share, 0.05. */
export function percent(min: number, max: number) {
  return textOf({
    title: `a whole number of per cent from ${min}% to ${max}%`,
    pattern: '\\d+%',
    parse(text) {
      const value = text.endsWith('%') ? within(parseWholeNumber(text.slice(0, -1)), min, max) : null;
      return value === null ? null : value / 100;
    },
    print: (share) => `${Math.round(share * 100)}%`,
  });
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

const API_KEY = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const WITH_SCHEME = /^(?:authorization\s*:\s*)?bearer\s/i;

/** The key of a replica, without the `Bearer` that the gateway writes before it. */
export function apiKey() {
  const title = 'a key of printable ASCII characters';
  return text(title, API_KEY)
    .refine((given) => !WITH_SCHEME.test(given), {
      error: 'the key alone: the gateway writes Bearer before it',
    })
    .refine((given) => !/^\$\w+$/.test(given), {
      error: 'a key; around the name of a variable, braces are missing',
    });
}

/** One of a few words. */
export function oneOf<const T extends string>(words: readonly [T, ...T[]]) {
  const title = words.length === 1 ? words[0] : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
  return z.enum(words, { error: title }).meta({ title });
}
