/*
 * Who may send what: API keys, tokens of issuers, certificates, and the limits of clients and tenants, which
 * all threads count together.
 *
 * It never knows replicas, requests or records.
 * Begin with limits/admission.ts for limits, jwt/jwt-clients.ts for tokens, certificates/certificate-watcher.ts
 * for certificates.
 */

export { type Certificates, createCertificateReader } from './certificates/certificate-files.ts';
export { CertificateWatcher } from './certificates/certificate-watcher.ts';
export { findExpiring } from './certificates/expiry.ts';
export { ClientsWatcher } from './clients/clients-watcher.ts';
export { type ClientList, readClients } from './clients/read-clients.ts';
export type { JwtKeys } from './jwt/jwks.ts';
export { JwksSource } from './jwt/jwks-source.ts';
export { type JwtAnswer, JwtClients } from './jwt/jwt-clients.ts';
export { isRemote, JwksError, readJwks, requireJwks, toShownSource } from './jwt/read-jwks.ts';
export { createJwtVerifier } from './jwt/verify-jwt.ts';
export {
  type Admission,
  ClientLimiter,
  type CountedLimits,
  type LimitKind,
  type LimitRefusal,
  limitsOf,
} from './limits/admission.ts';
export {
  allocateClientLimits,
  type ClientLimitMemory,
  ClientLimitTable,
  ROW_KNOWN_MS,
} from './limits/client-limit-table.ts';
export { LimitRows, type TenantKind } from './limits/limit-rows.ts';
export { idleShareOf, splitInflight } from './limits/split-inflight.ts';
export { type TenantAnswer, TenantLimits } from './limits/tenant-limits.ts';
