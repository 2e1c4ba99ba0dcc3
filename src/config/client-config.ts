import type { ApiClientSection } from './schema/clients.ts';
import type { ConfigFile } from './schema.ts';

/** Converts the keys of an entry. The digests are in lower case. */
export function toApiClient(section: ApiClientSection) {
  const { name, key_sha256, tenant, feature, models, expires } = section;
  return {
    name,
    keyDigests: [key_sha256].flat().map((digest) => digest.toLowerCase()),
    tenant: tenant ?? name,
    feature: feature ?? null,
    models: models ?? null,
    expiresAtMs: expires === undefined ? null : Date.parse(expires),
    limits: toClientLimits(section),
  };
}

type LimitsSection = Pick<ApiClientSection, 'max_inflight' | 'requests_per_minute' | 'tokens_per_minute'>;

/** Converts the keys of `jwt`. `jwks`: a URL, or an absolute path. */
export function toJwtConfig(section: NonNullable<ConfigFile['jwt']>) {
  const { issuer, audience, jwks, algorithms, tenant_claim, feature_claim, models_claim, client_claim } =
    section;
  return {
    issuer,
    audiences: [audience].flat(),
    ...{ jwks, algorithms },
    tenantClaim: tenant_claim,
    featureClaim: feature_claim ?? null,
    modelsClaim: models_claim ?? null,
    clientClaim: client_claim ?? null,
    /** Of each tenant. */
    limits: toClientLimits(section),
  };
}

/** Null: the client has no limits; a limit that is null: it does not have this one. */
function toClientLimits({ max_inflight, requests_per_minute, tokens_per_minute }: LimitsSection) {
  const limits = {
    maxInflight: max_inflight ?? null,
    requestsPerMinute: requests_per_minute ?? null,
    tokensPerMinute: tokens_per_minute ?? null,
  };
  return Object.values(limits).every((limit) => limit === null) ? null : limits;
}

/**
 * Converts the keys of `tenant_limits`. `limits`: null for a tenant without limits. `rest`: those of each tenant that
 * is not among them.
 */
export function toTenantLimits({ default: rest, ...named }: NonNullable<ConfigFile['tenant_limits']>) {
  return {
    named: Object.entries(named).map(([tenant, row]) => ({ tenant, limits: toClientLimits(row) })),
    rest: rest === undefined ? null : toClientLimits(rest),
  };
}
