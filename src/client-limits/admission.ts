import { printReset, toCostNs, toRemaining, toRetryAfterSeconds, WINDOW_NS } from './budget.ts';
import type { BudgetKind, ClientLimitTable } from './client-limit-table.ts';

/** What a client may use; null: as much as it likes. */
export interface ClientLimits {
  readonly maxInflight: number | null;
  readonly requestsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
}

/** The limits of a client that has some, and where in shared memory its use is counted. */
export interface CountedLimits extends ClientLimits {
  readonly row: number;
}

/** The limit that refused a request. */
export type LimitKind = BudgetKind | 'inflight';

/** When a request in flight ends is not known. */
const INFLIGHT_RETRY_SECONDS = 1;

/** What one request of a client with limits holds of them, from its head to its end. */
export class Admission {
  readonly #limits: CountedLimits;
  readonly #table: ClientLimitTable;
  readonly #worker: number;
  #holdsInflight = false;
  /** What was taken of the budget of tokens. */
  #reservedTokens = 0;
  #refusal: { readonly kind: LimitKind; readonly retryAfterSeconds: number } | null = null;

  /** Admits the request, or refuses it: see `refusal`. */
  constructor(limits: CountedLimits, table: ClientLimitTable, worker: number) {
    this.#limits = limits;
    this.#table = table;
    this.#worker = worker;
    const { row, maxInflight, requestsPerMinute } = limits;
    if (!table.beginInflight(worker, row, maxInflight)) {
      this.#refusal = { kind: 'inflight', retryAfterSeconds: INFLIGHT_RETRY_SECONDS };
      return;
    }
    this.#holdsInflight = true;
    if (requestsPerMinute !== null) this.#take('requests', 1, requestsPerMinute);
  }

  /** The limit that refused the request; null: none. */
  get refusal(): LimitKind | null {
    return this.#refusal?.kind ?? null;
  }

  /** Whether the request needs `reserveTokens`. */
  get countsTokens(): boolean {
    return this.#limits.tokensPerMinute !== null;
  }

  /**
   * Takes an estimate of the tokens from their budget and returns true, or refuses the request. An estimate beyond the
   * whole budget needs a full one.
   */
  reserveTokens(estimate: number): boolean {
    const { row, requestsPerMinute, tokensPerMinute } = this.#limits;
    if (tokensPerMinute === null) return true;
    const tokens = Math.min(Math.ceil(estimate), tokensPerMinute);
    if (this.#take('tokens', tokens, tokensPerMinute)) {
      this.#reservedTokens = tokens;
      return true;
    }
    // A request that is refused is not counted.
    if (requestsPerMinute !== null) {
      this.#table.charge('requests', row, -toCostNs(1, requestsPerMinute));
      this.#table.addUsed('requests', row, -1);
    }
    return false;
  }

  /** The request is over: it has used so many tokens, and is not in flight any more. */
  end(usedTokens: number): void {
    const { row, tokensPerMinute } = this.#limits;
    if (!this.#holdsInflight) return;
    const rest = Math.ceil(usedTokens) - this.#reservedTokens;
    if (tokensPerMinute !== null && rest !== 0) {
      this.#table.charge('tokens', row, toCostNs(rest, tokensPerMinute));
      this.#table.addUsed('tokens', row, rest);
    }
    // Last: the row may be another client's when nothing is in flight.
    this.#endInflight();
  }

  /** The field lines of the answer that say what is left of the budgets, and after a refusal when to come back. */
  fieldLines(): string {
    const { requestsPerMinute, tokensPerMinute } = this.#limits;
    return (
      this.#toLines('requests', requestsPerMinute) +
      this.#toLines('tokens', tokensPerMinute) +
      (this.#refusal === null ? '' : `Retry-After: ${this.#refusal.retryAfterSeconds}\r\n`)
    );
  }

  #take(kind: BudgetKind, units: number, perMinute: number): boolean {
    const { row } = this.#limits;
    const costNs = Math.min(toCostNs(units, perMinute), WINDOW_NS);
    if (this.#table.tryTake(kind, row, costNs)) {
      this.#table.addUsed(kind, row, units);
      return true;
    }
    const retryAfterSeconds = toRetryAfterSeconds(this.#table.fullInNs(kind, row), costNs);
    this.#refusal = { kind, retryAfterSeconds };
    this.#endInflight();
    return false;
  }

  #endInflight(): void {
    this.#holdsInflight = false;
    this.#table.endInflight(this.#worker, this.#limits.row);
  }

  #toLines(kind: BudgetKind, perMinute: number | null): string {
    if (perMinute === null) return '';
    const fullInNs = this.#table.fullInNs(kind, this.#limits.row);
    return (
      `x-ratelimit-limit-${kind}: ${perMinute}\r\n` +
      `x-ratelimit-remaining-${kind}: ${toRemaining(fullInNs, perMinute)}\r\n` +
      `x-ratelimit-reset-${kind}: ${printReset(fullInNs)}\r\n`
    );
  }
}

/** Admits the requests that one worker serves. */
export class ClientLimiter {
  readonly #table: ClientLimitTable;
  readonly #worker: number;

  constructor(table: ClientLimitTable, worker: number) {
    this.#table = table;
    this.#worker = worker;
  }

  /** Admits or refuses a request of a client with these limits. */
  admit(limits: CountedLimits): Admission {
    return new Admission(limits, this.#table, this.#worker);
  }
}
