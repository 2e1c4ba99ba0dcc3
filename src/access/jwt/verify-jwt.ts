import { createLocalJWKSet, errors, type JWTPayload, jwtVerify } from 'jose';
import type { Config } from '#config';
import { toShownName } from '#otel/base';
import type { PublicJwk } from './jwks.ts';

/** Which tokens are valid, and which claims say what. */
export type JwtRules = NonNullable<Config['jwt']>;

/** What a valid token says. */
export interface JwtFacts {
  /** Null: the rules name no claim for it. */
  readonly client: string | null;
  readonly tenant: string;
  /** Null: the client's own header says it. */
  readonly feature: string | null;
  /** Null: all models. */
  readonly models: readonly string[] | null;
  /** Milliseconds since 1970. */
  readonly expiresAtMs: number;
}

/** Why a token is not valid. */
export type JwtRefusal =
  | 'malformed'
  | 'algorithm'
  | 'unknown_key'
  | 'ambiguous_key'
  | 'unusable_key'
  | 'signature'
  | 'expired'
  | 'not_yet_valid'
  | 'issuer'
  | 'audience'
  | 'claims';

/** Clocks of issuers and gateways differ by this much. */
const TOLERANCE_S = 30;

/** Verifies a token. Never rejects. */
export type JwtVerifier = (token: string) => Promise<JwtFacts | JwtRefusal>;

/** Creates the verifier for these keys: public ones, so that no token can be signed with what they contain. */
export function createJwtVerifier(rules: JwtRules, keys: readonly PublicJwk[]): JwtVerifier {
  const keyOf = createLocalJWKSet({ keys: keys.map(toMutable) });
  const options = {
    issuer: rules.issuer,
    audience: [...rules.audience],
    algorithms: [...rules.algorithms],
    clockTolerance: TOLERANCE_S,
    requiredClaims: ['exp'],
  };
  return async (token) => {
    try {
      const { payload } = await jwtVerify(token, keyOf, options);
      return toFacts(payload, rules);
    } catch (error) {
      return toRefusal(error);
    }
  };
}

function toMutable(key: PublicJwk) {
  const { kty = '', ...members } = key;
  return { kty: String(kty), ...members } as Parameters<typeof createLocalJWKSet>[0]['keys'][number];
}

/** By the codes of jose. Whatever else is thrown comes from a key that cannot be used. */
function toRefusal(error: unknown): JwtRefusal {
  if (!(error instanceof errors.JOSEError)) return 'unusable_key';
  if (error instanceof errors.JWTClaimValidationFailed) return REFUSALS_BY_CLAIM.get(error.claim) ?? 'claims';
  return REFUSALS_BY_CODE.get(error.code) ?? 'malformed';
}

const REFUSALS_BY_CODE: ReadonlyMap<string, JwtRefusal> = new Map([
  ['ERR_JWT_EXPIRED', 'expired'],
  ['ERR_JOSE_ALG_NOT_ALLOWED', 'algorithm'],
  ['ERR_JOSE_NOT_SUPPORTED', 'algorithm'],
  ['ERR_JWKS_NO_MATCHING_KEY', 'unknown_key'],
  ['ERR_JWKS_MULTIPLE_MATCHING_KEYS', 'ambiguous_key'],
  ['ERR_JWKS_INVALID', 'unusable_key'],
  ['ERR_JWK_INVALID', 'unusable_key'],
  ['ERR_JWS_SIGNATURE_VERIFICATION_FAILED', 'signature'],
]);

const REFUSALS_BY_CLAIM: ReadonlyMap<string, JwtRefusal> = new Map([
  ['iss', 'issuer'],
  ['aud', 'audience'],
  ['nbf', 'not_yet_valid'],
]);

function toFacts(payload: JWTPayload, rules: JwtRules): JwtFacts | JwtRefusal {
  const tenant = readText(payload, rules.tenantClaim);
  if (tenant === null || payload.exp === undefined) return 'claims';
  return {
    tenant,
    client: rules.clientClaim === null ? null : readText(payload, rules.clientClaim),
    feature: rules.featureClaim === null ? null : readText(payload, rules.featureClaim),
    models: rules.modelsClaim === null ? null : readModels(readClaim(payload, rules.modelsClaim)),
    expiresAtMs: (payload.exp + TOLERANCE_S) * 1000,
  };
}

const MAX_TEXT_CHARS = 256;

/** As records show it: limits count by that. Null if the claim is absent, or anything else than a text of a reasonable length. */
function readText(payload: JWTPayload, claim: string): string | null {
  const value = readClaim(payload, claim);
  const shown = typeof value === 'string' && value.length <= MAX_TEXT_CHARS ? toShownName(value) : '';
  return shown.trim() === '' ? null : shown;
}

/** A list, or a text with spaces between the names, as in `scope`. Without the claim no model is allowed; `*`: all. */
function readModels(value: unknown): readonly string[] | null {
  const names = typeof value === 'string' ? value.split(' ') : Array.isArray(value) ? value : [];
  const models = names.filter((name): name is string => typeof name === 'string' && name !== '');
  return models.includes('*') ? null : models;
}

/** A claim of this name; else, with dots in the name, one inside of others: `realm_access.tenant`. */
function readClaim(payload: object, claim: string): unknown {
  if (Object.hasOwn(payload, claim)) return payload[claim as keyof typeof payload];
  return claim.split('.').reduce<unknown>((value, step) => {
    const isInside = typeof value === 'object' && value !== null && Object.hasOwn(value, step);
    return isInside ? value[step as keyof typeof value] : undefined;
  }, payload);
}
