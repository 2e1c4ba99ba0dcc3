import type { DatabaseSync } from 'node:sqlite';
import { Histogram } from '../histogram.ts';
import type { Gap, Kept, Span, Step, UsageAnswer, UsageQuery, UsageRow } from '../query.ts';
import { hasName, toCondition, USAGE_TABLES, type UsageTable } from '../store/schema.ts';
import { isIntact } from '../store/usage-row.ts';
import { addTo, DIMENSIONS, type Dimension, SUMS, type SumName } from '../usage-sums.ts';
import type { Pace } from './pace.ts';

const MINUTE_MS = USAGE_TABLES.usage_minutes.stepMs;
const HOUR_MS = USAGE_TABLES.usage_hours.stepMs;

/** Rows of one table, in a span of whole steps of it. */
interface Segment extends Span {
  readonly table: UsageTable;
}

/** What is summed, and from which tables. */
interface Plan extends Span {
  readonly resolution: 'minute' | 'hour';
  readonly segments: readonly Segment[];
}

type GroupKey = Pick<UsageRow, 'startMs' | 'group' | 'isOther'>;

/** The sums of one group. */
class Group {
  readonly key: GroupKey;
  readonly sums = Object.fromEntries(SUMS.map((name) => [name, 0])) as Record<SumName, number>;
  readonly failures = new Map<string, number>();
  readonly costs = new Map<string, number>();
  readonly #durations = new Histogram();
  readonly #firstTokens = new Histogram();

  constructor(key: GroupKey) {
    this.key = key;
  }

  add(row: Readonly<Record<string, unknown>>): void {
    for (const name of SUMS) this.sums[name] += Number(row[name]);
    addNamed(this.failures, row.failures);
    addNamed(this.costs, row.costs);
    this.#durations.addEncoded(row.durations as Uint8Array);
    this.#firstTokens.addEncoded(row.first_tokens as Uint8Array);
  }

  addGroup(group: Group): void {
    for (const name of SUMS) this.sums[name] += group.sums[name];
    for (const [why, count] of group.failures) addTo(this.failures, why, count);
    for (const [currency, cost] of group.costs) addTo(this.costs, currency, cost);
    this.#durations.addEncoded(group.#durations.encode());
    this.#firstTokens.addEncoded(group.#firstTokens.encode());
  }

  toRow(): UsageRow {
    return {
      ...this.key,
      sums: this.sums,
      failures: Object.fromEntries(this.failures),
      costs: Object.fromEntries(this.costs),
      duration: toQuantiles(this.#durations),
      firstToken: { count: this.#firstTokens.total, ...toQuantiles(this.#firstTokens) },
    };
  }
}

function toQuantiles(histogram: Histogram) {
  return { p50: histogram.quantile(0.5), p95: histogram.quantile(0.95) };
}

function addNamed(sums: Map<string, number>, text: unknown): void {
  if (text === '{}') return;
  for (const [name, value] of Object.entries<number>(JSON.parse(String(text)))) addTo(sums, name, value);
}

/** Rows of the database are read in pieces of this many of their steps. */
const STEPS_PER_PIECE = 10;

/** Sums the usage of a span. Null: it takes too long. */
export async function queryUsage(
  db: DatabaseSync,
  query: UsageQuery,
  { readKept, pace }: { readonly readKept: () => Kept; readonly pace: Pace },
): Promise<Omit<UsageAnswer, 'unknown'> | null> {
  const plan = toPlan(query, readKept());
  const groups = new Map<string, Group>();
  const damaged = new Map<string, Gap>();
  const filtered = DIMENSIONS.filter((name) => query.filters[name] !== undefined);
  const values = filtered.map((name) => query.filters[name] ?? '');
  let unnamed = 0;
  for (const segment of plan.segments) {
    const { stepMs } = USAGE_TABLES[segment.table];
    const pieceMs = STEPS_PER_PIECE * stepMs;
    const select = db.prepare(toSelect(segment.table, filtered));
    for (let at = segment.fromMs; at < segment.untilMs; at += pieceMs) {
      for (const row of select.iterate(at, Math.min(at + pieceMs, segment.untilMs), ...values)) {
        if (isIntact(row)) {
          if (filtered.every((name) => hasName(Number(row.is_other), name))) addRow(groups, row, query, plan);
          else unnamed += Number(row.requests);
        } else {
          const fromMs = Number(row.at);
          const gap = { fromMs, toMs: fromMs + stepMs - 1, records: null, reason: 'damaged' } as const;
          damaged.set(`${fromMs} ${stepMs}`, gap);
        }
      }
      if (pace.isDue && !(await pace.pause())) return null;
    }
  }
  const total = new Group({ startMs: plan.fromMs, group: query.by.map(() => null), isOther: false });
  for (const group of groups.values()) total.addGroup(group);
  const kept = readKept();
  return {
    kind: 'usage',
    fromMs: plan.fromMs,
    untilMs: plan.untilMs,
    resolution: plan.resolution,
    rows: toRows([...groups.values()], query),
    total: total.toRow(),
    unnamed,
    gaps: [...damaged.values()],
    kept,
    isComplete: plan.fromMs >= (plan.resolution === 'minute' ? kept.minutesMs : kept.hoursMs) - HOUR_MS,
  };
}

/**
 * Which rows sum a span: those of its whole hours, and of minutes at its ends. Where minutes are not kept any more, the span
 * is rounded to hours. With steps of minutes, minutes alone are read.
 */
function toPlan({ fromMs, untilMs, step }: UsageQuery, { minutesMs, hoursMs }: Kept): Plan {
  const stepMs = step !== null && 'ms' in step ? step.ms : null;
  const unitMs = stepMs === null ? MINUTE_MS : Math.min(stepMs, HOUR_MS);
  const from = floor(Math.max(fromMs, floor(hoursMs, HOUR_MS)), unitMs);
  const until = Math.max(ceil(untilMs, MINUTE_MS), from);
  if (stepMs !== null && stepMs % HOUR_MS !== 0) {
    const span = { fromMs: Math.min(Math.max(from, floor(minutesMs, unitMs)), until), untilMs: until };
    return { ...span, resolution: 'minute', segments: [{ ...span, table: 'usage_minutes' }] };
  }
  // Minutes before this time were removed: at an end of the span that needs them, it is rounded to an hour.
  const goneMs = minutesMs > hoursMs ? floor(minutesMs, MINUTE_MS) : 0;
  const start = from < goneMs ? floor(from, HOUR_MS) : from;
  const end = floor(until, HOUR_MS) < goneMs ? ceil(until, HOUR_MS) : until;
  const firstHour = Math.min(ceil(start, HOUR_MS), end);
  const lastHour = Math.max(floor(end, HOUR_MS), firstHour);
  const segments: readonly Segment[] = [
    { table: 'usage_minutes', fromMs: start, untilMs: firstHour },
    { table: 'usage_hours', fromMs: firstHour, untilMs: lastHour },
    { table: 'usage_minutes', fromMs: lastHour, untilMs: end },
  ];
  const used = segments.filter((segment) => segment.fromMs < segment.untilMs);
  return {
    fromMs: start,
    untilMs: end,
    segments: used,
    resolution:
      start % HOUR_MS === 0 && used.every(({ table }) => table === 'usage_hours') ? 'hour' : 'minute',
  };
}

function floor(ms: number, unitMs: number): number {
  return ms - (ms % unitMs);
}

function ceil(ms: number, unitMs: number): number {
  return floor(ms + unitMs - 1, unitMs);
}

function toSelect(table: UsageTable, filtered: readonly Dimension[]): string {
  const filters = filtered.map((name) => `AND ${toCondition(name)}`);
  return `SELECT * FROM ${table} WHERE at >= ? AND at < ? ${filters.join(' ')}`;
}

function addRow(
  groups: Map<string, Group>,
  row: Readonly<Record<string, unknown>>,
  { by, step }: UsageQuery,
  { fromMs }: Plan,
): void {
  const startMs = toStepStart(Number(row.at), step, fromMs);
  const isOther = !by.every((name) => hasName(Number(row.is_other), name));
  const names = by.map((name) => String(row[name]) || null);
  const key = `${startMs}\n${isOther}\n${names.join('\n')}`;
  const group = groups.get(key) ?? new Group({ startMs, group: names, isOther });
  groups.set(key, group);
  group.add(row);
}

function toStepStart(at: number, step: Step | null, fromMs: number): number {
  if (step === null) return fromMs;
  if ('ms' in step) return fromMs + Math.floor((at - fromMs) / step.ms) * step.ms;
  return Math.max(step.starts.findLast((ms) => ms <= at) ?? fromMs, fromMs);
}

/** The rows by time, then the largest first. What is beyond the limit is summed in one row of its step. */
function toRows(groups: readonly Group[], { limit, by }: UsageQuery): readonly UsageRow[] {
  const steps = Map.groupBy(groups, ({ key }) => key.startMs);
  const perStep = Math.max(1, Math.floor(limit / Math.max(1, steps.size)));
  return [...steps.entries()]
    .sort(([a], [b]) => a - b)
    .flatMap(([startMs, inStep]) => {
      const sorted = inStep.toSorted((a, b) => b.sums.requests - a.sums.requests);
      const own = sorted.filter(({ key }) => !key.isOther).slice(0, perStep);
      const rest = sorted.filter((group) => !own.includes(group));
      if (rest.length === 0) return own.map((group) => group.toRow());
      const other = new Group({ startMs, group: by.map(() => null), isOther: true });
      for (const each of rest) other.addGroup(each);
      return [...own, other].map((group) => group.toRow());
    });
}
