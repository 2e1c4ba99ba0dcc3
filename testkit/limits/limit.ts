import type { World } from './world.ts';

/**
 * Where the value of a limit is: a key of the configuration, which may have the value of another by default, or a constant
 * in a file.
 */
export type Source =
  | { readonly key: string; readonly defaultKey?: string }
  | { readonly file: string; readonly constant: string };

/** Sends something of a size to a gateway, or gives it to the code that has the limit, and tells what came of it. */
export interface Probe {
  /** The value that the probe tries; by default that of the source. */
  readonly limit?: number;
  /** What came, in one line; the same line for the same outcome. */
  readonly send: (size: number, world: World) => Promise<string>;
  /** What must come at the limit, and with one more. */
  readonly at: string;
  readonly past: string;
}

/** Tests elsewhere that try the limit and one more. */
export interface NamedTest {
  readonly test: string;
  readonly name: string;
}

/** One limit of the product. */
export interface Limit {
  /** What is limited, as a user would call it. */
  readonly what: string;
  readonly source: Source;
  /** How the value is shown; by default by the end of its name: bytes, characters, milliseconds, a number. */
  readonly unit?: 'bytes' | 'characters' | 'ns' | 'ms' | 's' | 'number';
  /** What happens past it. */
  readonly past: string;
  readonly proof: Probe | NamedTest;
}

/** Limits of one part of the gateway. */
export interface LimitGroup {
  readonly group: string;
  readonly limits: readonly Limit[];
}

/** How the source is written in the documents and in the house test. */
export function toSourceName(source: Source): string {
  return 'key' in source ? source.key : `${source.file}#${source.constant}`;
}

/** A constant in a file. */
export const inFile = (file: string, constant: string): Source => ({ file, constant });

/** A key of the configuration. `defaultKey`: the one whose value it has unless it is set. */
export const inKey = (key: string, defaultKey?: string): Source =>
  defaultKey === undefined ? { key } : { key, defaultKey };

/** A test elsewhere. */
export const testedBy = (test: string, name: string): NamedTest => ({ test, name });
