import { createHash, randomBytes } from 'node:crypto';
import type { Caller } from './caller.ts';

/** How long a link may be opened. */
const LINK_LIFETIME_MS = 10 * 60_000;
/** How long the page that it opened may call. */
const SESSION_LIFETIME_MS = 12 * 3_600_000;
/** Of each token, at most so many of each kind: the oldest gives way, so that no token can take the places of another. */
const MAX_PER_TOKEN = 32;

/** A secret that stands for a token, and until when. */
export interface IssuedSecret {
  readonly secret: string;
  readonly untilMs: number;
}

/** What is kept of a secret: never the secret itself, but its digest, as the key of a map. */
interface Entry {
  readonly caller: Caller;
  /** The caller of the token that it was made with. It ends with that token. */
  readonly owner: Caller;
  /** By the time of day, which may be set back. */
  readonly untilEpochMs: number;
  /** By the monotonic clock, which stands still while the machine sleeps. */
  readonly untilMs: number;
}

/**
 * Links that sign in once, and the sessions that they open. Both live in the memory of this process alone. A link has a
 * code that is good for one call, `POST /admin/sign-in`, once; a session has a token with the role of the one that made
 * the link. Secrets are 256 random bits, so that they can be looked up by digest: how long that takes tells nothing.
 */
export class SignIns {
  readonly #entries = new Map<string, Entry>();
  readonly #epochMs: () => number;
  readonly #nowMs: () => number;

  constructor(epochMs: () => number = Date.now, nowMs: () => number = () => performance.now()) {
    this.#epochMs = epochMs;
    this.#nowMs = nowMs;
  }

  /** Whose secret has this digest; null: nobody's, or it has ended. */
  find(digest: string): Caller | null {
    const entry = this.#entries.get(digest);
    if (entry === undefined) return null;
    if (!this.#isOver(entry)) return entry.caller;
    this.#entries.delete(digest);
    return null;
  }

  /** Makes the code of a link that signs in as `owner`, the caller of a token. */
  createLink(owner: Caller): IssuedSecret {
    return this.#issue('link', owner, LINK_LIFETIME_MS);
  }

  /** Takes the link of this caller, whom `find` returned, and opens a session. Null if the link was taken meanwhile. */
  open(link: Caller): IssuedSecret | null {
    const found = this.#entries.entries().find(([, { caller }]) => caller === link);
    if (found === undefined || link.via !== 'link') return null;
    const [digest, { owner }] = found;
    this.#entries.delete(digest);
    return this.#issue('session', owner, SESSION_LIFETIME_MS);
  }

  /** Ends what was made with tokens that are gone. */
  keepOf(owners: readonly Caller[]): void {
    for (const [digest, { owner }] of this.#entries) {
      if (!owners.includes(owner)) this.#entries.delete(digest);
    }
  }

  #issue(via: 'link' | 'session', owner: Caller, lifetimeMs: number): IssuedSecret {
    const alike: string[] = [];
    for (const [digest, entry] of this.#entries) {
      if (this.#isOver(entry)) this.#entries.delete(digest);
      else if (entry.owner === owner && entry.caller.via === via) alike.push(digest);
    }
    for (const digest of alike.slice(0, Math.max(0, alike.length + 1 - MAX_PER_TOKEN))) {
      this.#entries.delete(digest);
    }
    const secret = randomBytes(32).toString('base64url');
    const untilEpochMs = this.#epochMs() + lifetimeMs;
    const ends = { untilEpochMs, untilMs: this.#nowMs() + lifetimeMs };
    this.#entries.set(toDigestText(secret), { caller: { ...owner, via }, owner, ...ends });
    return { secret, untilMs: untilEpochMs };
  }

  #isOver({ untilEpochMs, untilMs }: Entry): boolean {
    return untilEpochMs <= this.#epochMs() || untilMs <= this.#nowMs();
  }
}

function toDigestText(secret: string): string {
  return createHash('sha256').update(secret, 'utf8').digest('base64');
}
