/** @import { Group } from './order.js' */
/** @import { Replica } from './state.js' */
import { create, setAttribute, setText } from '../elements/dom.js';
import { counted, formatCount, formatRate, formatShare } from '../elements/format.js';
import { createName } from '../elements/name.js';
import { createSparkline, sumTrends } from '../elements/sparkline.js';
import { explainAttempts, toClientErrorLevel, toErrorLevel } from '../traffic/levels.js';
import { countStates, toWord } from './state.js';

/** Cells after the last sum, so that the row is as wide as those of replicas: quantiles cannot be added. */
const COLUMNS_WITHOUT_SUM = ['ttft_p50', 'ttft_p95', 'latency_p50', 'latency_p95'];

/**
 * Creates the row above the replicas of a group: its models and the sums of its replicas. Pressing it hides the
 * replicas.
 * @param {(key: string) => void} onToggle
 */
export function createGroupRow(onToggle) {
  const name = createName('group-name');
  const count = create('span', { class: 'group-count' });
  const states = create('span', { class: 'group-states' });
  const button = create('button', { type: 'button', class: 'group-toggle' }, name.element, count, states);
  const sums = createSums();
  let key = '';
  button.addEventListener('click', () => onToggle(key));
  const element = create(
    'tr',
    { class: 'group' },
    create('th', { scope: 'rowgroup', class: 'col-name', colspan: '2' }, button),
    ...sums.elements,
  );
  return {
    element,
    /** @param {Group} group @param {boolean} isOpen */
    show(group, isOpen) {
      key = group.key;
      name.show(group.title, toModelList(group.replicas));
      setText(count, counted(group.replicas.length, 'replica'));
      setAttribute(button, 'aria-expanded', String(isOpen));
      showStates(states, group.replicas);
      sums.show(group.replicas);
    },
  };
}

/** @param {readonly Replica[]} replicas */
function toModelList(replicas) {
  return replicas[0]?.models?.join('\n') ?? 'Models unknown';
}

/**
 * Shows how many replicas are in each state but serving.
 * @param {HTMLElement} parent
 * @param {readonly Replica[]} replicas
 */
function showStates(parent, replicas) {
  const counts = countStates(replicas).filter(({ kind }) => kind !== 'serving');
  const texts = counts.map(({ kind, count }) => `${formatCount(count)} ${toWord(kind).toLowerCase()}`);
  setAttribute(parent, 'title', texts.join(', '));
  if (parent.dataset.shown === texts.join()) return;
  parent.dataset.shown = texts.join();
  parent.replaceChildren(
    ...counts.map(({ kind }, at) => create('span', { class: 'count', 'data-state': kind }, texts[at] ?? '')),
  );
}

function createSums() {
  /** @param {string} id @param {string} label */
  const cell = (id, label) => {
    const value = create('span', { class: 'value' });
    return { value, element: create('td', { class: `number col-${id}`, 'data-label': label }, value) };
  };
  const errors = cell('errors', 'Errors');
  const inflight = cell('inflight', 'In flight');
  const requests = cell('requests', 'Requests/s');
  const clientErrors = cell('client_errors', '4xx');
  const tokens = cell('tokens', 'Tokens/s');
  const spark = createSparkline();
  return {
    elements: [
      errors.element,
      inflight.element,
      create('td', { class: 'number col-trend' }, spark.element),
      requests.element,
      clientErrors.element,
      ...COLUMNS_WITHOUT_SUM.map((id) => create('td', { class: `number col-${id}` })),
      tokens.element,
      create('td', { class: 'col-host' }),
      create('td', { class: 'col-action' }),
    ],
    /** @param {readonly Replica[]} replicas */
    show(replicas) {
      const sum = sumTraffic(replicas);
      setText(errors.value, formatShare(sum.errors, sum.attempts));
      setAttribute(errors.value, 'data-level', toErrorLevel(sum.errors, sum.attempts) || null);
      setAttribute(errors.element, 'title', explainAttempts(sum));
      setText(inflight.value, formatCount(replicas.reduce((total, replica) => total + replica.inflight, 0)));
      setText(requests.value, formatRate(sum.requests_per_s));
      setText(clientErrors.value, formatShare(sum.client_errors, sum.attempts));
      setAttribute(
        clientErrors.value,
        'data-level',
        toClientErrorLevel(sum.client_errors, sum.attempts) || null,
      );
      setText(tokens.value, formatRate(sum.output_tokens_per_s));
      spark.show(sumTrends(replicas.map(({ trend }) => trend)));
    },
  };
}

/** @param {readonly Replica[]} replicas */
function sumTraffic(replicas) {
  /** @param {'requests' | 'attempts' | 'errors' | 'client_errors' | 'requests_per_s' | 'output_tokens_per_s'} part */
  const sum = (part) => replicas.reduce((total, { last_minute }) => total + last_minute[part], 0);
  /** @param {keyof Replica['last_minute']['outcomes']} outcome */
  const sumOf = (outcome) =>
    replicas.reduce((total, { last_minute }) => total + last_minute.outcomes[outcome], 0);
  return {
    requests: sum('requests'),
    attempts: sum('attempts'),
    errors: sum('errors'),
    client_errors: sum('client_errors'),
    requests_per_s: sum('requests_per_s'),
    output_tokens_per_s: sum('output_tokens_per_s'),
    outcomes: {
      success: sumOf('success'),
      error: sumOf('error'),
      not_connected: sumOf('not_connected'),
      loading: sumOf('loading'),
      client_error: sumOf('client_error'),
      canceled: sumOf('canceled'),
      repeated: sumOf('repeated'),
      other: sumOf('other'),
    },
  };
}
