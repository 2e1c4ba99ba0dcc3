import { z } from 'zod';

/*
 * The types of value in the configuration file, as zod codecs: decoding reads the file, encoding prints the configuration
 * in effect. The `title` of a codec says what is expected, in error messages and in the "value" column of the reference.
 * Patterns accept `${VARIABLE}` for editors; the loader expands it before decoding.
 */

/** A kind of text in the configuration file: how it is described, read and printed. */
export interface TextFormat<T, P extends string | number> {
  readonly title: string;
  readonly pattern: string;
  /** Null if the text does not have this format. */
  readonly parse: (text: string) => T | null;
  readonly print: (value: T) => P;
  /** What is wrong with a text, if that can be said without quoting it. */
  readonly explain?: (text: string) => string | null;
}

/** A pattern for editors, which also lets `${VARIABLE}` pass. */
export const orVariable = (pattern: string) => `^(?:${pattern}|.*\\$\\{.+)$`;

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
export function refuse(context: z.core.ParsePayload, input: unknown, title: string): never {
  context.issues.push({ code: 'custom', message: title, input });
  return z.NEVER;
}
