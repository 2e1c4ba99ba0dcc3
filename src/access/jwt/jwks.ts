import { isObject, parseJson } from '#base/parsed';

/** A public key in the form of RFC 7517, without members that no verification reads. Plain data. */
export type PublicJwk = Readonly<Record<string, string | readonly string[]>>;

/** The keys of one source, as they were last read; null: they could not be read yet. */
export interface JwtKeys {
  /** The value of `jwt.jwks` that they came from. */
  readonly source: string;
  readonly keys: readonly PublicJwk[] | null;
}

/** What a key set holds. */
export interface ParsedJwks {
  readonly keys: readonly PublicJwk[];
  /** How many of its keys no token can be verified with: symmetric ones, those for encryption, broken ones. */
  readonly ignoredCount: number;
}

/** More keys than any issuer has at one time. */
const MAX_KEYS = 100;

/** An RSA key of 8,192 bits takes a millisecond per token, and a longer one much more. */
const MAX_MODULUS_CHARS = Math.ceil(8192 / 6);
/** 65537, which all have, takes four. */
const MAX_EXPONENT_CHARS = 8;

/** The members of a public key by its type (RFC 7518 6, RFC 8037 2). Those of a private key are never kept. */
const MEMBERS: ReadonlyMap<unknown, readonly string[]> = new Map([
  ['RSA', ['n', 'e']],
  ['EC', ['crv', 'x', 'y']],
  ['OKP', ['crv', 'x']],
]);

/** Parses a JSON Web Key Set (RFC 7517). Null if the text is not one, or has too many keys. */
export function parseJwks(text: string): ParsedJwks | null {
  const value = parseJson(text);
  if (!isObject(value) || !Array.isArray(value.keys) || value.keys.length > MAX_KEYS) return null;
  const given: readonly unknown[] = value.keys;
  const keys = given.map(toPublicJwk).filter((key) => key !== null);
  return { keys, ignoredCount: given.length - keys.length };
}

function toPublicJwk(value: unknown): PublicJwk | null {
  if (!isObject(value)) return null;
  const members = MEMBERS.get(value.kty);
  const { use, key_ops } = value;
  if (members === undefined || (use !== undefined && use !== 'sig')) return null;
  if (key_ops !== undefined && !(Array.isArray(key_ops) && key_ops.includes('verify'))) return null;
  const given = ['kty', ...members].map((name) => [name, value[name]] as const);
  const optional = ['kid', 'alg'].filter((name) => value[name] !== undefined);
  const all = [...given, ...optional.map((name) => [name, value[name]] as const)];
  if (!all.every(([, member]) => typeof member === 'string')) return null;
  const isLong =
    String(value.n ?? '').length > MAX_MODULUS_CHARS || String(value.e ?? '').length > MAX_EXPONENT_CHARS;
  return isLong ? null : Object.fromEntries(all as [string, string][]);
}
