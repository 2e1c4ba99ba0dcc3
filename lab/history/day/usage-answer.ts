import { DIMENSIONS, type Dimension } from '#history';
import type { Counted } from './counted.ts';
import { isSame, toCost, toGpuSeconds } from './counted.ts';

/** Sums, as GET /admin/usage has them. */
interface Sums extends Readonly<Record<(typeof COUNTS)[number], number>> {
  readonly gpu_seconds: number;
  readonly e2e_ms: Times;
  readonly ttft_ms: Times & { readonly count: number };
  readonly costs: Readonly<Record<string, number>>;
  readonly failures: Readonly<Record<string, number>>;
}

interface Times {
  readonly mean: number | null;
  readonly p50: number | null;
  readonly p95: number | null;
}

/** An answer of GET /admin/usage. */
export interface UsageAnswer {
  readonly rows: readonly (Sums & { readonly start: string; readonly other: boolean } & Readonly<
      Partial<Record<Dimension, string | null>>
    >)[];
  readonly total: Sums;
  readonly since: string;
  readonly until: string;
  readonly resolution: 'minute' | 'hour';
  readonly kept: { readonly minutes_since: string };
  readonly gaps: readonly { readonly reason: string; readonly records: number | null }[];
}

const COUNTS = [
  ...(['requests', 'attempts', 'errors', 'client_errors', 'canceled', 'without_usage'] as const),
  ...(['prompt_tokens', 'completion_tokens', 'cached_tokens', 'reasoning_tokens'] as const),
];

/** Means have three digits. */
const MEAN_WITHIN = 0.0006;
const QUANTILE_WITHIN = 0.05;

/** What was asked for. `stepMs`: null: the span is not divided. */
export interface AskedUsage {
  readonly by: readonly Dimension[];
  readonly stepMs: number | null;
  readonly filters: Readonly<Partial<Record<Dimension, string>>>;
}

/** Compares an answer with the requests of the span that it says it has. Returns what differs, and how much was compared. */
export function compareUsage(
  answer: UsageAnswer,
  all: readonly Counted[],
  { by, stepMs, filters }: AskedUsage,
): { readonly differences: readonly string[]; readonly figures: number } {
  const [sinceMs, untilMs] = [Date.parse(answer.since), Date.parse(answer.until)];
  const counted = all.filter(
    (each) =>
      each.arriveEpochMs >= sinceMs &&
      each.arriveEpochMs < untilMs &&
      Object.entries(filters).every(([name, value]) => nameOf(each, name as Dimension) === value),
  );
  const groups = Map.groupBy(counted, (each) => {
    const step = stepMs === null ? 0 : Math.floor((each.arriveEpochMs - sinceMs) / stepMs) * stepMs;
    return JSON.stringify([new Date(sinceMs + step).toISOString(), ...by.map((name) => nameOf(each, name))]);
  });
  const differences: string[] = [];
  let figures = 0;
  const compare = (key: string, told: Sums, own: readonly Counted[]) => {
    const [a, b] = [flatten(told), reckon(own)];
    figures += b.size;
    for (const name of new Set([...a.keys(), ...b.keys()])) {
      const [is, expected] = [a.get(name), b.get(name)];
      if (!isAsExpected(name, is, expected)) differences.push(`${key}: ${name} is ${is}, not ${expected}`);
    }
  };
  const known = new Set<string>();
  for (const row of answer.rows) {
    const key = JSON.stringify([row.start, ...by.map((name) => row[name] ?? null)]);
    const own = groups.get(key);
    if (row.other || own === undefined || known.has(key))
      differences.push(`${key}: nobody asked for this row`);
    else compare(key, row, own);
    known.add(key);
  }
  for (const key of groups.keys()) if (!known.has(key)) differences.push(`${key}: there is no row`);
  compare('total', answer.total, counted);
  return { differences, figures };
}

function nameOf({ request: { fields } }: Counted, name: Dimension): string | null {
  return fields[name] ?? null;
}

type Figures = ReadonlyMap<string, number | null>;

function flatten({ e2e_ms, ttft_ms, costs, failures, ...sums }: Sums): Figures {
  return new Map<string, number | null>([
    ...COUNTS.map((name) => [name, sums[name]] as const),
    ['gpu_seconds', sums.gpu_seconds],
    ...Object.entries(e2e_ms).map(([name, value]) => [`e2e_ms ${name}`, value] as const),
    ...Object.entries(ttft_ms).map(([name, value]) => [`ttft_ms ${name}`, value] as const),
    ...Object.entries(costs).map(([name, value]) => [`cost ${name}`, value] as const),
    ...Object.entries(failures).map(([name, value]) => [`failures ${name}`, value] as const),
  ]);
}

function reckon(counted: readonly Counted[]): Figures {
  const fields = counted.map(({ request }) => request.fields);
  const sum = <T>(items: readonly T[], of: (item: T) => number | undefined) =>
    items.reduce((all, item) => all + (of(item) ?? 0), 0);
  const outcomes = (['errors', 'client_errors', 'canceled'] as const).map(
    (name) => [name, counted.filter(({ request }) => request.outcome === name).length] as const,
  );
  const failures = Map.groupBy(
    counted.filter(({ request }) => request.why !== null),
    ({ request }) => request.why,
  );
  const withCost = counted.filter((each) => toCost(each) !== undefined);
  const costs = Map.groupBy(withCost, ({ currency }) => currency);
  const times = fields.map(({ e2e_ms }) => e2e_ms ?? 0);
  const isSuccess = ({ request: { outcome, fields } }: Counted) => outcome === null && fields.status < 300;
  const successTimes = counted.filter(isSuccess).map(({ request }) => request.fields.e2e_ms ?? 0);
  const firstTimes = fields.flatMap(({ ttft_ms }) => (ttft_ms === undefined ? [] : [ttft_ms]));
  const withoutUsage = counted.filter(
    (each) => isSuccess(each) && each.request.fields.prompt_tokens === undefined,
  );
  return new Map<string, number | null>([
    ['requests', counted.length],
    ['attempts', sum(fields, ({ attempts }) => attempts)],
    ...outcomes,
    ['without_usage', withoutUsage.length],
    ['prompt_tokens', sum(fields, ({ prompt_tokens }) => prompt_tokens)],
    ['completion_tokens', sum(fields, ({ completion_tokens }) => completion_tokens)],
    ['cached_tokens', sum(fields, ({ cached_tokens }) => cached_tokens)],
    ['reasoning_tokens', sum(fields, ({ reasoning_tokens }) => reasoning_tokens)],
    ['gpu_seconds', sum(counted, toGpuSeconds)],
    ...toTimes('e2e_ms', times, successTimes),
    ...toTimes('ttft_ms', firstTimes),
    ['ttft_ms count', firstTimes.length],
    ...[...costs].map(([currency, own]) => [`cost ${currency}`, sum(own, toCost)] as const),
    ...[...failures].map(([why, own]) => [`failures ${why}`, own.length] as const),
  ]);
}

/** `measured`: those of which the quantiles are. */
function toTimes(
  name: string,
  times: readonly number[],
  measured = times,
): readonly (readonly [string, number | null])[] {
  const sorted = measured.toSorted((a, b) => a - b);
  const quantile = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? null;
  const mean = times.length === 0 ? null : times.reduce((sum, ms) => sum + ms, 0) / times.length;
  return [
    [`${name} mean`, mean],
    [`${name} p50`, quantile(0.5)],
    [`${name} p95`, quantile(0.95)],
  ];
}

/** Counts are the same; amounts, but for the rounding of doubles; means and quantiles, as near as is promised. */
function isAsExpected(name: string, is?: number | null, expected?: number | null): boolean {
  if (typeof is !== 'number' || typeof expected !== 'number') return is === expected;
  if (/ p\d\d$/.test(name)) return Math.abs(is - expected) <= QUANTILE_WITHIN * expected;
  if (name.endsWith(' mean')) return Math.abs(is - expected) <= MEAN_WITHIN;
  return name === 'gpu_seconds' || name.startsWith('cost ') ? isSame(is, expected) : is === expected;
}

/** All dimensions, each alone, and none. */
export const GROUPINGS: readonly (readonly Dimension[])[] = [
  [],
  ...DIMENSIONS.map((name) => [name]),
  DIMENSIONS,
];
