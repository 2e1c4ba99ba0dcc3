import { itemsOf, memberOf } from '#base/parsed';
import type { Answered } from './history-gateways.ts';

/** The figures of a row that add up, by their names in the admin API. */
export const COUNTS = [
  ...(['requests', 'attempts', 'errors', 'client_errors', 'canceled', 'without_usage'] as const),
  ...(['prompt_tokens', 'completion_tokens', 'cached_tokens', 'reasoning_tokens', 'gpu_seconds'] as const),
] as const;

export type CountName = (typeof COUNTS)[number];

/** Milliseconds; null if it is not known, as of quantiles of several gateways. */
export interface Times {
  readonly mean: number | null;
  readonly p50: number | null;
  readonly p95: number | null;
}

/** Sums of requests, of one gateway or of several. */
export interface UsageSums extends Readonly<Record<CountName, number>> {
  readonly costs: Readonly<Record<string, number>>;
  readonly failures: Readonly<Record<string, number>>;
  readonly e2e_ms: Times;
  readonly ttft_ms: Times & { readonly count: number };
}

/** The sums of one step and one group. */
export interface UsageRow extends UsageSums {
  readonly start: string;
  /** The values of `by`, in its order; null: not known of these requests. */
  readonly group: readonly (string | null)[];
  readonly other: boolean;
}

/** The usage of all gateways that were asked. */
export interface Usage {
  readonly by: readonly string[];
  /** Whether rows have different times. */
  readonly hasSteps: boolean;
  readonly since: string;
  readonly until: string;
  readonly resolution: string;
  readonly complete: boolean;
  readonly rows: readonly UsageRow[];
  readonly total: UsageSums;
}

/** Sums what gateways have answered. `hasSteps`: the span is divided. */
export function sumUsage(answers: readonly Answered[], hasSteps: boolean): Usage {
  const [first] = answers;
  const by = itemsOf(first?.answer, 'by').map(String);
  const all = answers.map(({ answer }) => answer);
  const texts = (name: string) => all.map((answer) => String(memberOf(answer, name))).toSorted();
  // Gateways round the beginning of a span alike, but not if one keeps less: steps are told apart by their time.
  const rows = Map.groupBy(
    all.flatMap((answer) => itemsOf(answer, 'rows').map((row) => toRow(row, by))),
    ({ start, group, other }) => JSON.stringify([hasSteps ? start : '', group, other]),
  );
  return {
    by,
    hasSteps,
    since: texts('since').at(0) ?? '',
    until: texts('until').at(-1) ?? '',
    resolution: texts('resolution').at(0) ?? '',
    complete: all.every((answer) => memberOf(answer, 'complete') === true),
    rows: [...rows.values()].map(addRows).toSorted(byTimeAndSize),
    total: addSums(all.map((answer) => toSums(memberOf(answer, 'total')))),
  };
}

function byTimeAndSize(a: UsageRow, b: UsageRow): number {
  if (a.start !== b.start) return a.start < b.start ? -1 : 1;
  return Number(a.other) - Number(b.other) || b.requests - a.requests;
}

function addRows(rows: readonly UsageRow[]): UsageRow {
  const [first] = rows;
  if (first === undefined) throw new Error('a group has a row');
  if (rows.length === 1) return first;
  const starts = rows.map(({ start }) => start).toSorted();
  return { ...first, ...addSums(rows), start: starts[0] ?? first.start };
}

function addSums(rows: readonly UsageSums[]): UsageSums {
  const [only] = rows;
  if (only !== undefined && rows.length === 1) return only;
  const counts = Object.fromEntries(
    COUNTS.map((name) => [name, rows.reduce((sum, row) => sum + row[name], 0)]),
  ) as Record<CountName, number>;
  const firstTokens = rows.reduce((sum, { ttft_ms }) => sum + ttft_ms.count, 0);
  return {
    ...counts,
    costs: addNamed(rows.map(({ costs }) => costs)),
    failures: addNamed(rows.map(({ failures }) => failures)),
    e2e_ms: addTimes(rows.map(({ e2e_ms, requests }) => ({ ...e2e_ms, count: requests }))),
    ttft_ms: { ...addTimes(rows.map(({ ttft_ms }) => ttft_ms)), count: firstTokens },
  };
}

/** Means have weights; quantiles stay if those of one gateway alone are known: another one had no success. */
function addTimes(all: readonly (Times & { readonly count: number })[]): Times {
  const count = all.reduce((sum, each) => sum + each.count, 0);
  const sum = all.reduce((total, each) => total + (each.mean ?? 0) * each.count, 0);
  const known = all.filter(({ p50 }) => p50 !== null);
  const { p50 = null, p95 = null } = (known.length === 1 && known[0]) || {};
  return { mean: count === 0 ? null : sum / count, p50, p95 };
}

function addNamed(all: readonly Readonly<Record<string, number>>[]): Readonly<Record<string, number>> {
  const sums = new Map<string, number>();
  for (const each of all) {
    for (const [name, value] of Object.entries(each)) sums.set(name, (sums.get(name) ?? 0) + value);
  }
  return Object.fromEntries(sums);
}

function toRow(row: unknown, by: readonly string[]): UsageRow {
  const group = by.map((name) => memberOf(row, name));
  return {
    ...toSums(row),
    start: String(memberOf(row, 'start')),
    group: group.map((name) => (typeof name === 'string' ? name : null)),
    other: memberOf(row, 'other') === true,
  };
}

function toSums(row: unknown): UsageSums {
  const firstToken = memberOf(row, 'ttft_ms');
  const counts = Object.fromEntries(COUNTS.map((name) => [name, toNumber(memberOf(row, name))]));
  return {
    ...(counts as Record<CountName, number>),
    costs: toNamed(memberOf(row, 'costs')),
    failures: toNamed(memberOf(row, 'failures')),
    e2e_ms: toTimes(memberOf(row, 'e2e_ms')),
    ttft_ms: { ...toTimes(firstToken), count: toNumber(memberOf(firstToken, 'count')) },
  };
}

function toNamed(value: unknown): Readonly<Record<string, number>> {
  return typeof value === 'object' && value !== null
    ? Object.fromEntries(Object.entries(value).map(([name, number]) => [name, toNumber(number)]))
    : {};
}

function toTimes(value: unknown): Times {
  const [mean = null, p50 = null, p95 = null] = ['mean', 'p50', 'p95'].map((name) => {
    const ms = memberOf(value, name);
    return typeof ms === 'number' ? ms : null;
  });
  return { mean, p50, p95 };
}

function toNumber(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}
