import { memberOf } from '#base/parsed';
import { type Column, createGrowingTable, type Paint, type Style } from '#cli/terminal';
import { toCostCell } from './cost-text.ts';
import { toFigureText } from './figure-text.ts';

/** Formats records of the admin API as the next lines of a table of this width; null: as wide as they need. */
export type RecordTable = (records: readonly unknown[], width: number | null) => string;

/** A column with its cell for a record. */
interface RecordColumn extends Column {
  readonly usual: number;
  readonly toText: (record: unknown) => string;
}

const toName = (name: string) => (record: unknown) => {
  const value = memberOf(record, name);
  return typeof value === 'string' ? value : '-';
};

const toNumber = (toText: (value: number) => string) => (name: string) => (record: unknown) => {
  const value = memberOf(record, name);
  return typeof value === 'number' ? toText(value) : '-';
};

const toCount = toNumber((count) => count.toLocaleString('en'));
const toMs = toNumber((ms) => `${toFigureText(ms, 10)} ms`);
const toSeconds = toNumber((seconds) => `${seconds.toFixed(seconds < 10 ? 3 : 1)} s`);

/** A narrow terminal leaves out what the page leaves out, and the trace id, of which half is of no use. */
const COLUMNS: readonly RecordColumn[] = [
  // As in the record.
  { head: 'TIME (UTC)', usual: 12, toText: (record) => String(memberOf(record, 'ts')).slice(11, 23) },
  { head: 'STATUS', usual: 6, isNumber: true, toText: toCount('status') },
  { head: 'REPLICA', usual: 8, least: 12, toText: toName('replica') },
  { head: 'MODEL', usual: 12, least: 12, rank: 2, toText: toName('model') },
  { head: 'TENANT', usual: 8, least: 10, rank: 3, toText: toName('tenant') },
  { head: 'ENDPOINT', usual: 11, least: 11, rank: 6, toText: (record) => toEndpoint(record) },
  { head: 'IN', usual: 6, isNumber: true, rank: 6, toText: toCount('prompt_tokens') },
  { head: 'OUT', usual: 5, isNumber: true, rank: 4, toText: toCount('completion_tokens') },
  { head: 'TTFT', usual: 8, isNumber: true, rank: 4, toText: toMs('ttft_ms') },
  { head: 'E2E', usual: 9, isNumber: true, rank: 1, toText: toMs('e2e_ms') },
  // In seconds, as in the record: a request on many GPUs has minutes of them.
  { head: 'GPU', usual: 7, isNumber: true, rank: 7, toText: toSeconds('gpu_seconds') },
  { head: 'COST', usual: 10, isNumber: true, rank: 7, toText: toCostCell },
  { head: 'WHY', usual: 9, rank: 8, toText: toWhy },
  { head: 'TRACE', usual: 32, rank: 5, toText: toName('trace_id') },
  { head: 'ERROR', usual: 0, least: 19, cut: 'end', toText: toError },
];

/**
 * Creates a table that grows. A line is painted by the status of its record. `time`: the zone of times, which then have a
 * date.
 */
export function createRecordTable(paint: Paint, time?: DatedTime): RecordTable {
  const columns = time === undefined ? COLUMNS : [toDatedColumn(time), ...COLUMNS.slice(1)];
  const toLines = createGrowingTable(columns, paint);
  const toRow = (record: unknown) => ({
    texts: columns.map(({ toText }) => toText(record)),
    style: toStyle(record),
  });
  return (records, width) => toLines(records.map(toRow), width);
}

/** How a time with a date is shown, and in which zone. */
interface DatedTime {
  readonly zone: string;
  toCell(value: unknown): string;
}

function toDatedColumn(time: DatedTime): RecordColumn {
  return {
    head: `TIME (${time.zone})`,
    usual: 19,
    toText: (record) => time.toCell(memberOf(record, 'ts')),
  };
}

/** The words of the path that tell endpoints apart. */
function toEndpoint(record: unknown): string {
  return toName('endpoint')(record).replace('/v1/', '').replace('chat/completions', 'chat');
}

/** Why the replica was chosen, from how many, and what ruled others out: `turn of 3`, `only_candidate, 2 drained`. */
function toWhy(record: unknown): string {
  const reason = toName('route_reason')(record);
  const candidates = memberOf(record, 'route_candidates');
  const blocks = memberOf(record, 'route_prefix_blocks');
  const ruledOut = Object.entries(memberOf(record, 'route_ruled_out') ?? {});
  const parts = [
    typeof candidates === 'number' ? `${reason} of ${candidates}` : reason,
    ...(typeof blocks === 'number' ? [blocks === 1 ? '1 block' : `${blocks} blocks`] : []),
    ...ruledOut.map(([what, count]) => `${count} ${what}`),
  ];
  return parts.join(', ');
}

/** The limit that refused it: a narrow terminal cuts the end. The error, and how many attempts it took if not one. */
function toError(record: unknown): string {
  const attempts = memberOf(record, 'attempts');
  const parts = [
    ...['refused_by', 'error_type'].map((name) => toName(name)(record)).filter((text) => text !== '-'),
    ...(typeof attempts === 'number' && attempts > 1 ? [`${attempts} attempts`] : []),
  ];
  return parts.join(', ');
}

/** A request that its client canceled is dim, another 4xx yellow; a 5xx and a broken response are red. */
function toStyle(record: unknown): Style | null {
  const status = Number(memberOf(record, 'status'));
  const error = memberOf(record, 'error_type');
  if (status === 499 || error === 'client_closed') return 'dim';
  if (status >= 500) return 'red';
  if (status >= 400) return 'yellow';
  return error === undefined ? null : 'red';
}
