/** @import { Overview } from '../../overview.ts' */
import { Chart } from '../elements/chart.js';
import { create, setAttribute, setText } from '../elements/dom.js';
import { counted, formatAgo, formatCount } from '../elements/format.js';

/** @type {readonly { title: string, field: keyof Overview['stats'], isRare?: boolean }[]} */
const COUNTERS = [
  { title: 'Recorded', field: 'recorded' },
  { title: 'Exported', field: 'exported' },
  { title: 'Dropped', field: 'dropped' },
  { title: 'Rejected', field: 'rejected' },
  { title: 'Failed calls', field: 'failed_calls' },
  { title: 'Lost', field: 'lost', isRare: true },
  { title: 'Restored', field: 'restored', isRare: true },
  { title: 'Spooled', field: 'spooled', isRare: true },
  { title: 'Unreadable', field: 'unreadable', isRare: true },
];

/** The chart of the queue is as high as this share of its size at least. */
const LEAST_QUEUE_SHARE = 0.01;

/** Counters that should stay at zero. */
const LOSSES = new Set(['dropped', 'rejected', 'lost', 'unreadable']);

/**
 * Creates the export section. The returned function shows an overview in it.
 * @param {HTMLElement} parent
 * @returns {(overview: Overview) => void}
 */
export function createExport(parent) {
  const state = create('p', { class: 'state' });
  const details = create('p', { class: 'faint' });
  const queued = create('dd', { class: 'now' });
  const aside = create('dd', { class: 'aside' });
  const meter = create('meter', { min: '0', 'aria-label': 'Share of the queue that is full' });
  const chartBox = create('div', { class: 'chart' });
  const queue = create('dl', {}, create('dt', {}, 'Queue'), queued, aside);
  const counters = COUNTERS.map(({ title }) => {
    const value = create('dd');
    return { value, box: create('div', {}, create('dt', {}, title), value) };
  });
  parent.append(
    create('div', { class: 'collector' }, state, details),
    create('div', { class: 'tile' }, queue, meter, chartBox),
    create('dl', { class: 'counters' }, ...counters.map(({ box }) => box)),
  );

  let current = '';
  const chart = new Chart(chartBox, {
    format: (value) => `${formatCount(value)} queued`,
    onPoint: (text) => setText(aside, text ?? current),
  });
  return (overview) => {
    const { stats, queue_size, history } = overview;
    setAttribute(state, 'data-state', overview.collector.state);
    setText(state, TITLES[overview.export_to][overview.collector.state]);
    setText(details, toDetails(overview));
    setText(queued, formatCount(stats.queued));
    current = `of ${formatCount(queue_size)} records`;
    setText(aside, current);
    meter.max = queue_size;
    meter.high = queue_size * 0.5;
    meter.optimum = 0;
    meter.value = stats.queued;
    chart.show(
      { times: history.map(({ time }) => Date.parse(time)), values: history.map(({ queued }) => queued) },
      queue_size * LEAST_QUEUE_SHARE,
    );
    for (const [index, { field, isRare }] of COUNTERS.entries()) {
      const counter = counters[index];
      if (counter === undefined) continue;
      setText(counter.value, formatCount(stats[field]));
      counter.box.hidden = isRare === true && stats[field] === 0;
      counter.box.classList.toggle('loss', LOSSES.has(field) && stats[field] > 0);
    }
  };
}

/** @type {Readonly<Record<Overview['export_to'], Readonly<Record<Overview['collector']['state'], string>>>>} */
const TITLES = {
  otlp: {
    idle: 'Nothing to send yet',
    taking: 'Collector is accepting records',
    refusing: 'Collector is rejecting records',
    failing: 'Export calls fail',
  },
  file: {
    idle: 'Nothing to write yet',
    taking: 'Records are written to files',
    refusing: 'Records are rejected',
    failing: 'Records cannot be written to files',
  },
};

/** @param {Overview} overview */
function toDetails({ collector: { state, since, failed_calls }, time }) {
  const ago = formatAgo(Date.parse(time) - Date.parse(since));
  switch (state) {
    case 'idle':
      return 'The first export follows the first request.';
    case 'taking':
      return failed_calls === 0
        ? `For ${ago}, without failed calls.`
        : `For ${ago}, with ${counted(failed_calls, 'failed call')}.`;
    case 'refusing':
      return `For ${ago}. Permanently rejected records are counted as rejected. The log has the reasons.`;
    case 'failing':
      return `For ${ago}, ${counted(failed_calls, 'failed call')}. Records wait in the queue; requests are not affected.`;
  }
}
