import { memberOf } from '../../../json/members.ts';
import { type Paint, type Style, WITHOUT_PAINT } from '../../terminal/paint.ts';
import { toAge, toNameAndState } from '../../terminal/replica-cells.ts';
import { type Cell, toOneLine, toTable } from '../../terminal/table.ts';
import { rowsOf, sortKeyOf, type TopView } from './view.ts';

/** The thresholds of the dashboard: shares of failed requests that are yellow or red. One or two are never red. */
const WARNING_SHARE = 0.01;
const ALARM_SHARE = 0.05;
const LEAST_ALARM_ERRORS = 3;
/** Shares of 4xx answers that are yellow. They are never red: the client can be at fault. */
const WARNING_CLIENT_SHARE = 0.1;
const LEAST_CLIENT_ERRORS = 3;

const BY_REPLICA: TopView = { by: 'replica', sort: 'inflight' };

/** Formats an overview of the admin API. `gateway` is shown as its source. */
export function toOverviewText(
  overview: unknown,
  gateway: string,
  view: TopView = BY_REPLICA,
  paint: Paint = WITHOUT_PAINT,
): string {
  const time = String(memberOf(overview, 'time'));
  const nowEpochMs = Date.parse(time);
  const upMs = nowEpochMs - Date.parse(String(memberOf(overview, 'started_at')));
  const head = [
    [
      ...toIdentity(memberOf(overview, 'gateway')),
      `up ${toAge(upMs)}`,
      `${time.slice(11, 19)} UTC`,
      gateway,
    ].join('  '),
    `last minute  ${toTrafficText(memberOf(overview, 'last_minute'))}`,
    `records  ${toExportText(memberOf(overview, 'stats'))}; ${toCollectorText(overview)}`,
    `by ${view.by}, sorted by ${sortKeyOf(view)}`,
  ];
  const table = toTrafficTable(rowsOf(overview, view), view, { nowEpochMs, paint });
  return `${head.map((line) => `${toOneLine(line)}\n`).join('')}\n${table}`;
}

/** The gateway's name and version. */
function toIdentity(gateway: unknown): readonly string[] {
  const parts = [memberOf(gateway, 'name'), memberOf(gateway, 'version')];
  const known = parts.filter((part) => typeof part === 'string');
  return known.length === 0 ? [] : [known.join(' ')];
}

function toTrafficText(traffic: unknown): string {
  const requests = memberOf(traffic, 'requests');
  const rates = [
    `${toDecimal(memberOf(traffic, 'requests_per_s'))} requests/s`,
    `${toDecimal(memberOf(traffic, 'output_tokens_per_s'))} output tokens/s`,
    `${toCountAndShare(memberOf(traffic, 'errors'), requests)} errors`,
    `${toCountAndShare(memberOf(traffic, 'client_errors'), requests)} 4xx`,
  ];
  return rates.join('  ');
}

/** The counters that show whether records are delivered. */
function toExportText(stats: unknown): string {
  const names = ['recorded', 'exported', 'queued', 'dropped', 'rejected', 'failed_calls'];
  return names.map((name) => `${String(memberOf(stats, name))} ${name.replace('_', ' ')}`).join('  ');
}

/** In the words of the dashboard. */
function toCollectorText(overview: unknown): string {
  const state = String(memberOf(memberOf(overview, 'collector'), 'state'));
  if (state === 'taking' && memberOf(overview, 'export_to') === 'file') return 'written to files';
  return COLLECTOR_WORDS.get(state) ?? `collector ${state}`;
}

const COLLECTOR_WORDS: ReadonlyMap<string, string> = new Map([
  ['taking', 'collector is accepting records'],
  ['refusing', 'collector is rejecting records'],
  ['failing', 'export calls fail'],
  ['idle', 'nothing to send yet'],
]);

const TRAFFIC_COLUMNS = [
  ...['REQ/S', 'ERRORS', '4XX', 'TOKENS/S'],
  ...['TTFT P50', 'TTFT P95', 'E2E P50', 'E2E P95'],
];
/** Shown if the GPU time of a row is known. */
const GPU_COLUMN = 'GPU TIME';

function toTrafficTable(
  rows: readonly unknown[],
  { by }: TopView,
  { nowEpochMs, paint }: { readonly nowEpochMs: number; readonly paint: Paint },
): string {
  if (rows.length === 0)
    return by === 'replica' ? 'no replicas\n' : `no requests with a ${by} in the last minute\n`;
  const isByReplica = by === 'replica';
  const hasGpuTime = rows.some((row) => toGpuTime(row) !== null);
  const numbers = [
    ...(isByReplica ? ['INFLIGHT'] : []),
    ...TRAFFIC_COLUMNS,
    ...(hasGpuTime ? [GPU_COLUMN] : []),
  ];
  const head = isByReplica ? ['NAME', 'STATE', ...numbers] : ['NAME', ...numbers];
  const cells = rows.map((row) => [
    ...(isByReplica
      ? [...toNameAndState(row, nowEpochMs), toDecimal(memberOf(row, 'inflight'))]
      : [String(memberOf(row, 'name'))]),
    ...toTrafficCells(memberOf(row, 'last_minute')),
    ...(hasGpuTime ? [toTime(toGpuTime(row))] : []),
  ]);
  return toTable(head, cells, { paint, rightAligned: numbers });
}

function toTrafficCells(traffic: unknown): readonly Cell[] {
  const requests = memberOf(traffic, 'requests');
  return [
    toDecimal(memberOf(traffic, 'requests_per_s')),
    toShareCell(memberOf(traffic, 'errors'), requests, toErrorStyle),
    toShareCell(memberOf(traffic, 'client_errors'), requests, toClientErrorStyle),
    toDecimal(memberOf(traffic, 'output_tokens_per_s')),
    toTime(memberOf(traffic, 'ttft_p50_ms')),
    toTime(memberOf(traffic, 'ttft_p95_ms')),
    toTime(memberOf(traffic, 'latency_p50_ms')),
    toTime(memberOf(traffic, 'latency_p95_ms')),
  ];
}

/** Milliseconds; null if it is not known. */
function toGpuTime(row: unknown): number | null {
  const seconds = memberOf(memberOf(row, 'last_minute'), 'gpu_seconds');
  return typeof seconds === 'number' ? seconds * 1000 : null;
}

function toShareCell(
  count: unknown,
  requests: unknown,
  toStyle: (count: number, share: number) => Style | null,
): Cell {
  const text = toCountAndShare(count, requests);
  return { text, style: toStyle(Number(count), Number(count) / Number(requests)) };
}

function toErrorStyle(count: number, share: number): Style | null {
  if (share >= ALARM_SHARE && count >= LEAST_ALARM_ERRORS) return 'red';
  return share >= WARNING_SHARE ? 'yellow' : null;
}

function toClientErrorStyle(count: number, share: number): Style | null {
  return share >= WARNING_CLIENT_SHARE && count >= LEAST_CLIENT_ERRORS ? 'yellow' : null;
}

/** Such as `12 (30 %)`; the count alone if it is 0. */
function toCountAndShare(count: unknown, requests: unknown): string {
  const text = toDecimal(count);
  if (typeof count !== 'number' || typeof requests !== 'number' || count === 0 || requests === 0) return text;
  const percent = (count / requests) * 100;
  return `${text} (${percent < 0.1 ? '< 0.1' : toDecimal(Number(percent.toPrecision(2)))} %)`;
}

/** One decimal for fractions below 100, otherwise none. */
function toDecimal(value: unknown): string {
  if (typeof value !== 'number') return '-';
  return Number.isInteger(value) || value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

function toTime(ms: unknown): string {
  if (typeof ms !== 'number') return '-';
  return ms < 10_000 ? `${ms.toFixed(0)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
