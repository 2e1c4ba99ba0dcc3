import { memberOf } from '../../json/members.ts';
import type { Paint, Style } from './paint.ts';
import { toOneLine } from './table.ts';

/** Model and tenant names come from clients and may be long. The record keeps the whole name. */
const MAX_NAME_CHARS = 40;

/**
 * Formats records of the admin API as the next lines of a table, below one line of heads. Columns are aligned within
 * each call; a column becomes wider, and never narrower, as longer values come.
 */
export type RecordTable = (records: readonly unknown[]) => string;

/** A column: its head, its least width, and its cell for a record. */
interface Column {
  readonly head: string;
  readonly width: number;
  readonly isNumber?: boolean;
  readonly toText: (record: unknown) => string;
}

const toName = (name: string) => (record: unknown) => {
  const value = memberOf(record, name);
  const text = typeof value === 'string' ? toOneLine(value) : '-';
  return text.length > MAX_NAME_CHARS ? `${text.slice(0, MAX_NAME_CHARS - 1)}…` : text;
};

const toCount = (name: string) => (record: unknown) => {
  const value = memberOf(record, name);
  return typeof value === 'number' ? String(value) : '-';
};

const toMs = (name: string) => (record: unknown) => {
  const value = memberOf(record, name);
  if (typeof value !== 'number') return '-';
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ms`;
};

const toSeconds = (name: string) => (record: unknown) => {
  const value = memberOf(record, name);
  if (typeof value !== 'number') return '-';
  return `${value < 10 ? value.toFixed(3) : value.toFixed(1)} s`;
};

const COLUMNS: readonly Column[] = [
  // The time is UTC, as in the record.
  { head: 'TIME', width: 12, toText: (record) => toOneLine(String(memberOf(record, 'ts'))).slice(11, 23) },
  { head: 'STATUS', width: 6, isNumber: true, toText: toCount('status') },
  { head: 'REPLICA', width: 8, toText: toName('replica') },
  { head: 'MODEL', width: 12, toText: toName('model') },
  { head: 'TENANT', width: 8, toText: toName('tenant') },
  { head: 'ENDPOINT', width: 11, toText: (record) => toEndpoint(record) },
  { head: 'IN', width: 6, isNumber: true, toText: toCount('prompt_tokens') },
  { head: 'OUT', width: 5, isNumber: true, toText: toCount('completion_tokens') },
  { head: 'TTFT', width: 8, isNumber: true, toText: toMs('ttft_ms') },
  { head: 'E2E', width: 9, isNumber: true, toText: toMs('e2e_ms') },
  // In seconds, as in the record: a request on many GPUs has minutes of them.
  { head: 'GPU', width: 7, isNumber: true, toText: toSeconds('gpu_seconds') },
  { head: 'TRACE', width: 32, toText: toName('trace_id') },
  { head: 'ERROR', width: 0, toText: toError },
];

/** Creates a table with columns two spaces apart. A line is painted by the status of its record. */
export function createRecordTable(paint: Paint): RecordTable {
  const widths = COLUMNS.map(({ width }) => width);
  let hasHead = false;
  const toLine = (texts: readonly string[]) => {
    const cells = texts.map((text, index) => {
      const width = widths[index] ?? 0;
      return COLUMNS[index]?.isNumber === true ? text.padStart(width) : text.padEnd(width);
    });
    return cells.join('  ').trimEnd();
  };
  return (records) => {
    if (records.length === 0) return '';
    const rows = records.map((record) => COLUMNS.map(({ toText }) => toText(record)));
    for (const row of rows) {
      for (const [index, text] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, text.length);
    }
    const lines = rows.map((row, index) => paint(toLine(row), toStyle(records[index])));
    if (!hasHead) lines.unshift(paint(toLine(COLUMNS.map(({ head }) => head)), 'bold'));
    hasHead = true;
    return `${lines.join('\n')}\n`;
  };
}

/** The words of the path that tell endpoints apart. */
function toEndpoint(record: unknown): string {
  return toName('endpoint')(record).replace('/v1/', '').replace('chat/completions', 'chat');
}

/** The error, and how many attempts it took if it was not one. */
function toError(record: unknown): string {
  const error = memberOf(record, 'error_type');
  const attempts = memberOf(record, 'attempts');
  const parts = [
    ...(typeof error === 'string' ? [toName('error_type')(record)] : []),
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
