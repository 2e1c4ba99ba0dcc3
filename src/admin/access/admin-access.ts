import { createHash, timingSafeEqual } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { AdminToken } from '#config/secrets';
import type { Caller } from './caller.ts';
import { SignIns } from './sign-ins.ts';

/** A token that nobody has. `digest` is of the token. */
export interface WrongToken {
  readonly digest: string;
}

/** Whose token a call has, or why it has none that counts. */
export type Access = Caller | WrongToken | 'missing' | 'admin_disabled';

/** Finds out whose bearer token a call has: one of the configuration, or one that a link stands for. The tokens can change while calls are handled. */
export class AdminAccess {
  readonly signIns = new SignIns();
  #known: readonly KnownToken[];

  constructor(tokens: readonly AdminToken[]) {
    this.#known = tokens.map(toKnownToken);
  }

  /** Replaces the tokens. Calls that were allowed continue. A token that stays keeps its caller, the same object. */
  configure(tokens: readonly AdminToken[]): void {
    const before = this.#known;
    this.#known = tokens.map(toKnownToken).map((next) => before.find((each) => isSame(each, next)) ?? next);
    this.signIns.keepOf(this.#known.map(({ caller }) => caller));
  }

  /**
   * Checks `Authorization: Bearer <token>`. Without any token every call is rejected. It compares digests of equal
   * length with every token, so its duration depends neither on where tokens differ nor on which one matches.
   */
  identify(authorization: string | undefined): Access {
    if (this.#known.length === 0) return 'admin_disabled';
    const given = /^Bearer +(.+)$/i.exec(authorization ?? '')?.[1];
    if (given === undefined) return 'missing';
    const digest = toDigest(given);
    const matches = this.#known.filter((known) => timingSafeEqual(digest, known.digest));
    const text = digest.toString('base64');
    return matches[0]?.caller ?? this.signIns.find(text) ?? { digest: text };
  }
}

interface KnownToken {
  readonly caller: Caller;
  readonly digest: Buffer;
}

function isSame(a: KnownToken, b: KnownToken): boolean {
  return a.digest.equals(b.digest) && isDeepStrictEqual(a.caller, b.caller);
}

function toKnownToken({ token, ...caller }: AdminToken): KnownToken {
  return { caller, digest: toDigest(token) };
}

function toDigest(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}
