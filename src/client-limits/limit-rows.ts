import type { ApiClientConfig } from '../config/config.ts';
import { StartError } from '../start-error.ts';
import type { CountedLimits } from './admission.ts';
import { type ClientLimitTable, MAX_LIMIT_ROWS } from './client-limit-table.ts';

/** A client with the row of its limits; null: it has none. */
export type CountedClient = Omit<ApiClientConfig, 'limits'> & { readonly limits: CountedLimits | null };

/**
 * Assigns rows in shared memory to the clients that have limits. A client keeps its row, and what it has used, as long
 * as its name is known: over a reload, and over one that removes it and one that brings it back.
 */
export class LimitRows {
  readonly #table: ClientLimitTable;
  readonly #rowCount: number;
  /** The rows of all names, in the order in which they came; of former clients until somebody else needs the row. */
  readonly #rows = new Map<string, number>();
  #usedCount = 0;
  /** The names of the latest assignment. */
  #inEffect: ReadonlySet<string> = new Set();

  constructor(table: ClientLimitTable, rowCount = MAX_LIMIT_ROWS) {
    this.#table = table;
    this.#rowCount = rowCount;
  }

  /**
   * Assigns rows to these clients; every worker must have taken over the assignment before. Throws a StartError when
   * there are too many.
   */
  assign(clients: readonly ApiClientConfig[]): readonly CountedClient[] {
    const names = new Set(clients.flatMap(({ name, limits }) => (limits === null ? [] : name)));
    const free = this.#findFreeRows(names);
    const assigned = clients.map((client): CountedClient => {
      const { name, limits } = client;
      if (limits === null) return { ...client, limits: null };
      const row = this.#rows.get(name) ?? this.#takeRow(name, free);
      return { ...client, limits: { ...limits, row } };
    });
    this.#table.noteUsedRows(this.#usedCount);
    this.#inEffect = names;
    return assigned;
  }

  #takeRow(name: string, free: number[]): number {
    const row = free.pop() ?? this.#usedCount++;
    this.#rows.set(name, row);
    return row;
  }

  /** Frees as many rows of former clients as these names need beyond those that were never used. */
  #findFreeRows(names: ReadonlySet<string>): number[] {
    const newCount = [...names].filter((name) => !this.#rows.has(name)).length;
    const neededCount = newCount - (this.#rowCount - this.#usedCount);
    if (neededCount <= 0) return [];
    // Workers may still begin requests of the clients in effect.
    const isFree = ([name, row]: [string, number]) =>
      !names.has(name) && !this.#inEffect.has(name) && this.#table.inflightOf(row) === 0;
    const former = [...this.#rows].filter(isFree).slice(0, neededCount);
    if (former.length < neededCount) {
      throw new StartError(`clients: too many have limits, or had until now: more than ${this.#rowCount}`);
    }
    for (const [name, row] of former) {
      this.#rows.delete(name);
      this.#table.clearRow(row);
    }
    return former.map(([, row]) => row);
  }
}
