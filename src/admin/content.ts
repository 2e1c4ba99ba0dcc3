import type { z } from 'zod';

/** The bytes of an answer. An iterable is sent piece by piece, for as long as it lasts: an event stream. */
export type Body = string | Uint8Array | AsyncIterable<string | Uint8Array>;

/** What the body of a route's answers is: its media type, its schema, and how a value becomes bytes. */
export interface Content<T> {
  readonly mediaType: string;
  /** Null for what is no JSON. */
  readonly schema: z.ZodType | null;
  readonly encode: (value: T) => Body;
}

/** JSON of this shape. The compiler holds handlers to it, tests every answer; nothing is checked at run time. */
export function json<S extends z.ZodType>(schema: S): Content<z.output<S>> {
  return { mediaType: 'application/json', schema, encode: toJsonBody };
}

/** Bytes of another media type, which the handler makes itself. */
export function bytes(mediaType: string): Content<Body> {
  return { mediaType, schema: null, encode: (body) => body };
}

/** JSON with an end of line, for whoever reads it in a terminal. */
function toJsonBody(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
