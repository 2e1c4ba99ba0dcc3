import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { type Cell, type Column, createPaint, type Paint, tableWidthOf, toTable } from '#cli/terminal';
import { printJson } from '../print-json.ts';
import { toCostText } from '../tables/cost-text.ts';
import { toCsv, toCsvName } from '../tables/csv.ts';
import { toFigureText } from '../tables/figure-text.ts';
import { openHistories, reportLacks, toSpanQuery } from './history-gateways.ts';
import type { LocalTime } from './local-time.ts';
import { COUNTS, sumUsage, type Times, type Usage, type UsageRow, type UsageSums } from './usage-sums.ts';

/**
 * `gateway usage`: sums the requests of a span, of all gateways that are named. What is missing is said on standard error.
 * Throws a UsageError or what a call throws: without one of the gateways there is no sum.
 */
export async function usage({ args, env, stdout, stderr }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.usage.options);
  if (values.csv && values.json) throw new UsageError("options '--csv' and '--json' exclude each other");
  const { query, time } = toSpanQuery(values);
  const { by = 'tenant', step, tenant, client, model, replica, endpoint } = values;
  const asked = Object.entries({
    ...query,
    by,
    step,
    tenant,
    client,
    model,
    replica,
    endpoint,
    limit: '99999',
  });
  const params = new URLSearchParams(
    asked.filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const clients = await openHistories(values, { env, stderr });
  const answers = await Promise.all(
    clients.map(async (each) => ({
      baseUrl: each.baseUrl,
      answer: await each.call('GET', `/admin/usage?${params}`),
    })),
  );
  const summed = sumUsage(answers, step !== undefined);
  reportLacks(stderr, answers, time);
  if (values.json) printJson(stdout, answers.length === 1 ? answers[0]?.answer : toJson(summed, answers));
  else if (values.csv) stdout.write(toUsageCsv(summed));
  else {
    const look = { paint: createPaint(stdout, env), width: tableWidthOf(stdout) };
    stdout.write(toUsageTable(summed, time, look));
  }
  return 0;
}

/** In the form of the answer of one gateway, with the answers that were summed. */
function toJson({ by, rows, total, hasSteps: _, ...span }: Usage, answers: readonly object[]) {
  return {
    ...span,
    by,
    rows: rows.map(({ group, ...row }) => ({
      ...row,
      ...Object.fromEntries(by.map((name, index) => [name, group[index] ?? null])),
    })),
    total,
    gateways: answers,
  };
}

const OTHERS = '(all others)';
const UNKNOWN = '-';

/** Formats usage as a table, with its span above and the total below. `width`: of the terminal; null: there is none. */
function toUsageTable(
  usage: Usage,
  time: LocalTime,
  { paint, width }: { readonly paint: Paint; readonly width: number | null },
): string {
  const { rows, by, total, since, until, resolution, hasSteps } = usage;
  const head = `${time.toRfc3339(since)} to ${time.toRfc3339(until)} (${time.zone}), by whole ${resolution}s`;
  const columns: Column[] = [
    ...(hasSteps ? [{ head: 'START' }] : []),
    ...by.map((name) => ({ head: name.toUpperCase(), least: 10 })),
    ...FIGURES,
  ];
  const toCells = (row: UsageSums, names: readonly string[]): Cell[] => [
    ...names,
    ...FIGURES.map(({ toText }) => toText(row)),
  ];
  const lines = rows.map((row) =>
    toCells(row, [...(hasSteps ? [time.toCell(row.start)] : []), ...toNames(row)]),
  );
  const keyed = Number(hasSteps) + by.length;
  const sum = keyed === 0 ? [] : [toCells(total, ['total', ...Array(keyed - 1).fill('')])];
  const body = keyed === 0 ? [toCells(total, [])] : [...lines, ...sum];
  return `${paint(head, 'dim')}\n${toTable(columns, body, { paint, width })}`;
}

interface Figure extends Column {
  readonly toText: (sums: UsageSums) => Cell;
}

/** On a narrow terminal the figures of the largest rank go first. */
const FIGURES: readonly Figure[] = [
  { head: 'REQUESTS', isNumber: true, toText: ({ requests }) => requests },
  { head: 'ERRORS', isNumber: true, rank: 2, toText: ({ errors }) => errors },
  { head: '4XX', isNumber: true, rank: 4, toText: ({ client_errors }) => client_errors },
  { head: 'CANCELED', isNumber: true, rank: 6, toText: ({ canceled }) => canceled },
  { head: 'IN', isNumber: true, rank: 1, toText: ({ prompt_tokens }) => prompt_tokens },
  { head: 'CACHED', isNumber: true, rank: 5, toText: ({ cached_tokens }) => cached_tokens },
  { head: 'OUT', isNumber: true, rank: 1, toText: ({ completion_tokens }) => completion_tokens },
  { head: 'GPU', isNumber: true, rank: 4, toText: ({ gpu_seconds }) => toSeconds(gpu_seconds) },
  { head: 'COST', isNumber: true, rank: 2, toText: toCosts },
  { head: 'E2E P50', isNumber: true, rank: 5, toText: ({ e2e_ms }) => toMs(e2e_ms.p50) },
  { head: 'E2E P95', isNumber: true, rank: 3, toText: ({ e2e_ms }) => toMs(e2e_ms.p95) },
  { head: 'TTFT P95', isNumber: true, rank: 3, toText: ({ ttft_ms }) => toMs(ttft_ms.p95) },
];

function toNames({ group, other }: UsageRow): readonly string[] {
  if (other) return group.map((_, index) => (index === 0 ? OTHERS : ''));
  return group.map((name) => name ?? UNKNOWN);
}

function toSeconds(seconds: number): string {
  return seconds === 0 ? UNKNOWN : `${toFigureText(seconds, 100)} s`;
}

function toCosts({ costs }: UsageSums): string {
  const texts = Object.entries(costs).map(([currency, amount]) => toCostText(amount, currency));
  return texts.length === 0 ? UNKNOWN : texts.join(' + ');
}

function toMs(ms: number | null): string {
  return ms === null ? UNKNOWN : `${toFigureText(ms, 10)} ms`;
}

/** Formats usage as comma-separated values (RFC 4180), with a line of heads. A cost has a column for each currency. */
export function toUsageCsv({ rows, by }: Usage): string {
  const currencies = [...new Set(rows.flatMap(({ costs }) => Object.keys(costs)))].sort();
  const heads = [
    ...['start', ...by, 'other', ...COUNTS],
    ...currencies.map((currency) => `cost_${currency}`),
    ...['e2e_ms', 'ttft_ms'].flatMap((name) => ['mean', 'p50', 'p95'].map((what) => `${name}_${what}`)),
  ];
  const lines = rows.map((row) => [
    ...[row.start, ...row.group.map((name) => toCsvName(name ?? '')), String(row.other)],
    ...COUNTS.map((name) => String(row[name])),
    ...currencies.map((currency) => String(row.costs[currency] ?? 0)),
    ...[...toTexts(row.e2e_ms), ...toTexts(row.ttft_ms)],
  ]);
  return toCsv([heads, ...lines]);
}

const toTexts = ({ mean, p50, p95 }: Times) => [mean, p50, p95].map((ms) => (ms === null ? '' : String(ms)));
