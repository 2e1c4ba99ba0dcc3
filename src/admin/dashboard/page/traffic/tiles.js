/** @import { Overview } from '../../overview.ts' */
/** @import { Points } from '../elements/chart.js' */
/** @import { Level } from './levels.js' */
import { Chart } from '../elements/chart.js';
import { create, setAttribute, setText } from '../elements/dom.js';
import { counted, formatCount, formatMs, formatRate, formatShare } from '../elements/format.js';
import { LEAST_REQUESTS } from '../elements/scale.js';
import { explainErrors, toClientErrorLevel, toErrorLevel } from './levels.js';

/** @typedef {Overview['history'][number]} Past */

/**
 * One figure: its title, current value, secondary value, and history. `error` is a second line, in red.
 * @typedef {object} Tile
 * @property {string} title
 * @property {(overview: Overview) => string} now
 * @property {(overview: Overview) => string} aside
 * @property {(overview: Overview) => Level} [level]
 * @property {(overview: Overview) => string} [explain]
 * @property {(past: Past) => number | null} past
 * @property {(past: Past) => number | null} [error]
 * @property {(value: number, error: number | null) => string} format
 * @property {boolean} [isErrors] whether only the second line has figures
 * @property {(history: readonly Past[]) => number} least the least value at the top of the chart: small ones stay small
 */

/** A line of failures is as high as this share of the requests at least. */
const LEAST_ERROR_SHARE = 0.05;
/** Charts of durations and of tokens are as high as this at least. */
const LEAST_MS = 10;
const LEAST_TOKENS_PER_S = 10;
/** The seconds in one point of the history. */
const SLICE_SECONDS = 5;

/** @type {readonly Tile[]} */
const TILES = [
  {
    title: 'Requests/s',
    now: ({ last_minute }) => formatRate(last_minute.requests_per_s),
    aside: (overview) => toRequestAside(overview),
    past: ({ requests_per_s }) => requests_per_s,
    error: ({ errors }) => errors / SLICE_SECONDS,
    format: (value, error) =>
      error ? `${formatRate(value)}, ${formatRate(error)} failed` : formatRate(value),
    least: () => LEAST_REQUESTS / SLICE_SECONDS,
  },
  {
    title: 'Errors',
    now: ({ last_minute: { errors, requests } }) => formatShare(errors, requests),
    aside: ({ last_minute }) => toErrorAside(last_minute),
    level: ({ last_minute: { errors, client_errors, requests } }) =>
      toErrorLevel(errors, requests) || toClientErrorLevel(client_errors, requests),
    explain: ({ last_minute }) => explainErrors(last_minute),
    past: () => 0,
    error: ({ errors }) => errors,
    format: (_ground, errors) => `${formatCount(errors ?? 0)} failed`,
    isErrors: true,
    least: (history) =>
      Math.max(LEAST_REQUESTS, LEAST_ERROR_SHARE * Math.max(...history.map(({ requests }) => requests))),
  },
  {
    title: 'In flight',
    now: ({ replicas }) => formatCount(replicas.reduce((sum, { inflight }) => sum + inflight, 0)),
    aside: ({ replicas, waiting }) =>
      replicas.some(({ max_inflight }) => max_inflight !== null)
        ? `on ${counted(replicas.length, 'replica')}, ${formatCount(waiting)} waiting`
        : `on ${counted(replicas.length, 'replica')}`,
    past: ({ inflight }) => inflight,
    format: (value) => formatCount(value),
    least: () => LEAST_REQUESTS,
  },
  {
    title: 'First token, p95',
    now: ({ last_minute }) => formatMs(last_minute.ttft_p95_ms),
    aside: ({ last_minute }) => `p50 ${formatMs(last_minute.ttft_p50_ms)}${toLeftOut(last_minute)}`,
    explain: ({ last_minute }) => explainErrors(last_minute),
    past: ({ ttft_p95_ms }) => ttft_p95_ms,
    format: (value) => formatMs(value),
    least: () => LEAST_MS,
  },
  {
    title: 'Latency, p95',
    now: ({ last_minute }) => formatMs(last_minute.latency_p95_ms),
    aside: ({ last_minute }) => `p50 ${formatMs(last_minute.latency_p50_ms)}${toLeftOut(last_minute)}`,
    explain: ({ last_minute }) => explainErrors(last_minute),
    past: ({ latency_p95_ms }) => latency_p95_ms,
    format: (value) => formatMs(value),
    least: () => LEAST_MS,
  },
  {
    title: 'Output tokens/s',
    now: ({ last_minute }) => formatRate(last_minute.output_tokens_per_s),
    aside: ({ last_minute: { output_tokens_per_s, requests_per_s } }) =>
      requests_per_s === 0
        ? 'no requests'
        : `${formatCount(output_tokens_per_s / requests_per_s)} per request`,
    past: ({ output_tokens_per_s }) => output_tokens_per_s,
    format: (value) => formatRate(value),
    least: () => LEAST_TOKENS_PER_S,
  },
];

/** With the attempts, if replicas had more than requests. @param {Overview} overview */
function toRequestAside({ last_minute, replicas }) {
  const requests = counted(last_minute.requests, 'request');
  if (replicas.every((replica) => replica.last_minute.attempts === replica.last_minute.requests))
    return requests;
  const attempts = replicas.reduce((sum, replica) => sum + replica.last_minute.attempts, 0);
  return `${requests}, ${counted(attempts, 'attempt')}`;
}

/** @param {Overview['last_minute']} traffic */
function toErrorAside({ requests, errors, client_errors }) {
  if (requests === 0) return 'no requests';
  return `${formatCount(errors)} failed, 4xx ${formatShare(client_errors, requests)}`;
}

/** How many requests failed beside the successes that a duration is of. @param {Overview['last_minute']} traffic */
function toLeftOut({ errors }) {
  return errors === 0 ? '' : ` · ${formatCount(errors)} failed`;
}

/**
 * Creates the tiles. The returned function shows an overview in them.
 * @param {HTMLElement} parent
 * @returns {(overview: Overview) => void}
 */
export function createTiles(parent) {
  const tiles = TILES.map((tile) => createTile(parent, tile));
  return (overview) => {
    for (const show of tiles) show(overview);
  };
}

/**
 * @param {HTMLElement} parent
 * @param {Tile} tile
 * @returns {(overview: Overview) => void}
 */
function createTile(parent, tile) {
  const now = create('dd', { class: 'now' });
  const aside = create('dd', { class: 'aside' });
  const chartBox = create('div', { class: 'chart' });
  const facts = create('dl', {}, create('dt', {}, tile.title), now, aside);
  const box = create('div', { class: 'card tile' }, facts, chartBox);
  parent.append(box);

  /** @type {string | null} */
  let pointed = null;
  let current = '';
  const showAside = () => {
    setText(aside, pointed ?? current);
    setAttribute(aside, 'title', pointed ?? current);
  };
  const chart = new Chart(chartBox, {
    ...tile,
    onPoint(text) {
      pointed = text;
      showAside();
    },
  });
  return (overview) => {
    setText(now, tile.now(overview));
    setAttribute(box, 'data-level', tile.level?.(overview) || null);
    setAttribute(now, 'title', tile.explain?.(overview) ?? null);
    current = tile.aside(overview);
    showAside();
    chart.show(toPoints(overview.history, tile.past, tile.error), tile.least(overview.history));
  };
}

/**
 * Converts the history to the points of a chart.
 * @param {readonly Past[]} history
 * @param {(past: Past) => number | null} toValue
 * @param {(past: Past) => number | null} [toError]
 * @returns {Points}
 */
export function toPoints(history, toValue, toError) {
  const times = history.map(({ time }) => Date.parse(time));
  const values = history.map(toValue);
  return toError === undefined ? { times, values } : { times, values, errors: history.map(toError) };
}
