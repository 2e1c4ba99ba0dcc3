import { hash } from 'node:crypto';
import type { ResponseReader } from './response-reader.ts';

/** The first 64 bits of a SHA-256, as two words. */
type Digest = readonly [number, number];

/** A response that an engine keeps, and the replica it is on. */
export interface StoredResponse {
  /** The first 128 bits of the SHA-256 of its id, as four words. */
  readonly digest: readonly [number, number, number, number];
  /** `Replica.seed` of its replica: the same in every thread and gateway. */
  readonly seed: number;
  /** Of the name of the model that made it. */
  readonly model: Digest;
  /** Of what the client called the model: that name, or an alias. */
  readonly calledAs: Digest;
  /**
   * Of its id and the tenant of its client: without the id, which nobody can guess, it says nothing of the tenant.
   * `NOBODY`: the gateway asked for no key.
   */
  readonly owner: Digest;
}

/** The owner of a response that was made without a key. */
const NOBODY: Digest = [0, 0];

/** How a response was made. */
export interface ResponseOrigin {
  /** `Replica.seed` of its replica. */
  readonly seed: number;
  readonly model: string;
  /** What the client called the model; default: `model`. */
  readonly calledAs?: string;
  /** The tenant of the client; default: nobody's, because the gateway asked for no key. */
  readonly tenant?: string | null;
}

/** The response with this id, in digests. */
export function toStoredResponse(
  id: string,
  { seed, model, calledAs, tenant }: ResponseOrigin,
): StoredResponse {
  const modelDigest = digestOf(model);
  return {
    digest: idDigestOf(id),
    seed,
    model: modelDigest,
    calledAs: calledAs === undefined || calledAs === model ? modelDigest : digestOf(calledAs),
    owner: tenant === undefined || tenant === null ? NOBODY : ownerOf(id, tenant),
  };
}

/** The digest that a response with this id is found by. */
export function idDigestOf(id: string): StoredResponse['digest'] {
  const bytes = hash('sha256', id, 'buffer');
  return [bytes.readInt32BE(0), bytes.readInt32BE(4), bytes.readInt32BE(8), bytes.readInt32BE(12)];
}

const WORD_CHARS = 8;
/** The characters of a printed response: its words, in hexadecimal. */
export const PRINTED_CHARS = 11 * WORD_CHARS;

/** Prints a response for other gateways and for files. */
export function printResponse({ digest, seed, model, calledAs, owner }: StoredResponse): string {
  const words = [...digest, seed, ...model, ...calledAs, ...owner];
  return words.map((word) => (word >>> 0).toString(16).padStart(WORD_CHARS, '0')).join('');
}

/** Parses a printed response: `PRINTED_CHARS` digits from `start` on. */
export function parseResponse(text: string, start: number): StoredResponse {
  const wordAt = (index: number) => {
    const at = start + index * WORD_CHARS;
    return Number.parseInt(text.slice(at, at + WORD_CHARS), 16) | 0;
  };
  return {
    digest: [wordAt(0), wordAt(1), wordAt(2), wordAt(3)],
    seed: wordAt(4),
    model: [wordAt(5), wordAt(6)],
    calledAs: [wordAt(7), wordAt(8)],
    owner: [wordAt(9), wordAt(10)],
  };
}

/** Whether the response with this id is the reader's: its tenant made it, with a model that its key may use. */
export function mayRead(response: StoredResponse, id: string, { tenant, models }: ResponseReader): boolean {
  if (!isSame(response.owner, ownerOf(id, tenant))) return false;
  return models === null || models.some((model) => isMadeBy(response, model));
}

/** Whether the model with this name made a response. */
export function isMadeBy({ model }: StoredResponse, name: string): boolean {
  return isSame(model, digestOf(name));
}

/** Whether the client called the model that made a response by this name. */
export function isCalledAs({ calledAs }: StoredResponse, name: string): boolean {
  return isSame(calledAs, digestOf(name));
}

/** Whether two digests are the same. */
export function isSame([first, second]: Digest, [otherFirst, otherSecond]: Digest): boolean {
  return first === otherFirst && second === otherSecond;
}

function ownerOf(id: string, tenant: string): Digest {
  return digestOf(`${id}\n${tenant}`);
}

function digestOf(text: string): Digest {
  const bytes = hash('sha256', text, 'buffer');
  return [bytes.readInt32BE(0), bytes.readInt32BE(4)];
}
