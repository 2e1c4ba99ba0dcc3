/** @import { ShownRecord } from './filters.js' */
/** @import { Usual } from './like-requests.js' */
/** @import { Phase } from './phases.js' */
import { create } from '../elements/dom.js';
import { counted, formatMs } from '../elements/format.js';
import { toPhases } from './phases.js';

/** The scale reaches beyond the longest time by this factor, so that a mark at its end is seen. */
const MARGIN = 1.02;

/**
 * The bar of a request, with a list that says the same in words, and what is usual on the same scale.
 * @param {ShownRecord} record
 * @param {Usual | null} usual null: not known
 * @returns {readonly HTMLElement[]}
 */
export function createPicture(record, usual) {
  const phases = toPhases(record);
  const scaleMs = MARGIN * Math.max(record.e2e_ms, usual?.e2eP95Ms ?? 0, 1);
  const bar = create(
    'div',
    { class: 'phase-bar', 'aria-hidden': 'true' },
    ...phases.map((phase) => toPart(phase, scaleMs)),
  );
  const list = create('ol', { class: 'phases', 'aria-label': 'Its parts' }, ...phases.map(toItem));
  return [bar, ...(usual === null ? [] : toUsualBar(usual, scaleMs)), list];
}

/**
 * @param {Phase} phase
 * @param {number} scaleMs
 */
function toPart({ kind, fromMs, untilMs, title }, scaleMs) {
  const part = create('span', {
    class: 'phase',
    'data-phase-kind': kind,
    title: `${title}: ${formatMs(untilMs - fromMs)}`,
  });
  part.style.left = `${(100 * fromMs) / scaleMs}%`;
  part.style.width = `${(100 * (untilMs - fromMs)) / scaleMs}%`;
  return part;
}

/** @param {Phase} phase */
function toItem({ kind, fromMs, untilMs, title }) {
  return create(
    'li',
    { 'data-phase-kind': kind },
    create('span', { class: 'phase-title', dir: 'auto' }, title),
    create('span', { class: 'phase-time' }, formatMs(untilMs - fromMs)),
  );
}

/**
 * What is usual: the median and the 95th percentile.
 * @param {Usual} usual
 * @param {number} scaleMs
 */
function toUsualBar({ requests, e2eP50Ms, e2eP95Ms }, scaleMs) {
  if (e2eP50Ms === null || e2eP95Ms === null) return [];
  const line = create('span', { class: 'usual-line' });
  line.style.width = `${(100 * e2eP95Ms) / scaleMs}%`;
  const marks = [e2eP50Ms, e2eP95Ms].map((ms) => {
    const mark = create('span', { class: 'usual-mark' });
    mark.style.left = `${(100 * ms) / scaleMs}%`;
    return mark;
  });
  return [
    create('div', { class: 'usual-bar', 'aria-hidden': 'true' }, line, ...marks),
    create(
      'p',
      { class: 'usual' },
      `${counted(requests, 'like request')} in its hour: p50 ${formatMs(e2eP50Ms)}, p95 ${formatMs(e2eP95Ms)}.`,
    ),
  ];
}
