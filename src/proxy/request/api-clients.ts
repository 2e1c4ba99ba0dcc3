import { hash } from 'node:crypto';
import type { CountedLimits } from '../../client-limits/admission.ts';
import type { Fields } from '../../http/fields.ts';

/** A client that the configuration names: what is recorded of it, and what it may use. */
export interface ApiClient {
  readonly name: string;
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

/** A client with the SHA-256 digests of its keys: hexadecimal, in lower case. */
export interface ApiClientEntry extends ApiClient {
  readonly keyDigests: readonly string[];
}

/**
 * The clients that may send requests, found by the digest of the key that they present. The time of a look-up tells
 * nothing about a key, because an attacker cannot choose digests.
 */
export class ApiClients {
  readonly #byDigest = new Map<string, ApiClient>();

  constructor(entries: readonly ApiClientEntry[]) {
    for (const entry of entries) {
      for (const digest of entry.keyDigests) this.#byDigest.set(digest, entry);
    }
  }

  /** The client whose key a request presents, in `Authorization: Bearer` or `x-api-key`; null: none that is valid. */
  identify(fields: Fields): ApiClient | null {
    const key = keyOf(fields);
    if (key === undefined) return null;
    const client = this.#byDigest.get(hash('sha256', Buffer.from(key, 'latin1'), 'hex'));
    if (client === undefined) return null;
    const { expiresAtMs } = client;
    return expiresAtMs !== null && expiresAtMs <= Date.now() ? null : client;
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
