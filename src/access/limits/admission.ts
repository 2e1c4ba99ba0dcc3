import { printReset, toCostNs, toRemaining, toRetryAfterSeconds } from './budget.ts';
import type { BudgetKind, ClientLimitTable, LimitKey } from './client-limit-table.ts';

/** What a client may use; null: as much as it likes. */
export interface ClientLimits {
  readonly maxInflight: number | null;
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
}

/** The limits among the settings of a client, or of a tenant; null: there are none. */
export function limitsOf(settings: ClientLimits): ClientLimits | null {
  const { maxInflight, requestsPerMinute, tokensPerMinute } = settings;
  const limits = { maxInflight, requestsPerMinute, tokensPerMinute };
  return Object.values(limits).every((limit) => limit === null) ? null : limits;
}

/** Limits, whose they are, and where in shared memory their use is counted. */
export interface CountedLimits extends ClientLimits {
  readonly owner: 'client' | 'tenant';
  readonly row: number;
}

/** Why a request was refused, and when it may come back. */
export interface LimitRefusal {
  readonly owner: CountedLimits['owner'];
  readonly key: LimitKey;
  /** The limit: requests or tokens per minute, or requests at the same time. */
  readonly limit: number;
  readonly retryAfterSeconds: number;
}

/** When a request in flight ends is not known. */
const INFLIGHT_RETRY_SECONDS = 1;

/** What one request holds of the limits of its client and of its tenant, from its head to its end. */
export class Admission {
  /** A request is admitted if all of them admit it. */
  readonly #limits: readonly CountedLimits[];
  readonly #table: ClientLimitTable;
  readonly #worker: number;
  #holdsInflight = false;
  /** What was taken of each budget of tokens, in the order of the limits. */
  #reservedTokens: readonly number[] = [];
  #refusal: LimitRefusal | null = null;

  /** Admits the request, or refuses it: see `refusal`. */
  constructor(limits: readonly CountedLimits[], table: ClientLimitTable, worker: number) {
    this.#limits = limits;
    this.#table = table;
    this.#worker = worker;
    if (this.#beginInflight()) this.#take('requests', 1);
  }

  /** The limit that refused the request; null: none. */
  get refusal(): LimitRefusal | null {
    return this.#refusal;
  }

  /** Whose limit refused the request, and the key that sets it, as the record has it; undefined: none. */
  get refusedBy(): string | undefined {
    return this.#refusal === null ? undefined : `${this.#refusal.owner}.${this.#refusal.key}`;
  }

  /** Where the use of its client, and of its tenant, is counted. */
  get rows(): readonly number[] {
    return this.#limits.map(({ row }) => row);
  }

  /**
   * Takes an estimate of the tokens from their budgets and returns true, or refuses the request. An estimate beyond a
   * whole budget needs a full one.
   */
  reserveTokens(estimate: number): boolean {
    const tokens = Math.ceil(estimate);
    if (this.#take('tokens', tokens)) {
      this.#reservedTokens = this.#limits.map((limits) => unitsOf('tokens', tokens, limits));
      return true;
    }
    // A request that is refused is not counted.
    for (const limits of this.#limits) this.#charge('requests', -1, limits);
    return false;
  }

  /** The request is over: it has used so many tokens, and is not in flight any more. */
  end(usedTokens: number): void {
    if (!this.#holdsInflight) return;
    for (const [index, limits] of this.#limits.entries()) {
      const rest = Math.ceil(usedTokens) - (this.#reservedTokens[index] ?? 0);
      if (rest !== 0) this.#charge('tokens', rest, limits);
    }
    // Last: a row may be another client's when nothing is in flight.
    this.#endInflight(this.#limits.length);
  }

  /**
   * The field lines of the answer that say what is left of the budgets, and after a refusal when to come back. Of two
   * budgets of a kind they tell the one that has less left.
   */
  fieldLines(): string {
    return (
      this.#toLines('requests') +
      this.#toLines('tokens') +
      (this.#refusal === null ? '' : `Retry-After: ${this.#refusal.retryAfterSeconds}\r\n`)
    );
  }

  #beginInflight(): boolean {
    for (const [index, limits] of this.#limits.entries()) {
      const { row, maxInflight } = limits;
      if (this.#table.beginInflight(this.#worker, row, maxInflight)) continue;
      this.#endInflight(index);
      this.#refuse('max_inflight', limits, maxInflight ?? 0, INFLIGHT_RETRY_SECONDS);
      return false;
    }
    this.#holdsInflight = true;
    return true;
  }

  /** Takes the units from all budgets of a kind, or from none. */
  #take(kind: BudgetKind, units: number): boolean {
    for (const [index, limits] of this.#limits.entries()) {
      const perMinute = perMinuteOf(kind, limits);
      if (perMinute === null) continue;
      const taken = unitsOf(kind, units, limits);
      if (this.#table.tryTake(kind, limits.row, toCostNs(taken, perMinute))) {
        this.#table.addUsed(kind, limits.row, taken);
        continue;
      }
      for (const before of this.#limits.slice(0, index)) {
        this.#charge(kind, -unitsOf(kind, units, before), before);
      }
      this.#refuse(`${kind}_per_minute`, limits, perMinute, this.#retryAfterSecondsOf(kind, units));
      this.#endInflight(this.#limits.length);
      return false;
    }
    return true;
  }

  #refuse(key: LimitKey, { owner, row }: CountedLimits, limit: number, retryAfterSeconds: number): void {
    this.#refusal = { owner, key, limit, retryAfterSeconds };
    this.#table.noteRefusal(key, row);
  }

  /** When all budgets of a kind hold the units. */
  #retryAfterSecondsOf(kind: BudgetKind, units: number): number {
    const seconds = this.#limits.map((limits) => {
      const perMinute = perMinuteOf(kind, limits);
      if (perMinute === null) return 0;
      const costNs = toCostNs(unitsOf(kind, units, limits), perMinute);
      return toRetryAfterSeconds(this.#table.fullInNs(kind, limits.row), costNs);
    });
    return Math.max(...seconds);
  }

  /** Counts units that were used whether the budget holds them or not; negative: they are given back. */
  #charge(kind: BudgetKind, units: number, limits: CountedLimits): void {
    const perMinute = perMinuteOf(kind, limits);
    if (perMinute === null) return;
    // What is given back is what was taken, to the nanosecond.
    const costNs = Math.sign(units) * toCostNs(Math.abs(units), perMinute);
    this.#table.charge(kind, limits.row, costNs);
    this.#table.addUsed(kind, limits.row, units);
  }

  /** Ends it in the first `count` of the limits. */
  #endInflight(count: number): void {
    this.#holdsInflight = false;
    for (const { row } of this.#limits.slice(0, count)) this.#table.endInflight(this.#worker, row);
  }

  #toLines(kind: BudgetKind): string {
    let tightest: { perMinute: number; fullInNs: number; remaining: number } | null = null;
    for (const limits of this.#limits) {
      const perMinute = perMinuteOf(kind, limits);
      if (perMinute === null) continue;
      const fullInNs = this.#table.fullInNs(kind, limits.row);
      const remaining = toRemaining(fullInNs, perMinute);
      if (tightest === null || remaining < tightest.remaining) tightest = { perMinute, fullInNs, remaining };
    }
    if (tightest === null) return '';
    return (
      `x-ratelimit-limit-${kind}: ${tightest.perMinute}\r\n` +
      `x-ratelimit-remaining-${kind}: ${tightest.remaining}\r\n` +
      `x-ratelimit-reset-${kind}: ${printReset(tightest.fullInNs)}\r\n`
    );
  }
}

function perMinuteOf(kind: BudgetKind, { requestsPerMinute, tokensPerMinute }: ClientLimits): number | null {
  return kind === 'requests' ? requestsPerMinute : tokensPerMinute;
}

/** What a budget is asked for: never more than all of it. */
function unitsOf(kind: BudgetKind, units: number, limits: ClientLimits): number {
  return Math.min(units, perMinuteOf(kind, limits) ?? 0);
}

/** Admits the requests that one worker serves. */
export class ClientLimiter {
  readonly #table: ClientLimitTable;
  readonly #worker: number;

  constructor(table: ClientLimitTable, worker: number) {
    this.#table = table;
    this.#worker = worker;
  }

  /** Admits or refuses a request with the limits of its key or token, and of its tenant; null: there are none. */
  admit(...given: readonly (CountedLimits | null)[]): Admission {
    const limits = given.filter((counted) => counted !== null);
    return new Admission(limits, this.#table, this.#worker);
  }
}
