/** @import { Level } from '../traffic/levels.js' */
/** @import { Replica } from './state.js' */
import { formatCount, formatMs, formatRate, formatShare } from '../elements/format.js';
import { explainAttempts, toClientErrorLevel, toErrorLevel } from '../traffic/levels.js';
import { toInflight, toStateKind, toUrgency } from './state.js';

/**
 * A column of numbers.
 * @typedef {object} NumberColumn
 * @property {string} id in the URL and in styles
 * @property {string} title
 * @property {string} [aside] a second line of the title
 * @property {(replica: Replica) => number | null} value to sort by; null is last
 * @property {(replica: Replica) => string} text
 * @property {(replica: Replica) => string} [extra] shown fainter beside the text
 * @property {(replica: Replica) => Level} [level]
 * @property {(replica: Replica) => string} [explain] the title of a cell
 */

/** The share of failed attempts and their number: the latencies beside them are of successes only. */
/** @type {readonly NumberColumn[]} */
export const NUMBER_COLUMNS = [
  {
    id: 'errors',
    title: 'Errors',
    value: ({ last_minute }) => toShare(last_minute.errors, last_minute.attempts),
    text: ({ last_minute }) => formatShare(last_minute.errors, last_minute.attempts),
    extra: ({ last_minute }) => (last_minute.errors === 0 ? '' : formatCount(last_minute.errors)),
    level: ({ last_minute }) => toErrorLevel(last_minute.errors, last_minute.attempts),
    explain: ({ last_minute }) => explainAttempts(last_minute),
  },
  { id: 'inflight', title: 'In flight', value: ({ inflight }) => inflight, text: toInflight },
  {
    id: 'trend',
    title: 'Five minutes',
    value: ({ trend }) => trend.attempts.reduce((sum, count) => sum + count, 0),
    text: () => '',
  },
  {
    id: 'requests',
    title: 'Requests/s',
    value: ({ last_minute }) => last_minute.requests_per_s,
    text: ({ last_minute }) => formatRate(last_minute.requests_per_s),
    extra: ({ last_minute }) => toAttemptRate(last_minute),
    explain: ({ last_minute }) => explainAttempts(last_minute),
  },
  {
    id: 'client_errors',
    title: '4xx',
    value: ({ last_minute }) => toShare(last_minute.client_errors, last_minute.attempts),
    text: ({ last_minute }) => formatShare(last_minute.client_errors, last_minute.attempts),
    level: ({ last_minute }) => toClientErrorLevel(last_minute.client_errors, last_minute.attempts),
    explain: ({ last_minute }) => explainAttempts(last_minute),
  },
  duration('ttft_p50', 'First token', 'p50', 'ttft_p50_ms'),
  duration('ttft_p95', 'First token', 'p95', 'ttft_p95_ms'),
  duration('latency_p50', 'Latency', 'p50', 'latency_p50_ms'),
  duration('latency_p95', 'Latency', 'p95', 'latency_p95_ms'),
  {
    id: 'tokens',
    title: 'Tokens/s',
    value: ({ last_minute }) => last_minute.output_tokens_per_s,
    text: ({ last_minute }) => formatRate(last_minute.output_tokens_per_s),
  },
];

/** The columns that the table can be sorted by, besides those of numbers. */
/** @type {readonly { readonly id: string, readonly title: string, value(replica: Replica): string | number }[]} */
const OTHER_COLUMNS = [
  { id: 'name', title: 'Replica', value: ({ name }) => name },
  { id: 'state', title: 'State', value: (replica) => toUrgency(toStateKind(replica)) },
  { id: 'host', title: 'Host', value: toHost },
];

/** All columns that the table can be sorted by. */
/** @type {ReadonlyMap<string, { readonly title: string, readonly aside?: string, value(replica: Replica): string | number | null }>} */
export const SORTABLE = new Map([...OTHER_COLUMNS, ...NUMBER_COLUMNS].map((column) => [column.id, column]));

/**
 * The host and its GPUs.
 * @param {Replica} replica
 */
export function toHost({ host, gpu_model, gpu_count }) {
  if (gpu_model === null) return host;
  return gpu_count === null ? `${host} · ${gpu_model}` : `${host} · ${gpu_count} × ${gpu_model}`;
}

/**
 * @param {string} id
 * @param {string} title
 * @param {string} aside
 * @param {'ttft_p50_ms' | 'ttft_p95_ms' | 'latency_p50_ms' | 'latency_p95_ms'} field
 * @returns {NumberColumn}
 */
function duration(id, title, aside, field) {
  return {
    id,
    title,
    aside,
    value: ({ last_minute }) => last_minute[field],
    text: ({ last_minute }) => formatMs(last_minute[field]),
    explain: ({ last_minute }) => explainAttempts(last_minute),
  };
}

/**
 * The attempts per second, where they are others than the requests; otherwise empty.
 * @param {Replica['last_minute']} traffic
 */
function toAttemptRate({ requests, attempts, attempts_per_s }) {
  return attempts === requests ? '' : `of ${formatRate(attempts_per_s)}`;
}

/**
 * @param {number} part
 * @param {number} all
 */
function toShare(part, all) {
  return all === 0 ? null : part / all;
}
