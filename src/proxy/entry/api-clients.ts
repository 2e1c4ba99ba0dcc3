import { hash } from 'node:crypto';
import type { JwtAnswer, JwtClients } from '#access/jwt';
import type { CountedLimits } from '#access/limits';
import type { Fields } from '#wire/message';

/** A client that the configuration or a token names: what is recorded of it, and what it may use. */
export interface ApiClient {
  /** Null: its token does not say it. */
  readonly name: string | null;
  /** Recorded instead of what the client's own header says, unless a trusted proxy has set that. */
  readonly tenant: string;
  /** Null: the client's own header says it. */
  readonly feature: string | null;
  /** The names of the models that it may use; null: all. */
  readonly models: readonly string[] | null;
  /** When its keys end: milliseconds since 1970; null: never. */
  readonly expiresAtMs: number | null;
  /** Null: it may use as much as it likes. */
  readonly limits: CountedLimits | null;
}

/** Why a request is refused because of its key or token. */
export type ClientRefusal = JwtAnswer<never>;

/** A client with the SHA-256 digests of its keys: hexadecimal, in lower case. */
export interface ApiClientEntry extends ApiClient {
  readonly keySha256: readonly string[];
}

/**
 * The clients that may send requests, found by the digest of the key or token that they present. The time of a look-up
 * tells nothing about a key, because an attacker cannot choose digests.
 */
export class ApiClients {
  readonly #byDigest = new Map<string, ApiClient>();
  readonly #jwtClients: JwtClients<ApiClient> | null;

  /** @param jwtClients those with a token; null: tokens are not accepted */
  constructor(entries: readonly ApiClientEntry[], jwtClients: JwtClients<ApiClient> | null) {
    this.#jwtClients = jwtClients;
    for (const entry of entries) {
      for (const digest of entry.keySha256) this.#byDigest.set(digest, entry);
    }
  }

  /**
   * The client whose key or token a request presents, in `Authorization: Bearer` or `x-api-key`. A promise for a token
   * that this thread does not know yet: it resolves within a few seconds, and never rejects.
   */
  identify(fields: Fields): ApiClient | ClientRefusal | Promise<ApiClient | ClientRefusal> {
    const key = keyOf(fields);
    if (key === undefined) return 'invalid_api_key';
    const digest = hash('sha256', Buffer.from(key, 'latin1'), 'hex');
    const client = this.#byDigest.get(digest);
    if (client === undefined) return this.#identifyToken(key, digest);
    const { expiresAtMs } = client;
    return expiresAtMs !== null && expiresAtMs <= Date.now() ? 'invalid_api_key' : client;
  }

  #identifyToken(token: string, digest: string): ReturnType<ApiClients['identify']> {
    if (this.#jwtClients === null) return 'invalid_api_key';
    return this.#jwtClients.identify(token, digest);
  }
}

/** Whether a client may use a model. */
export function mayUse({ models }: ApiClient, model: string): boolean {
  return models === null || models.includes(model);
}

/** The scheme is not case-sensitive (RFC 9110 11.1). */
const BEARER = /^bearer +(\S+) *$/i;

function keyOf(fields: Fields): string | undefined {
  const authorization = fields.get('authorization');
  return (
    (authorization === undefined ? undefined : BEARER.exec(authorization)?.[1]) ?? fields.get('x-api-key')
  );
}
