/** @import { UsageJson } from '../../../routes/history/usage.ts' */

/** Usage as a file for a spreadsheet: the one that `gateway usage --csv` writes. Pure. */

/** @type {readonly (Exclude<keyof UsageJson['total'], 'e2e_ms' | 'ttft_ms' | 'costs' | 'failures'>)[]} */
const COUNTS = [
  'requests',
  'attempts',
  'errors',
  'client_errors',
  'canceled',
  'without_usage',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'gpu_seconds',
];

/**
 * The rows as comma-separated values (RFC 4180), with a line of heads. A cost has a column for each currency.
 * @param {Pick<UsageJson, 'rows' | 'by'>} usage
 */
export function toCsv({ rows, by }) {
  const currencies = [...new Set(rows.flatMap(({ costs }) => Object.keys(costs)))].toSorted();
  const heads = [
    ...['start', ...by, 'other', ...COUNTS],
    ...currencies.map((currency) => `cost_${currency}`),
    ...['e2e_ms', 'ttft_ms'].flatMap((name) => ['mean', 'p50', 'p95'].map((what) => `${name}_${what}`)),
  ];
  const lines = rows.map((row) => {
    const names = /** @type {Readonly<Record<string, unknown>>} */ (row);
    return [
      ...[row.start, ...by.map((name) => toName(names[name])), String(row.other)],
      ...COUNTS.map((name) => String(row[name])),
      ...currencies.map((currency) => String(row.costs[currency] ?? 0)),
      ...[row.e2e_ms, row.ttft_ms].flatMap(({ mean, p50, p95 }) => [mean, p50, p95].map(toNumber)),
    ];
  });
  return [heads, ...lines].map((cells) => `${cells.map(quote).join(',')}\r\n`).join('');
}

/** Names of tenants are anybody's: a spreadsheet would compute what looks like a formula. @param {unknown} name */
function toName(name) {
  if (typeof name !== 'string') return '';
  return /^[=+\-@\t\r]/.test(name) ? `'${name}` : name;
}

/** @param {number | null} ms */
function toNumber(ms) {
  return ms === null ? '' : String(ms);
}

/** @param {string} cell */
function quote(cell) {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
