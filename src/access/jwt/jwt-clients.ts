import { waitAtMost } from '#otel/base';
import type { JwtKeys, PublicJwk } from './jwks.ts';
import type { JwtFacts, JwtRefusal, JwtRules, JwtVerifier } from './verify-jwt.ts';

/** Three parts in base64url. An unsigned token has an empty last one. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** Tokens with long lists of groups have a few thousand characters. */
const MAX_TOKEN_CHARS = 16 * 1024;

/** How many verified tokens are remembered per thread: some 300 bytes each. */
const MAX_KNOWN = 10_000;

/** How long a token with an unknown key waits for the keys to be read again. A reading takes 5 s at most. */
const REFRESH_WAIT_MS = 6_000;

/** Until then further unknown keys are refused without asking: the control plane has a cool-down of its own. */
const ASK_AGAIN_MS = 1_000;

/** The client of a token, or the code with which it is refused: there are no keys, or what it uses cannot be counted. */
export type JwtAnswer<T> = T | 'invalid_api_key' | 'keys_unavailable' | 'limits_unavailable';

export interface JwtClientsCollaborators<T> {
  /** Makes the client of a valid token; null: not at the moment. Never rejects. */
  readonly toClient: (facts: JwtFacts) => T | Promise<T | null>;
  /** How long what it has made may be used. */
  readonly clientMs: number;
  /** Has the keys read again. They arrive by `useKeys` before this resolves. Never rejects. */
  readonly refreshKeys: () => Promise<void>;
  /** Creates what verifies tokens with these keys. */
  readonly createVerifier: (rules: JwtRules, keys: readonly PublicJwk[]) => JwtVerifier;
  readonly onRefused: (reason: JwtRefusal | 'too_long' | 'no_keys') => void;
}

interface Known<T> {
  readonly client: T;
  /** When the token ends: milliseconds since 1970. */
  readonly expiresAtMs: number;
  /** When the client has to be made again: monotonic milliseconds. */
  readonly untilMs: number;
}

/** The clients that present tokens. One that is verified is remembered by its digest for some time. */
export class JwtClients<T> {
  readonly rules: JwtRules;
  readonly #collaborators: JwtClientsCollaborators<T>;
  /** Null: there are no keys yet. */
  #verify: JwtVerifier | null = null;
  #known = new Map<string, Known<T>>();
  /** The verifications under way, by the digests of their tokens. */
  readonly #pending = new Map<string, Promise<JwtAnswer<T>>>();
  #refreshing: Promise<unknown> | null = null;
  #askableMs = Number.NEGATIVE_INFINITY;

  constructor(rules: JwtRules, collaborators: JwtClientsCollaborators<T>) {
    this.rules = rules;
    this.#collaborators = collaborators;
  }

  /** Verifies with these keys from now on, also tokens that were verified with others. */
  useKeys({ keys }: JwtKeys): void {
    this.#verify = keys === null ? null : this.#collaborators.createVerifier(this.rules, keys);
    this.#known = new Map();
  }

  /** The client of a token. Resolves within a few seconds; never rejects. */
  identify(token: string, digest: string): JwtAnswer<T> | Promise<JwtAnswer<T>> {
    const known = this.#known.get(digest);
    if (known !== undefined) {
      if (known.expiresAtMs > Date.now() && known.untilMs > performance.now()) return known.client;
      this.#known.delete(digest);
    }
    if (token.length > MAX_TOKEN_CHARS) return this.#refuse('too_long');
    if (!JWT.test(token)) return this.#refuse('malformed');
    return this.#pending.get(digest) ?? this.#begin(token, digest);
  }

  #begin(token: string, digest: string): Promise<JwtAnswer<T>> {
    const verifying = this.#identify(token, digest).finally(() => this.#pending.delete(digest));
    this.#pending.set(digest, verifying);
    return verifying;
  }

  async #identify(token: string, digest: string, mayRefresh = true): Promise<JwtAnswer<T>> {
    const verify = this.#verify;
    // The map that belongs to these keys: when there are others, nobody reads it any more.
    const known = this.#known;
    if (verify === null) {
      this.#collaborators.onRefused('no_keys');
      return 'keys_unavailable';
    }
    const verdict = await verify(token);
    if (verdict === 'unknown_key' && mayRefresh && (await this.#hasNewKeys(verify))) {
      return await this.#identify(token, digest, false);
    }
    if (typeof verdict === 'string') return this.#refuse(verdict);
    const untilMs = performance.now() + this.#collaborators.clientMs;
    const client = await this.#collaborators.toClient(verdict);
    if (client === null) return 'limits_unavailable';
    if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value ?? '');
    known.set(digest, { client, expiresAtMs: verdict.expiresAtMs, untilMs });
    return client;
  }

  /** Has the keys read again. Returns whether there are others than those of this verifier. */
  async #hasNewKeys(before: JwtVerifier): Promise<boolean> {
    if (this.#refreshing === null && performance.now() >= this.#askableMs) {
      this.#refreshing = waitAtMost(REFRESH_WAIT_MS, this.#collaborators.refreshKeys()).finally(() => {
        this.#refreshing = null;
        this.#askableMs = performance.now() + ASK_AGAIN_MS;
      });
    }
    await this.#refreshing;
    return this.#verify !== before;
  }

  #refuse(reason: JwtRefusal | 'too_long'): 'invalid_api_key' {
    this.#collaborators.onRefused(reason);
    return 'invalid_api_key';
  }
}
