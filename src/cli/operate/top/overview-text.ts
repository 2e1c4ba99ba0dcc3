import { memberOf } from '#base/parsed';
import { type Cell, type Column, type Style, toTable } from '#cli/terminal';
import { toCostCell } from '../../tables/cost-text.ts';
import { NAME_AND_STATE, toAge, toNameAndState } from '../../tables/replica-cells.ts';
import { foldParts, toDecimal, toIdentity } from '../head-parts.ts';
import { rowsOf, sortKeyOf, type TopView } from './view.ts';

/** The thresholds of the dashboard: shares of failed requests, or of failed attempts at a replica, that are yellow or red. One or two are never red. */
const WARNING_SHARE = 0.01;
const ALARM_SHARE = 0.05;
const LEAST_ALARM_ERRORS = 3;
/** Shares of 4xx answers that are yellow. They are never red: the client can be at fault. */
const WARNING_CLIENT_SHARE = 0.1;
const LEAST_CLIENT_ERRORS = 3;

type TableLook = Parameters<typeof toTable>[2];

const BY_REPLICA: TopView = { by: 'replica', sort: 'inflight' };

/** Formats an overview of the admin API. `gateway` is shown as its source. */
export function toOverviewText(
  overview: unknown,
  gateway: string,
  view: TopView = BY_REPLICA,
  look: TableLook = { paint: (text) => text },
): string {
  const time = String(memberOf(overview, 'time'));
  const nowEpochMs = Date.parse(time);
  const upMs = nowEpochMs - Date.parse(String(memberOf(overview, 'started_at')));
  const head = [
    [...toIdentity(memberOf(overview, 'gateway')), `up ${toAge(upMs)}`, `${time.slice(11, 19)} UTC`, gateway],
    ['last minute', ...toTrafficTexts(memberOf(overview, 'last_minute'))],
    ['records', ...toExportTexts(memberOf(overview, 'stats'), toCollectorText(overview))],
    [`by ${view.by}, sorted by ${sortKeyOf(view)}`],
  ];
  const { width = null } = look;
  const lines = head.flatMap((parts) => foldParts(parts, width));
  const table = toTrafficTable(rowsOf(overview, view), view, nowEpochMs, look);
  return `${lines.map((line) => `${line}\n`).join('')}\n${table}`;
}

function toTrafficTexts(traffic: unknown): readonly string[] {
  const requests = memberOf(traffic, 'requests');
  return [
    `${toDecimal(memberOf(traffic, 'requests_per_s'))} requests/s`,
    `${toDecimal(memberOf(traffic, 'output_tokens_per_s'))} output tokens/s`,
    `${toCountAndShare(memberOf(traffic, 'errors'), requests)} errors`,
    `${toCountAndShare(memberOf(traffic, 'client_errors'), requests)} 4xx`,
  ];
}

/** The counters that show whether records are delivered, and where they go. */
function toExportTexts(stats: unknown, collector: string): readonly string[] {
  const names = ['recorded', 'exported', 'queued', 'dropped', 'rejected', 'failed_calls'];
  const counters = names.map((name) => {
    const count = memberOf(stats, name);
    return `${toDecimal(count)} ${name.replace('_calls', count === 1 ? ' call' : ' calls')}`;
  });
  return [...counters.slice(0, -1), `${counters.at(-1)}; ${collector}`];
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

/** A column with its cell for the traffic of a row. */
interface TrafficColumn extends Column {
  readonly toCell: (traffic: unknown) => Cell;
}

const toRate = (name: string) => (traffic: unknown) => toDecimal(memberOf(traffic, name));
const toMs = (name: string) => (traffic: unknown) => toTime(memberOf(traffic, name));

/** A narrow terminal leaves out the columns that the page leaves out, in the same order. */
const TRAFFIC_COLUMNS: readonly TrafficColumn[] = [
  { head: 'REQ/S', isNumber: true, rank: 2, toCell: toRate('requests_per_s') },
  { head: 'ERRORS', isNumber: true, toCell: toShareCell('errors', toErrorStyle) },
  { head: '4XX', isNumber: true, rank: 4, toCell: toShareCell('client_errors', toClientErrorStyle) },
  { head: 'TOKENS/S', isNumber: true, rank: 4, toCell: toRate('output_tokens_per_s') },
  { head: 'TTFT P50', isNumber: true, rank: 5, toCell: toMs('ttft_p50_ms') },
  { head: 'TTFT P95', isNumber: true, rank: 3, toCell: toMs('ttft_p95_ms') },
  { head: 'E2E P50', isNumber: true, rank: 5, toCell: toMs('latency_p50_ms') },
  { head: 'E2E P95', isNumber: true, rank: 2, toCell: toMs('latency_p95_ms') },
];
const INFLIGHT_COLUMN: Column = { head: 'INFLIGHT', isNumber: true };
/** Shown if a replica has any. */
const BACKGROUND_COLUMN: Column = { head: 'BACKGROUND', isNumber: true, rank: 1 };
/** Shown if the attempts at a replica are others than its requests: some failed, and other replicas were tried. */
const ATTEMPTS_COLUMN: Column = { head: 'ATTEMPTS/S', isNumber: true, rank: 1 };
/** Shown if the GPU time of a row is known. */
const GPU_COLUMN: TrafficColumn = { head: 'GPU TIME', isNumber: true, rank: 6, toCell: toGpuTime };
/** Shown if the cost of a row is known. */
const COST_COLUMN: TrafficColumn = { head: 'COST', isNumber: true, rank: 5, toCell: toCostCell };

/** The column that the rows are sorted by always stays. */
const SORT_COLUMNS: Readonly<Partial<Record<TopView['sort'], string>>> = {
  requests: 'REQ/S',
  latency: 'E2E P95',
};

function toTrafficTable(
  rows: readonly unknown[],
  view: TopView,
  nowEpochMs: number,
  look: TableLook,
): string {
  const { by } = view;
  if (rows.length === 0)
    return by === 'replica' ? 'no replicas\n' : `no requests with a ${by} in the last minute\n`;
  const isByReplica = by === 'replica';
  const hasBackground = isByReplica && rows.some((row) => Number(memberOf(row, 'background') ?? 0) > 0);
  const hasAttempts = isByReplica && rows.some(hasFurtherAttempts);
  const isKnown = (name: string) =>
    rows.some((row) => typeof memberOf(memberOf(row, 'last_minute'), name) === 'number');
  const figures = [
    ...TRAFFIC_COLUMNS,
    ...(isKnown('gpu_seconds') ? [GPU_COLUMN] : []),
    ...(isKnown('cost') ? [COST_COLUMN] : []),
  ];
  const columns = [
    ...(isByReplica ? [...NAME_AND_STATE, INFLIGHT_COLUMN] : NAME_AND_STATE.slice(0, 1)),
    ...(hasBackground ? [BACKGROUND_COLUMN] : []),
    ...(hasAttempts ? [ATTEMPTS_COLUMN] : []),
    ...figures,
  ];
  const sortColumn = SORT_COLUMNS[sortKeyOf(view)];
  const ranked = columns.map((column) => (column.head === sortColumn ? { ...column, rank: 0 } : column));
  const cells = rows.map((row) => [
    ...(isByReplica
      ? [...toNameAndState(row, nowEpochMs), toDecimal(memberOf(row, 'inflight'))]
      : [String(memberOf(row, 'name'))]),
    ...(hasBackground ? [toDecimal(memberOf(row, 'background'))] : []),
    ...(hasAttempts ? [toDecimal(memberOf(memberOf(row, 'last_minute'), 'attempts_per_s'))] : []),
    ...figures.map(({ toCell }) => toCell(memberOf(row, 'last_minute'))),
  ]);
  return toTable(ranked, cells, look);
}

function hasFurtherAttempts(row: unknown): boolean {
  const traffic = memberOf(row, 'last_minute');
  return Number(memberOf(traffic, 'attempts') ?? 0) > Number(memberOf(traffic, 'requests'));
}

function toGpuTime(traffic: unknown): string {
  const seconds = memberOf(traffic, 'gpu_seconds');
  return toTime(typeof seconds === 'number' ? seconds * 1000 : null);
}

function toShareCell(name: string, toStyle: (count: number, share: number) => Style | null) {
  return (traffic: unknown): Cell => {
    const count = memberOf(traffic, name);
    // The errors of a replica are those of its attempts.
    const all = memberOf(traffic, 'attempts') ?? memberOf(traffic, 'requests');
    return { text: toCountAndShare(count, all), style: toStyle(Number(count), Number(count) / Number(all)) };
  };
}

function toErrorStyle(count: number, share: number): Style | null {
  if (share >= ALARM_SHARE && count >= LEAST_ALARM_ERRORS) return 'red';
  return share >= WARNING_SHARE ? 'yellow' : null;
}

function toClientErrorStyle(count: number, share: number): Style | null {
  return share >= WARNING_CLIENT_SHARE && count >= LEAST_CLIENT_ERRORS ? 'yellow' : null;
}

/** Such as `12 (30 %)`; the count alone if it is 0. */
function toCountAndShare(count: unknown, all: unknown): string {
  const text = toDecimal(count);
  if (typeof count !== 'number' || typeof all !== 'number' || count === 0 || all === 0) return text;
  const percent = (count / all) * 100;
  return `${text} (${percent < 0.1 ? '< 0.1' : toDecimal(Number(percent.toPrecision(2)))} %)`;
}

function toTime(ms: unknown): string {
  if (typeof ms !== 'number') return '-';
  return ms < 10_000 ? `${ms.toFixed(0)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
