/** @import { Overview } from '../overview.ts' */
import { Chart } from './chart.js';
import { create, setText } from './dom.js';
import { counted, formatCount, formatMs, formatRate, formatShare } from './format.js';

/** @typedef {Overview['history'][number]} Past */

/**
 * One figure: its title, current value, secondary value, and history.
 * @typedef {object} Tile
 * @property {string} title
 * @property {(overview: Overview) => string} now
 * @property {(overview: Overview) => string} aside
 * @property {(past: Past) => number | null} past
 * @property {(value: number) => string} format
 */

/** @type {readonly Tile[]} */
const TILES = [
  {
    title: 'Requests/s',
    now: ({ last_minute }) => formatRate(last_minute.requests_per_s),
    aside: ({ last_minute: { errors, requests } }) =>
      requests === 0 ? 'no requests' : `${formatShare(errors, requests)} errors`,
    past: ({ requests_per_s }) => requests_per_s,
    format: formatRate,
  },
  {
    title: 'In flight',
    now: ({ replicas }) => formatCount(replicas.reduce((sum, { inflight }) => sum + inflight, 0)),
    aside: ({ replicas, waiting }) =>
      replicas.some(({ max_inflight }) => max_inflight !== null)
        ? `on ${counted(replicas.length, 'replica')}, ${formatCount(waiting)} waiting`
        : `on ${counted(replicas.length, 'replica')}`,
    past: ({ inflight }) => inflight,
    format: formatCount,
  },
  {
    title: 'First token, p95',
    now: ({ last_minute }) => formatMs(last_minute.ttft_p95_ms),
    aside: ({ last_minute }) => `p50 ${formatMs(last_minute.ttft_p50_ms)}`,
    past: ({ ttft_p95_ms }) => ttft_p95_ms,
    format: formatMs,
  },
  {
    title: 'Latency, p95',
    now: ({ last_minute }) => formatMs(last_minute.latency_p95_ms),
    aside: ({ last_minute }) => `p50 ${formatMs(last_minute.latency_p50_ms)}`,
    past: ({ latency_p95_ms }) => latency_p95_ms,
    format: formatMs,
  },
  {
    title: 'Output tokens/s',
    now: ({ last_minute }) => formatRate(last_minute.output_tokens_per_s),
    aside: ({ last_minute: { output_tokens_per_s, requests_per_s } }) =>
      requests_per_s === 0
        ? 'no requests'
        : `${formatCount(output_tokens_per_s / requests_per_s)} per request`,
    past: ({ output_tokens_per_s }) => output_tokens_per_s,
    format: formatRate,
  },
];

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
  parent.append(create('div', { class: 'card tile' }, facts, chartBox));

  /** @type {string | null} */
  let pointed = null;
  let current = '';
  const showAside = () => setText(aside, pointed ?? current);
  const chart = new Chart(chartBox, {
    format: tile.format,
    onPoint(text) {
      pointed = text;
      showAside();
    },
  });
  return (overview) => {
    setText(now, tile.now(overview));
    current = tile.aside(overview);
    showAside();
    chart.show(toPoints(overview.history, tile.past));
  };
}

/**
 * Converts the history to the points of a chart.
 * @param {readonly Past[]} history
 * @param {(past: Past) => number | null} toValue
 */
export function toPoints(history, toValue) {
  return { times: history.map(({ time }) => Date.parse(time)), values: history.map(toValue) };
}
