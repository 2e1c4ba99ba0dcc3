import { hash } from 'node:crypto';
import { StartError } from '#base';
import type { Config } from '#config';
import { toShownName } from '#otel/base';
import { type ClientLimits, type CountedLimits, limitsOf } from './admission.ts';
import { toCostNs, toRemaining, WINDOW_NS } from './budget.ts';
import { type BudgetKind, type ClientLimitTable, type LimitKey, ROW_KNOWN_MS } from './client-limit-table.ts';
import { RowNumbers } from './row-numbers.ts';

/** What a client has used. */
interface Used {
  readonly requests: number;
  readonly tokens: number;
}

/**
 * Which limits of a tenant: those of `jwt`, over its tokens, or those of `tenant_limits`, over all its clients. The names
 * of rows begin with it and a colon, which no client has in its name.
 */
export type TenantKind = 'jwt' | 'tenant';

/** The settings with the limits that tenants have: `jwt` of each tenant, over its tokens. */
export interface TenantLimitSettings {
  readonly jwt: ClientLimits | null;
  readonly tenantLimits: Config['tenantLimits'];
}

/** Requests that a limit has refused. */
export interface Refusals {
  /** The name of the row. */
  readonly name: string;
  readonly owner: CountedLimits['owner'];
  /** The name of the client, or what the tenant is called: the beginning of what a client may have sent. */
  readonly of: string;
  readonly limit: LimitKey;
  readonly count: number;
}

/** How much of a limit is used. */
export interface LimitUse {
  readonly used: number;
  readonly allowed: number;
  /** The part of it that this gateway may use. */
  readonly share: number;
  /** Where requests in flight hold places in it; null: it is none that they hold places in. */
  readonly row: number | null;
}

const LIMIT_KEYS = [
  'max_inflight',
  'requests_per_minute',
  'tokens_per_minute',
] as const satisfies readonly LimitKey[];

/** How much of the name of a tenant is kept to be shown. */
const SHOWN_CHARS = 128;

/** Tenants beyond this many of a kind share one row, but for those that `tenant_limits` names. */
const MAX_TENANTS = 65_536;

/**
 * The row of a tenant for which nobody has asked in this time is free if nothing is in flight and its budgets are full: no
 * data plane uses it any more. A request takes seconds at most from the moment at which it has a row to its admission.
 */
const IDLE_MS = 3 * ROW_KNOWN_MS;

/** Who finds no row looks for idle tenants, but not more often. */
const SWEEP_MS = 10_000;

interface LimitRowsOptions {
  readonly rowCount?: number;
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
}

type ConfiguredClient = NonNullable<Config['clients']>[number];

/** A client with the row of its limits; null: it has none. */
export type CountedClient = Omit<ConfiguredClient, 'tenant' | keyof ClientLimits> & {
  readonly tenant: string;
  readonly limits: CountedLimits | null;
};

/**
 * Assigns rows in shared memory to the clients that have limits. A client keeps its row, and what it has used, as long
 * as its name is known: over a reload, and over one that removes it and one that brings it back.
 */
export class LimitRows {
  readonly #table: ClientLimitTable;
  readonly #nowMs: () => number;
  /** Those of former clients until somebody else needs the row. */
  readonly #rows: RowNumbers;
  /** The limits of the latest assignment, by the names of the clients. */
  #inEffect: ReadonlyMap<string, CountedLimits> = new Map();

  /** The limits of tenants, by names that no client has. Each keeps its row while it is asked for. */
  readonly #tenants = new Map<string, CountedLimits>();
  /** When each was asked for last, the longest ago first: monotonic milliseconds. */
  readonly #askedMs = new Map<string, number>();
  #sweepableMs = Number.NEGATIVE_INFINITY;
  readonly #tenantCounts: Record<TenantKind, number> = { jwt: 0, tenant: 0 };
  /** What the tenants are called, by the names of their rows. */
  readonly #calledTenants = new Map<string, string>();
  #seenRefusals = 0;
  /** The limits of tenants that have none of their own. */
  #commonLimits: Readonly<Record<TenantKind, ClientLimits>> = { jwt: NO_LIMITS, tenant: NO_LIMITS };
  #ownLimits: ReadonlyMap<string, ClientLimits> = new Map();

  constructor(table: ClientLimitTable, { rowCount, nowMs = () => performance.now() }: LimitRowsOptions = {}) {
    this.#table = table;
    this.#rows = new RowNumbers(table, rowCount);
    this.#nowMs = nowMs;
  }

  /** Has this told of the names whose use begins at nothing again. */
  onForgotten(listener: (name: string) => void): void {
    this.#rows.onFreed = listener;
  }

  /**
   * Assigns rows to these clients; every worker must have taken over the assignment before. Throws a StartError when
   * there are too many.
   */
  assign(clients: readonly ConfiguredClient[]): readonly CountedClient[] {
    const names = new Set(clients.flatMap((client) => (limitsOf(client) === null ? [] : client.name)));
    this.#freeRowsFor(names);
    const assigned = clients.map((client): CountedClient => {
      const { name, keySha256, tenant, feature, models, expiresAtMs } = client;
      const facts = { name, keySha256, tenant: tenant ?? name, feature, models, expiresAtMs };
      const limits = limitsOf(client);
      if (limits === null) return { ...facts, limits };
      const row = this.#rows.rowOf(name) ?? this.#rows.take(name);
      return { ...facts, limits: { ...limits, owner: 'client', row } };
    });
    this.#inEffect = new Map(
      assigned.flatMap(({ name, limits }) => (limits === null ? [] : [[name, limits] as const])),
    );
    return assigned;
  }

  /** Sets the limits of tenants. */
  configureTenants({ jwt, tenantLimits }: TenantLimitSettings): void {
    const { default: rest = NO_LIMITS, ...named } = tenantLimits ?? {};
    this.#commonLimits = { jwt: jwt ?? NO_LIMITS, tenant: rest };
    this.#ownLimits = new Map(
      Object.entries(named).map(([tenant, limits]) => [toTenantName('tenant', toShownName(tenant)), limits]),
    );
    for (const [name, { row }] of this.#tenants) this.#setTenant(name, row);
  }

  /** The row of a tenant; null if none is left. Data planes may use it for `ROW_KNOWN_MS`. */
  rowOfTenant(kind: TenantKind, tenant: string): number | null {
    const own = toTenantName(kind, tenant);
    if (!this.#tenants.has(own) && !this.#hasRoom(kind)) this.#freeIdleTenants();
    const isOther = this.#tenantCounts[kind] >= MAX_TENANTS && !this.#ownLimits.has(own);
    const name = isOther && !this.#tenants.has(own) ? `${kind}:_OTHER` : own;
    const row = this.#tenants.get(name)?.row ?? this.#addTenant(kind, name);
    if (row === null) return null;
    if (name === own && !this.#calledTenants.has(name))
      this.#calledTenants.set(name, tenant.slice(0, SHOWN_CHARS));
    // At the end: those that were asked for longest ago come first.
    this.#askedMs.delete(name);
    this.#askedMs.set(name, this.#nowMs());
    return row;
  }

  #hasRoom(kind: TenantKind): boolean {
    return this.#tenantCounts[kind] < MAX_TENANTS && this.#rows.restCount > 0;
  }

  #addTenant(kind: TenantKind, name: string): number | null {
    if (this.#rows.restCount === 0) return null;
    const row = this.#rows.take(name);
    this.#tenantCounts[kind] += 1;
    this.#setTenant(name, row);
    return row;
  }

  #freeIdleTenants(): void {
    const nowMs = this.#nowMs();
    if (nowMs < this.#sweepableMs) return;
    this.#sweepableMs = nowMs + SWEEP_MS;
    for (const [name, askedMs] of this.#askedMs) {
      if (nowMs - askedMs < IDLE_MS) break;
      const row = this.#tenants.get(name)?.row;
      if (row === undefined || !this.#table.isUnused(row)) continue;
      this.#tenants.delete(name);
      this.#askedMs.delete(name);
      this.#calledTenants.delete(name);
      this.#tenantCounts[kindOf(name)] -= 1;
      this.#rows.free(name);
    }
  }

  #setTenant(name: string, row: number): void {
    const limits = this.#ownLimits.get(name) ?? this.#commonLimits[kindOf(name)];
    this.#tenants.set(name, { ...limits, owner: 'tenant', row });
  }

  /**
   * What the clients in effect have used since the gateway started, by name: those whose use has changed since the last
   * call.
   */
  takeChanged(): ReadonlyMap<string, Used> {
    const used = new Map<string, Used>();
    for (const counted of [this.#inEffect, this.#tenants]) {
      for (const [name, { row }] of counted) {
        // The flag first: what changes after it sets it again.
        if (!this.#table.takeChanged(row)) continue;
        const requests = this.#table.usedOf('requests', row);
        used.set(name, { requests, tokens: this.#table.usedOf('tokens', row) });
      }
    }
    return used;
  }

  /** The clients with `max_inflight` that have requests in flight, or had some refused since the last call, by name. */
  takeInflight(): ReadonlyMap<string, { readonly inflight: number; readonly refused: number }> {
    const running = new Map<string, { readonly inflight: number; readonly refused: number }>();
    for (const counted of [this.#inEffect, this.#tenants]) {
      for (const [name, { row, maxInflight }] of counted) {
        if (maxInflight === null) continue;
        const [inflight, refused] = [this.#table.inflightOf(row), this.#table.takeRefused(row)];
        if (inflight > 0 || refused > 0) running.set(name, { inflight, refused });
      }
    }
    return running;
  }

  /** The limits in effect that have refused requests since the last call. */
  takeRefusals(): readonly Refusals[] {
    const { refusalCount } = this.#table;
    if (refusalCount === this.#seenRefusals) return [];
    this.#seenRefusals = refusalCount;
    const refusals: Refusals[] = [];
    for (const counted of [this.#inEffect, this.#tenants]) {
      for (const [name, { owner, row }] of counted) {
        const of = owner === 'client' ? name : (this.#calledTenants.get(name) ?? OTHER_TENANTS);
        for (const limit of LIMIT_KEYS) {
          const count = this.#table.takeRefusals(limit, row);
          if (count > 0) refusals.push({ name, owner, of, limit, count });
        }
      }
    }
    return refusals;
  }

  /** How much of a limit in effect is used now; null: there is none of this name and key. */
  useOf(name: string, limit: LimitKey): LimitUse | null {
    const limits = this.#limitsOf(name);
    if (limits === undefined) return null;
    const { row, maxInflight, requestsPerMinute, tokensPerMinute } = limits;
    if (limit === 'max_inflight') {
      if (maxInflight === null) return null;
      const share = this.#table.shareOf(row, maxInflight);
      return { used: this.#table.inflightOf(row), allowed: maxInflight, share, row };
    }
    const isRequests = limit === 'requests_per_minute';
    const allowed = isRequests ? requestsPerMinute : tokensPerMinute;
    if (allowed === null) return null;
    const fullInNs = this.#table.fullInNs(isRequests ? 'requests' : 'tokens', row);
    const used = allowed - toRemaining(fullInNs, allowed);
    return { used, allowed, share: allowed, row: null };
  }

  /** `max_inflight` of a client in effect; null: it has none, or there is no such client. */
  maxInflightOf(name: string): number | null {
    return this.#limitsOf(name)?.maxInflight ?? null;
  }

  /** Sets how many requests of a client, or of a former one, may be in flight on this gateway; null: the idle share. */
  setShare(name: string, share: number | null): void {
    const row = this.#rows.rowOf(name);
    if (row !== undefined) this.#table.setShare(row, share);
  }

  /** Sets how many gateways divide the limits, and the rank of this one. */
  divideBy(gatewayCount: number, rank: number): void {
    this.#table.divideBy(gatewayCount, rank);
  }

  #limitsOf(name: string): CountedLimits | undefined {
    return this.#inEffect.get(name) ?? this.#tenants.get(name);
  }

  /**
   * Charges a client in effect for what it has used elsewhere: at most one minute's worth at a time. What is negative is
   * given back.
   */
  charge(name: string, use: Used): void {
    const limits = this.#limitsOf(name);
    if (limits === undefined) return;
    this.#chargeOne('requests', limits.row, use.requests, limits.requestsPerMinute);
    this.#chargeOne('tokens', limits.row, use.tokens, limits.tokensPerMinute);
  }

  /** Whose use is counted in this row; null: nobody's. */
  nameOf(row: number): string | null {
    return this.#rows.nameOf(row);
  }

  /** Charges a client in effect for tokens that it has used here, whether its budget holds them or not; or gives them back. */
  useTokens(name: string, tokens: number): void {
    const limits = this.#limitsOf(name);
    if (limits === undefined || limits.tokensPerMinute === null || tokens === 0) return;
    const { row, tokensPerMinute: perMinute } = limits;
    const units = Math.min(Math.abs(tokens), perMinute);
    this.#table.charge('tokens', row, Math.sign(tokens) * toCostNs(units, perMinute));
    this.#table.addUsed('tokens', row, Math.sign(tokens) * units);
  }

  #chargeOne(kind: BudgetKind, row: number, units: number, perMinute: number | null): void {
    if (perMinute === null || units === 0) return;
    this.#table.charge(kind, row, Math.min(toCostNs(units, perMinute), WINDOW_NS));
  }

  /** Frees as many rows of former clients as these names need beyond those that are nobody's. */
  #freeRowsFor(names: ReadonlySet<string>): void {
    const newCount = [...names].filter((name) => this.#rows.rowOf(name) === undefined).length;
    const neededCount = newCount - this.#rows.restCount;
    if (neededCount <= 0) return;
    // Workers may still begin requests of the clients in effect.
    const isFree = ([name, row]: readonly [string, number]) =>
      !names.has(name) &&
      !this.#inEffect.has(name) &&
      !this.#tenants.has(name) &&
      this.#table.inflightOf(row) === 0;
    const former = [...this.#rows.entries].filter(isFree).slice(0, neededCount);
    if (former.length < neededCount) {
      throw new StartError(`clients: too many have limits, or had until now: more than ${this.#rows.count}`);
    }
    for (const [name] of former) this.#rows.free(name);
  }
}

/** What those beyond MAX_TENANTS are called. */
const OTHER_TENANTS = '_OTHER';

const NO_LIMITS: ClientLimits = { maxInflight: null, requestsPerMinute: null, tokensPerMinute: null };

function kindOf(name: string): TenantKind {
  return name.startsWith('jwt:') ? 'jwt' : 'tenant';
}

/** A digest: heartbeats have the name, and a tenant may be a long text. */
function toTenantName(kind: TenantKind, tenant: string): string {
  return `${kind}:${hash('sha256', tenant, 'base64url').slice(0, 22)}`;
}
