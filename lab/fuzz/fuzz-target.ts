import type { Random } from '../fuzz-http/random.ts';

/** What a reader gets: bytes, the offsets at which its reads end, and which of its forms reads them. */
export interface FuzzInput {
  readonly bytes: Buffer;
  /** Rising, between 0 and the length. Empty: one read. */
  readonly cuts: readonly number[];
  /** From 0 to the target's `variants` − 1. */
  readonly variant: number;
}

/** A reader, and what tells whether it reads rightly. */
export interface FuzzTarget {
  readonly name: string;
  /** What is read, for the document. */
  readonly reads: string;
  /** What must hold, for the document. */
  readonly oracle: string;
  /** How many forms of the reader there are. */
  readonly variants: number;
  /** How many inputs CI gives it. */
  readonly ciInputs: number;
  generate(random: Random, variant: number): Buffer;
  /**
   * Reads the input. Returns whether it was accepted: read, at least in part, as what the generator meant. Whatever it
   * throws is a finding.
   */
  check(input: FuzzInput): boolean | Promise<boolean>;
  /** Reads the input as the gateway does, and compares nothing. Returns all that is kept of it. */
  read(input: FuzzInput): unknown;
}

/** The pieces of an input, each a copy, so that a reader that keeps a view of one is found out. */
export function piecesOf({ bytes, cuts }: Pick<FuzzInput, 'bytes' | 'cuts'>): Buffer[] {
  const edges = [0, ...cuts, bytes.length];
  return edges.slice(1).map((edge, index) => Buffer.from(bytes.subarray(edges[index], edge)));
}

/** Pieces as a reader of streams gets them. */
export async function* streamOf(pieces: readonly Buffer[]): AsyncGenerator<Buffer> {
  yield* pieces;
}

/** Something that does not hold. */
class Difference extends Error {
  override readonly name = 'Difference';
}

/** Throws a Difference if two values, as JSON, are not the same. */
export function mustEqual(what: string, found: unknown, expected: unknown): void {
  const [one, other] = [toText(found), toText(expected)];
  if (one !== other) throw new Difference(`${what}: ${shorten(one)} instead of ${shorten(other)}`);
}

/** Throws a Difference if a condition does not hold. */
export function must(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Difference(what);
}

/** JSON that tells -0, undefined, maps and bytes apart. */
function toText(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => {
    if (Object.is(each, -0)) return '-0';
    if (each === undefined) return 'undefined';
    if (typeof each === 'bigint' || (typeof each === 'number' && !Number.isFinite(each))) return `${each}`;
    return each instanceof Map ? [...each] : each;
  });
}

const SHOWN_CHARS = 400;

function shorten(text: string): string {
  return text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text;
}
