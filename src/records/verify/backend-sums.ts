import { isJsonObject } from '#otel/otlp-json';
import type { LedgerEntry, TokenSums } from './exported-span.ts';
import { sumTokens } from './instance-check.ts';

/** What a backend has summed over the records of one instance, or of some of its ledger spans. */
export interface BackendSums {
  readonly instance: string;
  readonly count: number;
  readonly tokens: Partial<TokenSums>;
  /** The first number of a ledger span; null: from the first. */
  readonly firstSeq: number | null;
  /** The last number of a ledger span; null: to the last. */
  readonly lastSeq: number | null;
}

/** A sum of a backend that is not the ledger's. */
export interface SumsDifference {
  readonly instance: string;
  readonly first_seq: number | null;
  readonly last_seq: number | null;
  /**
   * `count`, `prompt_tokens` and so on; `ledger`: no ledger spans cover exactly these numbers; `row`: the backend has none
   * for this instance.
   */
  readonly what: string;
  /** What the ledger says. */
  readonly expected: number | null;
  /** What the backend says. */
  readonly found: number | null;
}

/** Parses sums: a JSON array of objects, or one object in each line. Returns the first mistake as a text. */
export function parseBackendSums(text: string): readonly BackendSums[] | string {
  const rows = parseRows(text);
  if (rows === null) return 'it is neither a JSON array nor lines of JSON objects';
  const sums: BackendSums[] = [];
  for (const [index, row] of rows.entries()) {
    const read = isJsonObject(row) ? toSums(row) : null;
    if (read === null) return `row ${index + 1} lacks instance or count, or has a value that is no number`;
    sums.push(read);
  }
  return sums;
}

/** Compares sums with what the ledger spans declare. `ledgers`: by instance, in order. */
export function compareSums(
  rows: readonly BackendSums[],
  ledgers: ReadonlyMap<string, readonly LedgerEntry[]>,
): readonly SumsDifference[] {
  const withRow = new Set(rows.map(({ instance }) => instance));
  const withoutRow = [...ledgers].filter(
    ([instance, list]) => !withRow.has(instance) && sumTokens(list).count > 0,
  );
  return [
    ...rows.flatMap((row) => compareRow(row, ledgers.get(row.instance) ?? [])),
    ...withoutRow.map(([instance, list]) => ({
      instance,
      first_seq: null,
      last_seq: null,
      what: 'row',
      expected: sumTokens(list).count,
      found: null,
    })),
  ];
}

function compareRow(row: BackendSums, ledgers: readonly LedgerEntry[]): readonly SumsDifference[] {
  const { instance, firstSeq, lastSeq, count, tokens } = row;
  const place = { instance, first_seq: firstSeq, last_seq: lastSeq };
  const covered = ledgers.filter(
    (ledger) => ledger.firstSeq >= (firstSeq ?? 1) && ledger.lastSeq <= (lastSeq ?? Number.POSITIVE_INFINITY),
  );
  const [first] = covered;
  const last = covered.at(-1);
  const isAligned =
    first !== undefined &&
    last !== undefined &&
    first.firstSeq === (firstSeq ?? 1) &&
    (lastSeq === null || last.lastSeq === lastSeq) &&
    covered.every(({ number }, index) => number === first.number + index);
  if (!isAligned) return [{ ...place, what: 'ledger', expected: null, found: count }];
  const expected = sumTokens(covered);
  const pairs = [
    ['count', expected.count, count],
    ['prompt_tokens', expected.prompt, tokens.prompt],
    ['completion_tokens', expected.completion, tokens.completion],
    ['cached_tokens', expected.cached, tokens.cached],
  ] as const;
  return pairs.flatMap(([what, wanted, found]) =>
    found === undefined || found === wanted ? [] : [{ ...place, what, expected: wanted, found }],
  );
}

function parseRows(text: string): readonly unknown[] | null {
  try {
    // What begins so is an array, or no JSON.
    if (text.trimStart().startsWith('[')) return JSON.parse(text);
    return text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line): unknown => JSON.parse(line));
  } catch {
    return null;
  }
}

/** Databases print large integers as texts in JSON. */
function toSums(row: Readonly<Record<string, unknown>>): BackendSums | null {
  const read = (name: string): number | null | undefined => {
    const value = row[name];
    if (value === undefined || value === null) return undefined;
    const number = typeof value === 'string' && /^\d{1,16}$/.test(value) ? Number(value) : value;
    return typeof number === 'number' && Number.isSafeInteger(number) && number >= 0 ? number : null;
  };
  const { instance } = row;
  const count = read('count');
  const numbers = {
    prompt: read('prompt_tokens'),
    completion: read('completion_tokens'),
    cached: read('cached_tokens'),
  };
  const firstSeq = read('first_seq');
  const lastSeq = read('last_seq');
  if (typeof instance !== 'string' || typeof count !== 'number') return null;
  if ([...Object.values(numbers), firstSeq, lastSeq].includes(null)) return null;
  const tokens = Object.fromEntries(
    Object.entries(numbers).flatMap(([name, number]) => (typeof number === 'number' ? [[name, number]] : [])),
  );
  return { instance, count, tokens, firstSeq: firstSeq ?? null, lastSeq: lastSeq ?? null };
}
