import { memberOf } from '../admin/client.ts';
import type { Paint, Style } from './paint.ts';
import { toOneLine } from './table.ts';

/** Model and tenant names come from clients and may be long. The record keeps the whole name. */
const MAX_NAME_CHARS = 40;

/** A table of records whose rows are written one by one, as they come. */
export interface RecordTable {
  /** Formats the heads of the columns. */
  head(): string;
  /** Formats a record of the admin API. A column becomes wider, and never narrower, as longer values come. */
  row(record: unknown): string;
}

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

const COLUMNS: readonly Column[] = [
  // The time is UTC, as in the record.
  { head: 'TIME', width: 12, toText: (record) => toOneLine(String(memberOf(record, 'ts'))).slice(11, 23) },
  { head: 'STATUS', width: 6, isNumber: true, toText: toCount('status') },
  { head: 'REPLICA', width: 8, toText: toName('replica') },
  { head: 'MODEL', width: 12, toText: toName('model') },
  { head: 'TENANT', width: 8, toText: toName('tenant') },
  { head: 'ENDPOINT', width: 11, toText: (record) => toName('endpoint')(record).replace(/^\/v1\//, '') },
  { head: 'IN', width: 6, isNumber: true, toText: toCount('prompt_tokens') },
  { head: 'OUT', width: 5, isNumber: true, toText: toCount('completion_tokens') },
  { head: 'TTFT', width: 8, isNumber: true, toText: toMs('ttft_ms') },
  { head: 'E2E', width: 9, isNumber: true, toText: toMs('e2e_ms') },
  { head: 'TRACE', width: 32, toText: toName('trace_id') },
  { head: 'ERROR', width: 0, toText: toError },
];

/** Creates a table with columns two spaces apart. A row is painted by its status. */
export function createRecordTable(paint: Paint): RecordTable {
  const widths = COLUMNS.map(({ width }) => width);
  const toLine = (texts: readonly string[]) => {
    const cells = texts.map((text, index) => {
      const width = Math.max(widths[index] ?? 0, text.length);
      widths[index] = width;
      return COLUMNS[index]?.isNumber === true ? text.padStart(width) : text.padEnd(width);
    });
    return cells.join('  ').trimEnd();
  };
  return {
    head: () => `${paint(toLine(COLUMNS.map(({ head }) => head)), 'bold')}\n`,
    row: (record) => `${paint(toLine(COLUMNS.map(({ toText }) => toText(record))), toStyle(record))}\n`,
  };
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
