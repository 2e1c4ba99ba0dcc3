import { createHash, timingSafeEqual } from 'node:crypto';
import type { AdminTokens } from '../config/secrets.ts';
import type { AdminErrorCode } from './admin-error.ts';

/** What a call may do: anything, only read, or nothing, with the code of the error. */
export type Access = 'change' | 'read' | Extract<AdminErrorCode, 'unauthorized' | 'admin_disabled'>;

/** Decides what the bearer token of a call allows. The tokens can change while calls are handled. */
export class AdminAccess {
  #digests: TokenDigests;

  constructor(tokens: AdminTokens) {
    this.#digests = toDigests(tokens);
  }

  /** Replaces the tokens. Calls that were allowed continue. */
  configure(tokens: AdminTokens): void {
    this.#digests = toDigests(tokens);
  }

  /**
   * Checks `Authorization: Bearer <token>`. Without any token every call is rejected. It compares digests of equal
   * length with every token, so its duration depends neither on where tokens differ nor on which one matches.
   */
  decide(authorization: string | undefined): Access {
    const { admin, read } = this.#digests;
    if (admin === null && read === null) return 'admin_disabled';
    const given = /^Bearer +(.+)$/i.exec(authorization ?? '')?.[1];
    if (given === undefined) return 'unauthorized';
    const digest = toDigest(given);
    const isAdmin = admin !== null && timingSafeEqual(digest, admin);
    const isReader = read !== null && timingSafeEqual(digest, read);
    if (isAdmin) return 'change';
    return isReader ? 'read' : 'unauthorized';
  }
}

interface TokenDigests {
  readonly admin: Buffer | null;
  readonly read: Buffer | null;
}

/** An empty token is no token. */
function toDigests({ adminToken, readToken }: AdminTokens): TokenDigests {
  return {
    admin: adminToken === null || adminToken === '' ? null : toDigest(adminToken),
    read: readToken === null || readToken === '' ? null : toDigest(readToken),
  };
}

function toDigest(token: string): Buffer {
  return createHash('sha256').update(token, 'utf8').digest();
}
