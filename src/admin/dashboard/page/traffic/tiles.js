/** @import { Overview } from '../../overview.ts' */
/** @import { Mark, Points } from '../elements/chart.js' */
/** @import { Point, Sums } from '../history/figures.js' */
/** @import { Past } from '../history/past-loader.js' */
/** @import { Span } from '../history/range.js' */
/** @import { Level } from './levels.js' */
import { Chart } from '../elements/chart.js';
import { create, setAttribute, setText } from '../elements/dom.js';
import { counted, formatCount, formatMs, formatRate, formatShare } from '../elements/format.js';
import { LEAST_REQUESTS } from '../elements/scale.js';
import { toKnownSpan, toLivePoints, toMeanInflight, toPoints } from '../history/figures.js';
import { LIVE } from '../history/range.js';
import { explainErrors, toClientErrorLevel, toErrorLevel } from './levels.js';

/**
 * One figure: its title, its value and a second value, now and of a range; and its chart. `error` is a second line, in red.
 * @typedef {object} Tile
 * @property {string} title
 * @property {(overview: Overview) => string} now
 * @property {(overview: Overview) => string} aside
 * @property {(sums: Sums, seconds: number) => string} past
 * @property {(sums: Sums, seconds: number) => string} pastAside
 * @property {(figures: Counts) => Level} [level]
 * @property {(overview: Overview) => string} [explain]
 * @property {(point: Point) => number | null} point
 * @property {(point: Point) => number | null} [error]
 * @property {(value: number, error: number | null) => string} format
 * @property {boolean} [isErrors] whether only the second line has figures
 * @property {(points: readonly Point[], stepSeconds: number) => number} least the least value at the top of the chart: small
 *   ones stay small
 */

/** @typedef {Pick<Overview['last_minute'], 'requests' | 'errors' | 'client_errors'>} Counts */

/** A line of failures is as high as this share of the requests at least. */
const LEAST_ERROR_SHARE = 0.05;
/** Charts of durations and of tokens are as high as this at least. */
const LEAST_MS = 10;
const LEAST_TOKENS_PER_S = 10;
/** @type {readonly Tile[]} */
const TILES = [
  {
    title: 'Requests/s',
    now: ({ last_minute }) => formatRate(last_minute.requests_per_s),
    aside: (overview) => toRequestAside(overview),
    past: ({ requests }, seconds) => formatRate(requests / seconds),
    pastAside: ({ requests }) => counted(requests, 'request'),
    point: ({ requests_per_s }) => requests_per_s,
    error: ({ errors_per_s }) => errors_per_s,
    format: (value, error) =>
      error ? `${formatRate(value)}, ${formatRate(error)} failed` : formatRate(value),
    least: (_points, stepSeconds) => LEAST_REQUESTS / stepSeconds,
  },
  {
    title: 'Errors',
    now: ({ last_minute: { errors, requests } }) => formatShare(errors, requests),
    aside: ({ last_minute }) => toErrorAside(last_minute),
    past: ({ errors, requests }) => formatShare(errors, requests),
    pastAside: (sums) => toErrorAside(sums),
    level: ({ errors, client_errors, requests }) =>
      toErrorLevel(errors, requests) || toClientErrorLevel(client_errors, requests),
    explain: ({ last_minute }) => explainErrors(last_minute),
    point: ({ errors }) => (errors === null ? null : 0),
    error: ({ errors }) => errors,
    format: (_ground, errors) => `${formatCount(errors ?? 0)} failed`,
    isErrors: true,
    least: (points) =>
      Math.max(LEAST_REQUESTS, LEAST_ERROR_SHARE * Math.max(0, ...points.map(({ requests }) => requests))),
  },
  {
    title: 'In flight',
    now: (overview) => formatCount(servingOf(overview).reduce((sum, { inflight }) => sum + inflight, 0)),
    aside(overview) {
      const serving = servingOf(overview);
      const on = `on ${counted(serving.length, 'replica')}`;
      const isLimited = serving.some(({ max_inflight }) => max_inflight !== null);
      return isLimited ? `${on}, ${formatCount(overview.waiting)} waiting` : on;
    },
    past: (sums, seconds) => formatRate(toMeanInflight(sums, seconds)),
    pastAside: () => 'on average',
    point: ({ inflight }) => inflight,
    format: (value) => formatRate(value),
    least: () => LEAST_REQUESTS,
  },
  {
    title: 'First token, p95',
    now: ({ last_minute }) => formatMs(last_minute.ttft_p95_ms),
    aside: ({ last_minute }) => `p50 ${formatMs(last_minute.ttft_p50_ms)}${toLeftOut(last_minute)}`,
    past: ({ ttft_ms }) => formatMs(ttft_ms.p95),
    pastAside: ({ ttft_ms }) => `p50 ${formatMs(ttft_ms.p50)}`,
    explain: ({ last_minute }) => explainErrors(last_minute),
    point: ({ ttft_p95_ms }) => ttft_p95_ms,
    format: (value) => formatMs(value),
    least: () => LEAST_MS,
  },
  {
    title: 'Latency, p95',
    now: ({ last_minute }) => formatMs(last_minute.latency_p95_ms),
    aside: ({ last_minute }) => `p50 ${formatMs(last_minute.latency_p50_ms)}${toLeftOut(last_minute)}`,
    past: ({ e2e_ms }) => formatMs(e2e_ms.p95),
    pastAside: ({ e2e_ms }) => `p50 ${formatMs(e2e_ms.p50)}`,
    explain: ({ last_minute }) => explainErrors(last_minute),
    point: ({ latency_p95_ms }) => latency_p95_ms,
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
    past: ({ completion_tokens }, seconds) => formatRate(completion_tokens / seconds),
    pastAside: ({ completion_tokens, requests }) =>
      requests === 0 ? 'no requests' : `${formatCount(completion_tokens / requests)} per request`,
    point: ({ output_tokens_per_s }) => output_tokens_per_s,
    format: (value) => formatRate(value),
    least: () => LEAST_TOKENS_PER_S,
  },
];

/**
 * The replicas that clients get answers of, as in the lines of charts: no client waits for what a shadow does.
 * @param {Overview} overview
 */
function servingOf({ replicas }) {
  return replicas.filter(({ shadow }) => shadow === null);
}

/** With the attempts, if replicas had more than requests. @param {Overview} overview */
function toRequestAside({ last_minute, replicas }) {
  if (replicas.every((replica) => replica.last_minute.attempts === replica.last_minute.requests))
    return counted(last_minute.requests, 'request');
  const attempts = replicas.reduce((sum, replica) => sum + replica.last_minute.attempts, 0);
  return `${formatCount(last_minute.requests)} · ${counted(attempts, 'attempt')}`;
}

/** @param {Counts} traffic */
function toErrorAside({ requests, errors, client_errors }) {
  if (requests === 0) return 'no requests';
  return `${formatCount(errors)} failed, 4xx ${formatShare(client_errors, requests)}`;
}

/** How many requests failed beside the successes that a duration is of. @param {Overview['last_minute']} traffic */
function toLeftOut({ errors }) {
  return errors === 0 ? '' : ` · ${formatCount(errors)} failed`;
}

/**
 * The tiles.
 * @typedef {object} Tiles
 * @property {(overview: Overview) => void} showLive shows what is now
 * @property {(past: Past) => void} showPast shows what the history knows of a range
 * @property {(marks: readonly Mark[]) => void} mark draws what happened over the charts
 * @property {(span: Span | null) => void} highlight draws a span more strongly
 */

/**
 * Creates the tiles.
 * @param {HTMLElement} parent
 * @returns {Tiles}
 */
export function createTiles(parent) {
  const tiles = TILES.map((tile) => createTile(parent, tile));
  return {
    showLive(overview) {
      const points = toLivePoints(overview.history);
      for (const { showLive } of tiles) showLive(overview, points);
    },
    showPast({ range, usage, timeline }) {
      if (usage === null || timeline === null) return;
      const nowMs = Date.parse(timeline.until);
      const points = toPoints(usage.total, { stepMs: range.stepMs, nowMs });
      const { fromMs } = toKnownSpan(usage.total, nowMs);
      const shown = { sums: usage.total.total, seconds: Math.max(1, (nowMs - fromMs) / 1_000), points };
      const span = { fromMs: nowMs - range.ms, untilMs: nowMs };
      for (const { showPast } of tiles) showPast({ ...shown, span, stepSeconds: range.stepMs / 1_000 });
    },
    mark(marks) {
      for (const { chart } of tiles) chart.mark(marks);
    },
    highlight(span) {
      for (const { chart } of tiles) chart.highlight(span);
    },
  };
}

/** @typedef {{ readonly sums: Sums, readonly seconds: number, readonly points: readonly Point[], readonly span: Span, readonly stepSeconds: number }} ShownPast */

/**
 * @param {HTMLElement} parent
 * @param {Tile} tile
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
  /** @param {string} value @param {string} second @param {Level | undefined} level @param {string | null} why */
  const showFacts = (value, second, level, why) => {
    setText(now, value);
    setAttribute(box, 'data-level', level || null);
    setAttribute(now, 'title', why);
    current = second;
    showAside();
  };
  return {
    chart,
    /** @param {Overview} overview @param {readonly Point[]} points */
    showLive(overview, points) {
      const level = tile.level?.(overview.last_minute);
      showFacts(tile.now(overview), tile.aside(overview), level, tile.explain?.(overview) ?? null);
      chart.show(toChartPoints(points, tile.point, tile.error), tile.least(points, LIVE.stepMs / 1_000));
    },
    /** @param {ShownPast} past */
    showPast({ sums, seconds, points, span, stepSeconds }) {
      showFacts(tile.past(sums, seconds), tile.pastAside(sums, seconds), tile.level?.(sums), null);
      chart.show(toChartPoints(points, tile.point, tile.error), tile.least(points, stepSeconds), span);
    },
  };
}

/**
 * Converts points to those of a chart.
 * @param {readonly Point[]} points
 * @param {(point: Point) => number | null} toValue
 * @param {(point: Point) => number | null} [toError]
 * @returns {Points}
 */
export function toChartPoints(points, toValue, toError) {
  const times = points.map(({ timeMs }) => timeMs);
  const values = points.map(toValue);
  return toError === undefined ? { times, values } : { times, values, errors: points.map(toError) };
}
