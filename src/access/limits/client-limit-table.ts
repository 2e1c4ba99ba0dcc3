import { createSharedClock, openTables, type SharedTable, sizeOfTables, tryIncrement } from '#shared-memory';
import { MAX_OVERDRAWN_NS, WINDOW_NS } from './budget.ts';

/** How many clients can have limits at one time. */
export const MAX_LIMITED_CLIENTS = 131_072;

/** Rows: those of the clients in effect, and as many of former ones, whose requests may still run. */
export const MAX_LIMIT_ROWS = 2 * MAX_LIMITED_CLIENTS;

/** How long a data plane uses the row of a tenant without asking for it again. */
export const ROW_KNOWN_MS = 10 * 60_000;

/** The budgets that refill with time. */
export type BudgetKind = 'requests' | 'tokens';

/** The limits that can refuse a request, by the keys of the configuration that set them. */
export type LimitKey = 'max_inflight' | `${BudgetKind}_per_minute`;

/** One row for each client with limits. */
const LIMIT_COLUMNS = {
  /** When the budget is full again, in ns of the clock that all threads share; in the past: it is full. */
  requests: 'int64',
  tokens: 'int64',
  /** What was taken from the budgets since the gateway started, without what was given back. */
  usedRequests: 'int64',
  usedTokens: 'int64',
  /** 1 if `usedRequests` or `usedTokens` has changed since `takeChanged`. */
  changed: 'int32',
  /** Requests in flight of all workers: the sum of `inflightByWorker`. */
  inflight: 'int32',
  /** How many of `max_inflight` may be in flight on this gateway; 0: the idle share. */
  share: 'int32',
  /** Requests that were refused because of it, since `takeRefused`. */
  refused: 'int32',
  /** Requests that each of the limits has refused, since `takeRefusals`. */
  refusedInflight: 'int32',
  refusedRequests: 'int32',
  refusedTokens: 'int32',
} as const;

const DIVISION_COLUMNS = { gatewayCount: 'int32', rank: 'int32' } as const;

const USED_COLUMNS = { requests: 'usedRequests', tokens: 'usedTokens' } as const;

const REFUSED_COLUMNS = {
  max_inflight: 'refusedInflight',
  requests_per_minute: 'refusedRequests',
  tokens_per_minute: 'refusedTokens',
} as const satisfies Readonly<Record<LimitKey, string>>;

/** The memory itself, which can be passed to another thread. The system provides only what is used of it. */
export interface ClientLimitMemory {
  readonly buffer: SharedArrayBuffer;
  readonly workerCount: number;
}

/** Reserves the memory for so many workers, filled with zeros: all budgets are full. */
export function allocateClientLimits(workerCount: number): ClientLimitMemory {
  return { buffer: new SharedArrayBuffer(sizeOfTables(toShapes(workerCount))), workerCount };
}

/**
 * What all threads share about the limits of clients. A budget is a token bucket that holds one minute's worth and
 * refills continuously. It is one cell: the time at which it is full again (the generic cell rate algorithm, ITU-T
 * I.371), so that one step checks and takes. No thread ever blocks.
 */
export class ClientLimitTable {
  readonly #workerCount: number;
  readonly #rows: SharedTable<typeof LIMIT_COLUMNS>;
  readonly #inflightByWorker: Int32Array;
  readonly #usedRows: Int32Array;
  readonly #refusals: Int32Array;
  /** How many gateways divide the limits of clients (0 is 1), and the rank of this one. */
  readonly #division: SharedTable<typeof DIVISION_COLUMNS>;
  readonly #nowNs: () => number;

  constructor({ buffer, workerCount }: ClientLimitMemory, nowNs: () => number = createClockNs()) {
    const tables = openTables(buffer, toShapes(workerCount));
    this.#workerCount = workerCount;
    this.#rows = tables.limits;
    this.#inflightByWorker = tables.inflightByWorker.inflight;
    this.#usedRows = tables.usedRows.count;
    this.#refusals = tables.refusals.count;
    this.#division = tables.division;
    this.#nowNs = nowNs;
  }

  /** Takes a cost from a budget and returns true, or returns false if it does not hold so much. */
  tryTake(kind: BudgetKind, row: number, costNs: number): boolean {
    const cells = this.#rows[kind];
    for (;;) {
      const before = Atomics.load(cells, row);
      const nowNs = this.#nowNs();
      const after = Math.max(Number(before), nowNs) + costNs;
      if (after > nowNs + WINDOW_NS) return false;
      if (Atomics.compareExchange(cells, row, before, BigInt(after)) === before) return true;
    }
  }

  /** Takes a cost whether the budget holds so much or not; a negative cost is given back. */
  charge(kind: BudgetKind, row: number, costNs: number): void {
    const cells = this.#rows[kind];
    for (;;) {
      const before = Atomics.load(cells, row);
      const nowNs = this.#nowNs();
      const after = Math.min(Math.max(Number(before), nowNs) + costNs, nowNs + MAX_OVERDRAWN_NS);
      if (Atomics.compareExchange(cells, row, before, BigInt(after)) === before) return;
    }
  }

  /** Adds to what was taken from a budget; negative: it was given back. */
  addUsed(kind: BudgetKind, row: number, units: number): void {
    Atomics.add(this.#rows[USED_COLUMNS[kind]], row, BigInt(units));
    Atomics.store(this.#rows.changed, row, 1);
  }

  /** Whether what was taken has changed since the last call. */
  takeChanged(row: number): boolean {
    const { changed } = this.#rows;
    return Atomics.load(changed, row) !== 0 && Atomics.exchange(changed, row, 0) !== 0;
  }

  /** What was taken from a budget since the gateway started. */
  usedOf(kind: BudgetKind, row: number): number {
    return Number(Atomics.load(this.#rows[USED_COLUMNS[kind]], row));
  }

  /** How long it takes until a budget is full; 0 if it is. */
  fullInNs(kind: BudgetKind, row: number): number {
    return Math.max(0, Number(Atomics.load(this.#rows[kind], row)) - this.#nowNs());
  }

  /**
   * Counts a request in flight and returns true, or returns false if this gateway's share of `limit` is in flight. The order
   * is that of `SharedState`: if the worker dies in between, the sum is one too high.
   */
  beginInflight(worker: number, row: number, limit: number | null): boolean {
    const { inflight } = this.#rows;
    if (limit === null) Atomics.add(inflight, row, 1);
    else if (!tryIncrement(inflight, row, this.shareOf(row, limit))) {
      Atomics.add(this.#rows.refused, row, 1);
      return false;
    }
    Atomics.add(this.#inflightByWorker, worker * MAX_LIMIT_ROWS + row, 1);
    return true;
  }

  endInflight(worker: number, row: number): void {
    Atomics.sub(this.#inflightByWorker, worker * MAX_LIMIT_ROWS + row, 1);
    Atomics.sub(this.#rows.inflight, row, 1);
  }

  inflightOf(row: number): number {
    return Atomics.load(this.#rows.inflight, row);
  }

  /** Whether nothing is in flight and its budgets are full, so that it may begin anew. */
  isUnused(row: number): boolean {
    return (
      this.inflightOf(row) === 0 && this.fullInNs('requests', row) === 0 && this.fullInNs('tokens', row) === 0
    );
  }

  /** How many requests were refused because of `max_inflight` since the last call. */
  takeRefused(row: number): number {
    const { refused } = this.#rows;
    return Atomics.load(refused, row) === 0 ? 0 : Atomics.exchange(refused, row, 0);
  }

  /** Counts a request that a limit has refused. */
  noteRefusal(key: LimitKey, row: number): void {
    Atomics.add(this.#rows[REFUSED_COLUMNS[key]], row, 1);
    Atomics.add(this.#refusals, 0, 1);
  }

  /** Changes when a request was refused. */
  get refusalCount(): number {
    return Atomics.load(this.#refusals, 0);
  }

  /** How many requests a limit has refused since the last call. */
  takeRefusals(key: LimitKey, row: number): number {
    const cells = this.#rows[REFUSED_COLUMNS[key]];
    return Atomics.load(cells, row) === 0 ? 0 : Atomics.exchange(cells, row, 0);
  }

  /** Sets how many requests may be in flight on this gateway; null: the idle share. */
  setShare(row: number, share: number | null): void {
    Atomics.store(this.#rows.share, row, share ?? 0);
  }

  /** Sets how many gateways divide the limits, and the rank of this one. */
  divideBy(gatewayCount: number, rank: number): void {
    Atomics.store(this.#division.rank, 0, rank);
    Atomics.store(this.#division.gatewayCount, 0, gatewayCount);
  }

  /** How many of `limit` may be in flight on this gateway. */
  shareOf(row: number, limit: number): number {
    const share = Atomics.load(this.#rows.share, row);
    if (share !== 0) return Math.min(share, limit);
    const gatewayCount = Atomics.load(this.#division.gatewayCount, 0);
    if (gatewayCount <= 1) return limit;
    return Math.max(1, idleShareOf(limit, gatewayCount, Atomics.load(this.#division.rank, 0)));
  }

  /** Removes the requests in flight of a worker that ended. */
  clearWorker(worker: number): void {
    const usedCount = Atomics.load(this.#usedRows, 0);
    for (let row = 0; row < usedCount; row++) {
      const count = Atomics.exchange(this.#inflightByWorker, worker * MAX_LIMIT_ROWS + row, 0);
      if (count !== 0) Atomics.sub(this.#rows.inflight, row, count);
    }
  }

  /** Prepares a row that no worker uses for another client. */
  clearRow(row: number): void {
    Atomics.store(this.#rows.requests, row, 0n);
    Atomics.store(this.#rows.tokens, row, 0n);
    Atomics.store(this.#rows.usedRequests, row, 0n);
    Atomics.store(this.#rows.usedTokens, row, 0n);
    Atomics.store(this.#rows.changed, row, 0);
    Atomics.store(this.#rows.inflight, row, 0);
    Atomics.store(this.#rows.share, row, 0);
    Atomics.store(this.#rows.refused, row, 0);
    for (const column of Object.values(REFUSED_COLUMNS)) Atomics.store(this.#rows[column], row, 0);
    for (let worker = 0; worker < this.#workerCount; worker++) {
      Atomics.store(this.#inflightByWorker, worker * MAX_LIMIT_ROWS + row, 0);
    }
  }

  /** Notes that rows up to this number, without it, are or were in use. */
  noteUsedRows(count: number): void {
    Atomics.store(this.#usedRows, 0, count);
  }
}

/** The tables, in the order in which they lie in memory. */
function toShapes(workerCount: number) {
  return {
    limits: { rowCount: MAX_LIMIT_ROWS, columns: LIMIT_COLUMNS },
    /** One row. */
    usedRows: { rowCount: 1, columns: { count: 'int32' } },
    /** One row: the requests that were refused. */
    refusals: { rowCount: 1, columns: { count: 'int32' } },
    /** One row. */
    division: { rowCount: 1, columns: DIVISION_COLUMNS },
    /** One row for each row of `limits`, of each worker. */
    inflightByWorker: { rowCount: workerCount * MAX_LIMIT_ROWS, columns: { inflight: 'int32' } },
  } as const;
}

/** The clock that all threads share, in nanoseconds. */
function createClockNs(): () => number {
  const nowMs = createSharedClock();
  return () => Math.round(nowMs() * 1e6);
}

/** What each of `gatewayCount` gateways may have in flight of a client that none of them has told anything of. */
export function idleShareOf(limit: number, gatewayCount: number, rank: number): number {
  return Math.floor(limit / gatewayCount) + (rank < limit % gatewayCount ? 1 : 0);
}
