import type { Config } from '#config';
import { toShownName } from '#otel/base';
import { type ClientLimits, type CountedLimits, limitsOf } from './admission.ts';
import { ROW_KNOWN_MS } from './client-limit-table.ts';

/** How many tenants are remembered per thread: some 200 bytes each. */
const MAX_KNOWN = 65_536;

/** The limits of a tenant; null: it has none. A code: they cannot be counted at the moment. */
export type TenantAnswer = CountedLimits | null | 'limits_unavailable';

/** The limits of tenants, of one data plane. */
export class TenantLimits {
  readonly #askRow: (tenant: string) => Promise<number | null>;
  #named: ReadonlyMap<string, ClientLimits | null> = new Map();
  #rest: ClientLimits | null = null;
  /** The rows of tenants, and until when they are theirs in any case: monotonic milliseconds. */
  readonly #rows = new Map<string, { readonly row: number; readonly untilMs: number }>();
  readonly #nowMs: () => number;

  /** @param askRow the row where the use of a tenant is counted; null: there is none at the moment. Never rejects. */
  constructor(askRow: (tenant: string) => Promise<number | null>, nowMs = () => performance.now()) {
    this.#askRow = askRow;
    this.#nowMs = nowMs;
  }

  configure({ default: rest, ...named }: NonNullable<Config['tenantLimits']>): void {
    const entries = Object.entries(named);
    this.#named = new Map(entries.map(([tenant, limits]) => [toShownName(tenant), limitsOf(limits)]));
    this.#rest = rest === undefined ? null : limitsOf(rest);
    // A tenant that shared a row with others may have one of its own now.
    this.#rows.clear();
  }

  /**
   * The limits of a tenant, by the name that records have. A promise for one that this thread does not know yet; it never
   * rejects.
   */
  limitsOf(tenant: string): TenantAnswer | Promise<TenantAnswer> {
    const own = this.#named.get(tenant);
    const limits = own === undefined ? this.#rest : own;
    if (limits === null) return null;
    const known = this.#rows.get(tenant);
    if (known === undefined || known.untilMs <= this.#nowMs()) return this.#ask(tenant, limits);
    return { ...limits, owner: 'tenant', row: known.row };
  }

  async #ask(tenant: string, limits: ClientLimits): Promise<TenantAnswer> {
    const untilMs = this.#nowMs() + ROW_KNOWN_MS;
    const row = await this.#askRow(tenant);
    if (row === null) return 'limits_unavailable';
    if (this.#rows.size >= MAX_KNOWN) this.#rows.clear();
    this.#rows.set(tenant, { row, untilMs });
    return { ...limits, owner: 'tenant', row };
  }
}
