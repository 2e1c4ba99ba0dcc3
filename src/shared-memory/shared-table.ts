/** The columns of a table by name, each with the type of its cells. */
export type TableColumns = Readonly<Record<string, keyof Cells>>;

/** What a table looks like in memory. */
export interface TableShape {
  readonly columns: TableColumns;
  readonly rowCount: number;
}

/**
 * A table in memory that all threads share: one array for each column, indexed by row. Its cells are zero at first.
 * Read and write them with Atomics only.
 */
export type SharedTable<Columns extends TableColumns> = {
  readonly [Name in keyof Columns]: Cells[Columns[Name]];
};

/** The types of cells. */
interface Cells {
  readonly int32: Int32Array;
  readonly int64: BigInt64Array;
}

/** Columns begin at multiples of 64 bytes, so that no two of them share a cache line. */
const ALIGNMENT_BYTES = 64;

/** Bytes that these tables take together. */
export function sizeOfTables(shapes: Readonly<Record<string, TableShape>>): number {
  let sizeBytes = 0;
  for (const { columns, rowCount } of Object.values(shapes)) {
    for (const type of Object.values(columns)) sizeBytes += columnBytes(type, rowCount);
  }
  return sizeBytes;
}

/** Opens the tables in a buffer of `sizeOfTables`. Every thread must name the same shapes in the same order. */
export function openTables<Shapes extends Readonly<Record<string, TableShape>>>(
  buffer: SharedArrayBuffer,
  shapes: Shapes,
): { readonly [Name in keyof Shapes]: SharedTable<Shapes[Name]['columns']> } {
  let offset = 0;
  const openColumn = (type: keyof Cells, rowCount: number) => {
    const cells =
      type === 'int64'
        ? new BigInt64Array(buffer, offset, rowCount)
        : new Int32Array(buffer, offset, rowCount);
    offset += columnBytes(type, rowCount);
    return cells;
  };
  const tables = mapValues(shapes, ({ columns, rowCount }) =>
    mapValues(columns, (type) => openColumn(type, rowCount)),
  );
  return tables as { [Name in keyof Shapes]: SharedTable<Shapes[Name]['columns']> };
}

/** Adds one to a cell and returns true, or returns false if the cell has reached its limit. */
export function tryIncrement(cells: Int32Array, row: number, limit: number): boolean {
  for (;;) {
    const value = Atomics.load(cells, row);
    if (value >= limit) return false;
    if (Atomics.compareExchange(cells, row, value, value + 1) === value) return true;
  }
}

function columnBytes(type: keyof Cells, rowCount: number): number {
  const cellBytes = type === 'int64' ? 8 : 4;
  return Math.ceil((rowCount * cellBytes) / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;
}

function mapValues<T, U>(object: Readonly<Record<string, T>>, map: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value)]));
}
