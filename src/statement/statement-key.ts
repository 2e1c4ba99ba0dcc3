import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from 'node:crypto';
import { isObject } from '#base/parsed';
import type { Statement, StatementBody } from './statement-schema.ts';

const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;

/** A key that statements are signed with, or its public part alone. */
export interface StatementKey {
  /** 32 bytes in base64. */
  readonly publicKey: string;
  /** Null: it can only verify. */
  readonly sign: ((message: Uint8Array) => Uint8Array) | null;
}

/** Makes a key: Ed25519, as PKCS #8 in PEM. It is secret. */
export function createStatementKey(): { readonly pem: string; readonly publicKey: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  return {
    pem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKey: toRaw(publicKey).toString('base64'),
  };
}

/** Reads a key: PEM, or the public key in base64. Null: it is no Ed25519 key. */
export function readStatementKey(text: string): StatementKey | null {
  const trimmed = text.trim();
  if (!trimmed.startsWith('-----')) {
    const raw = fromBase64(trimmed, KEY_BYTES);
    return raw === null ? null : { publicKey: raw.toString('base64'), sign: null };
  }
  try {
    if (!trimmed.includes('PRIVATE KEY')) return toVerifying(createPublicKey(trimmed));
    const key = createPrivateKey(trimmed);
    const verifying = toVerifying(createPublicKey(key));
    return verifying && { ...verifying, sign: (message) => sign(null, message, key) };
  } catch {
    // What OpenSSL says may quote it.
    return null;
  }
}

/** Signs a statement. */
export function signStatement(body: StatementBody, key: StatementKey): Statement {
  if (key.sign === null) throw new TypeError('a public key cannot sign');
  const signed = { ...body, public_key: key.publicKey };
  return { ...signed, signature: Buffer.from(key.sign(toCanonicalJson(signed))).toString('base64') };
}

/** Whether a statement, as it was parsed, is signed with the key that it names. */
export function hasValidSignature({ signature, ...signed }: Readonly<Record<string, unknown>>): boolean {
  const x = fromBase64(signed.public_key, KEY_BYTES);
  const bytes = fromBase64(signature, SIGNATURE_BYTES);
  if (x === null || bytes === null) return false;
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: x.toString('base64url') };
  return verify(null, toCanonicalJson(signed), createPublicKey({ key: jwk, format: 'jwk' }), bytes);
}

function toVerifying(key: KeyObject): StatementKey | null {
  if (key.asymmetricKeyType !== 'ed25519') return null;
  return { publicKey: toRaw(key).toString('base64'), sign: null };
}

function toRaw(publicKey: KeyObject): Buffer {
  return Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
}

/** Null: it is not the one text that stands for so many bytes. */
function fromBase64(text: unknown, length: number): Buffer | null {
  if (typeof text !== 'string') return null;
  const bytes = Buffer.from(text, 'base64');
  return bytes.length === length && bytes.toString('base64') === text ? bytes : null;
}

/**
 * The canonical form of JSON without fractions, as bytes: members by name, no white space, and every character that is not
 * printable ASCII as `\uXXXX`. It is what Python prints with `json.dumps(value, sort_keys=True, separators=(",", ":"))`.
 */
export function toCanonicalJson(value: unknown): Buffer {
  const text = JSON.stringify(value, (_, member: unknown) => (isObject(member) ? sorted(member) : member));
  return Buffer.from(text.replace(/[\u007f-\uffff]/g, toEscape), 'latin1');
}

/** The names are ASCII. JSON.stringify puts names that are numbers first: a statement has none. */
function sorted(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
