import { type ClientLimitTable, MAX_LIMIT_ROWS } from './client-limit-table.ts';

/** Which name has which row in shared memory. */
export class RowNumbers {
  /** Told of the names that have lost their rows, and what they have used with them. */
  onFreed: (name: string) => void = () => undefined;
  readonly #table: ClientLimitTable;
  readonly #rowCount: number;
  /** In the order in which they came. */
  readonly #rows = new Map<string, number>();
  /** The same by row; the names of freed rows stay. */
  readonly #names: string[] = [];
  #usedCount = 0;
  /** Rows below `#usedCount` that are nobody's. */
  readonly #free: number[] = [];

  constructor(table: ClientLimitTable, rowCount = MAX_LIMIT_ROWS) {
    this.#table = table;
    this.#rowCount = rowCount;
  }

  /** How many rows there are for all names together. */
  get count(): number {
    return this.#rowCount;
  }

  /** How many rows are nobody's. */
  get restCount(): number {
    return this.#free.length + this.#rowCount - this.#usedCount;
  }

  get entries(): Iterable<readonly [name: string, row: number]> {
    return this.#rows;
  }

  rowOf(name: string): number | undefined {
    return this.#rows.get(name);
  }

  /** Whose row it is; null: nobody's. */
  nameOf(row: number): string | null {
    const name = this.#names[row];
    return name !== undefined && this.#rows.get(name) === row ? name : null;
  }

  /** Gives a name a row, which must be there. */
  take(name: string): number {
    const row = this.#free.pop() ?? this.#usedCount++;
    this.#rows.set(name, row);
    this.#names[row] = name;
    this.#table.noteUsedRows(this.#usedCount);
    return row;
  }

  /** Frees the row of a name. Nothing may be in flight in it, and nobody may begin anything. */
  free(name: string): void {
    const row = this.#rows.get(name);
    if (row === undefined) return;
    this.#rows.delete(name);
    this.#table.clearRow(row);
    this.#free.push(row);
    this.onFreed(name);
  }
}
