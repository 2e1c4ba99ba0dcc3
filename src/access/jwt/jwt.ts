/*
 * Tokens of an issuer (JWT) as API keys: its public keys, which are read again, and what a token that they verify says.
 *
 * It never knows what a client may do.
 * Begin with jwt-clients.ts, then verify-jwt.ts; jwks-source.ts has the keys.
 */

export type { JwtKeys } from './jwks.ts';
export { JwksSource } from './jwks-source.ts';
export { type JwtAnswer, JwtClients } from './jwt-clients.ts';
export { isRemote, JwksError, readJwks, requireJwks, toShownSource } from './read-jwks.ts';
export { createJwtVerifier } from './verify-jwt.ts';
