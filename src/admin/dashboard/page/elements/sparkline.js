/** @import { Overview } from '../../overview.ts' */
import { createSvg, setAttribute, setText } from './dom.js';
import { counted, formatCount } from './format.js';
import { LEAST_REQUESTS } from './scale.js';

/** @typedef {Overview['replicas'][number]['trend']} Trend */

const HEIGHT = 20;
/** The share of a bar's place that it fills. */
const BAR_WIDTH = 0.78;
/** A single request or error among many must be visible. */
const LEAST_HEIGHT = 2.5;

/**
 * Bars of the attempts at a replica in five minutes. The failed ones are red, at the foot of each bar.
 * @returns {{ readonly element: SVGSVGElement, show(trend: Trend): void }}
 */
export function createSparkline() {
  const title = createSvg('title');
  const attempts = createSvg('path', { class: 'spark-attempts' });
  const errors = createSvg('path', { class: 'spark-errors' });
  const element = createSvg(
    'svg',
    { class: 'spark', role: 'img', viewBox: `0 0 60 ${HEIGHT}`, preserveAspectRatio: 'none' },
    title,
    attempts,
    errors,
  );
  return {
    element,
    show(trend) {
      const paths = toPaths(trend);
      setAttribute(element, 'viewBox', `0 0 ${Math.max(trend.attempts.length, 1)} ${HEIGHT}`);
      setAttribute(attempts, 'd', paths.attempts);
      setAttribute(errors, 'd', paths.errors);
      setText(title, toTitle(trend));
    },
  };
}

/**
 * The sum of trends of the same length.
 * @param {readonly Trend[]} trends
 * @returns {Trend}
 */
export function sumTrends(trends) {
  /** @param {'attempts' | 'errors'} part */
  const sum = (part) => {
    const length = Math.max(0, ...trends.map((trend) => trend[part].length));
    return Array.from({ length }, (_, at) =>
      trends.reduce((total, trend) => total + (trend[part][at] ?? 0), 0),
    );
  };
  return { attempts: sum('attempts'), errors: sum('errors') };
}

/** @param {Trend} trend */
function toPaths(trend) {
  const highest = Math.max(LEAST_REQUESTS, ...trend.attempts);
  /** @param {number} count */
  const toHeight = (count) => (count === 0 ? 0 : Math.max(LEAST_HEIGHT, (HEIGHT * count) / highest));
  /** @param {number} at @param {number} height */
  const bar = (at, height) =>
    height === 0 ? '' : `M${at} ${HEIGHT}v-${height.toFixed(1)}h${BAR_WIDTH}V${HEIGHT}z`;
  return {
    attempts: trend.attempts.map((count, at) => bar(at, toHeight(count))).join(''),
    errors: trend.errors.map((count, at) => bar(at, toHeight(count))).join(''),
  };
}

/** @param {Trend} trend */
function toTitle({ attempts, errors }) {
  const all = attempts.reduce((sum, count) => sum + count, 0);
  const failed = errors.reduce((sum, count) => sum + count, 0);
  return `${counted(all, 'attempt')} in five minutes, ${formatCount(failed)} failed`;
}
