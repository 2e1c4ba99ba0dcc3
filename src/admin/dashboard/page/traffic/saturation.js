/** @import { Overview } from '../../overview.ts' */
import { create, createSvg, setAttribute, setText } from '../elements/dom.js';
import { counted, formatBytes, formatCount, formatShare } from '../elements/format.js';
import { toUseLevel } from './levels.js';

/** @typedef {Overview['saturation']} Saturation */

const BAR_HEIGHT = 40;

/**
 * Creates the section that shows how much the gateway has left. The returned function shows an overview in it.
 * @param {HTMLElement} parent
 * @returns {(overview: Overview) => void}
 */
export function createSaturation(parent) {
  const workers = createWorkers();
  const connections = createGauge('Client connections');
  const buffered = createGauge('Buffered bytes');
  const waiting = create('dd', { class: 'now' });
  const waitingBox = create(
    'dl',
    { class: 'gauge' },
    create('dt', {}, 'Waiting requests'),
    waiting,
    create('dd', { class: 'aside' }, 'for a free replica'),
  );
  parent.append(workers.element, connections.element, buffered.element, waitingBox);
  return ({ saturation }) => {
    workers.show(saturation.workers);
    connections.show(saturation.connections, formatCount);
    buffered.show(saturation.buffered_bytes, formatBytes);
    setText(waiting, formatCount(saturation.waiting));
  };
}

/** @param {string} title */
function createGauge(title) {
  const now = create('dd', { class: 'now' });
  const aside = create('dd', { class: 'aside' });
  const meter = create('meter', { min: '0', 'aria-label': `${title}, share of the limit` });
  const element = create(
    'dl',
    { class: 'gauge' },
    create('dt', {}, title),
    now,
    aside,
    create('dd', { class: 'meter' }, meter),
  );
  return {
    element,
    /** @param {{ now: number, limit: number }} use @param {(value: number) => string} format */
    show(use, format) {
      setText(now, format(use.now));
      setText(aside, `of ${format(use.limit)}`);
      setAttribute(now, 'data-level', toUseLevel(use.now, use.limit) || null);
      meter.max = use.limit;
      meter.high = use.limit * 0.8;
      meter.optimum = 0;
      meter.value = use.now;
    },
  };
}

/** One bar for each worker: the share of time in which its event loop is busy. */
function createWorkers() {
  const now = create('dd', { class: 'now' });
  const aside = create('dd', { class: 'aside' });
  const bars = createSvg('svg', { class: 'bars', 'aria-hidden': 'true', preserveAspectRatio: 'none' });
  const element = create(
    'dl',
    { class: 'gauge' },
    create('dt', {}, 'Busiest worker'),
    now,
    aside,
    create('dd', { class: 'meter' }, bars),
  );
  return {
    element,
    /** @param {Saturation['workers']} workers */
    show(workers) {
      const uses = workers.map((worker) => worker.event_loop_utilization);
      const busiest = Math.max(0, ...uses);
      setText(now, formatShare(busiest, 1));
      setAttribute(now, 'data-level', toUseLevel(busiest, 1) || null);
      const mean = uses.reduce((sum, use) => sum + use, 0) / Math.max(uses.length, 1);
      setText(
        aside,
        workers.length <= 1
          ? counted(workers.length, 'worker')
          : `of ${workers.length}, mean ${formatShare(mean, 1)}`,
      );
      showBars(bars, workers);
    },
  };
}

/**
 * @param {SVGSVGElement} parent
 * @param {Saturation['workers']} workers
 */
function showBars(parent, workers) {
  setAttribute(parent, 'viewBox', `0 0 ${Math.max(workers.length, 1)} ${BAR_HEIGHT}`);
  while (parent.childElementCount > workers.length) parent.lastElementChild?.remove();
  while (parent.childElementCount < workers.length)
    parent.append(createSvg('g', {}, createSvg('title'), createSvg('path'), createSvg('path')));
  for (const [at, { worker, event_loop_utilization: use }] of workers.entries()) {
    const [title, track, bar] = parent.children[at]?.children ?? [];
    if (title === undefined || track === undefined || bar === undefined) continue;
    setText(title, `Worker ${worker}: ${formatShare(use, 1)}`);
    setAttribute(track, 'class', 'bar-track');
    setAttribute(track, 'd', `M${at} 0h0.88v${BAR_HEIGHT}h-0.88z`);
    setAttribute(bar, 'class', 'bar-value');
    setAttribute(bar, 'data-level', toUseLevel(use, 1) || null);
    const height = BAR_HEIGHT * Math.min(Math.max(use, 0), 1);
    setAttribute(bar, 'd', `M${at} ${BAR_HEIGHT}v-${height.toFixed(1)}h0.88V${BAR_HEIGHT}z`);
  }
}
