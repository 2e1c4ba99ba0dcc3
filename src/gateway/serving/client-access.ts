import { isDeepStrictEqual } from 'node:util';
import { createJwtVerifier, JwtClients, type JwtKeys } from '#access/jwt';
import { limitsOf, ROW_KNOWN_MS, type TenantKind, TenantLimits } from '#access/limits';
import { atMostOncePerMinute } from '#base';
import type { Config } from '#config';
import type { Log } from '#otel/base';
import { type ApiClient, type ApiClientEntry, ApiClients } from '#proxy/entry';
import type { ControlCalls } from './calls.ts';

export interface ClientAccessCollaborators {
  readonly control: Pick<ControlCalls, 'refreshKeys' | 'limitRowOf'>;
  readonly log: Log<'info'>;
}

/** Who may send requests, of one data plane: clients with keys, and those with tokens. */
export class ClientAccess {
  readonly #collaborators: ClientAccessCollaborators;
  #entries: readonly ApiClientEntry[] | null;
  #jwtClients: JwtClients<ApiClient> | null = null;
  /** The last keys of each source: those of the next configuration come before it. */
  readonly #keys = new Map<string, JwtKeys>();
  #apiClients: ApiClients | null = null;
  readonly #tenantLimits: TenantLimits;
  #hasTenantLimits = false;
  readonly #onRefused: (reason: string) => void;

  constructor(
    {
      config,
      clients,
      jwtKeys,
    }: { config: Config; clients: readonly ApiClientEntry[] | null; jwtKeys: JwtKeys | null },
    collaborators: ClientAccessCollaborators,
  ) {
    this.#collaborators = collaborators;
    this.#onRefused = createRefusalLog(collaborators.log);
    this.#tenantLimits = new TenantLimits((tenant) => this.#limitRowOf('tenant', tenant));
    this.#useTenantLimits(config);
    this.#entries = clients;
    if (jwtKeys !== null) this.#keys.set(jwtKeys.source, jwtKeys);
    this.#combine(config.jwt);
  }

  /** Null: everyone may send requests. */
  get apiClients(): ApiClients | null {
    return this.#apiClients;
  }

  /** Null: tenants have no limits. */
  get tenantLimits(): TenantLimits | null {
    return this.#hasTenantLimits ? this.#tenantLimits : null;
  }

  /**
   * Applies the rules for tokens, and the limits of tenants, of another configuration. Tokens that were verified stay
   * so if nothing changes.
   */
  configure(config: Config): void {
    const { jwt } = config;
    this.#useTenantLimits(config);
    if (!isDeepStrictEqual(jwt, this.#jwtClients?.rules ?? null)) this.#combine(jwt);
  }

  useClients(clients: readonly ApiClientEntry[] | null): void {
    this.#entries = clients;
    this.#apiClients = this.#toApiClients();
  }

  useJwtKeys(keys: JwtKeys): void {
    this.#keys.set(keys.source, keys);
    if (this.#jwtClients?.rules.jwks === keys.source) this.#jwtClients.useKeys(keys);
  }

  #useTenantLimits({ tenantLimits }: Config): void {
    this.#hasTenantLimits = tenantLimits !== null;
    if (tenantLimits !== null) this.#tenantLimits.configure(tenantLimits);
  }

  #combine(rules: Config['jwt']): void {
    this.#jwtClients = rules === null ? null : this.#createJwtClients(rules);
    for (const source of this.#keys.keys()) if (source !== rules?.jwks) this.#keys.delete(source);
    this.#apiClients = this.#toApiClients();
  }

  #toApiClients(): ApiClients | null {
    if (this.#entries === null && this.#jwtClients === null) return null;
    return new ApiClients(this.#entries ?? [], this.#jwtClients);
  }

  /** Null, too, if the control plane does not answer. */
  #limitRowOf(kind: TenantKind, tenant: string): Promise<number | null> {
    return this.#collaborators.control.limitRowOf(kind, tenant).catch(() => null);
  }

  #createJwtClients(rules: NonNullable<Config['jwt']>): JwtClients<ApiClient> {
    const { control } = this.#collaborators;
    const limits = limitsOf(rules);
    const limitRowOf = (tenant: string) => this.#limitRowOf('jwt', tenant);
    const clients = new JwtClients<ApiClient>(rules, {
      async toClient({ client: name, ...facts }) {
        if (limits === null) return { name, ...facts, limits };
        const row = await limitRowOf(facts.tenant);
        return row === null ? null : { name, ...facts, limits: { ...limits, owner: 'tenant', row } };
      },
      clientMs: ROW_KNOWN_MS,
      // Without an answer the keys stay as they are.
      refreshKeys: () => control.refreshKeys().catch(() => undefined),
      createVerifier: createJwtVerifier,
      onRefused: this.#onRefused,
    });
    const keys = this.#keys.get(rules.jwks);
    if (keys !== undefined) clients.useKeys(keys);
    return clients;
  }
}

/** Logs at most once per minute how many tokens were refused since the last line, by the reasons. */
function createRefusalLog(log: ClientAccessCollaborators['log']): (reason: string) => void {
  let counts: Record<string, number> = {};
  const write = atMostOncePerMinute(() => {
    log.info({ reasons: counts }, 'JWTs refused; logged at most once per minute');
    counts = {};
  });
  return (reason) => {
    counts[reason] = (counts[reason] ?? 0) + 1;
    write();
  };
}
