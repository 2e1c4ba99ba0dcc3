/** @import { Overview } from '../../overview.ts' */
/** @import { ShowRecords } from '../records/filters.js' */
import { create, setAttribute, setText } from '../elements/dom.js';
import { formatCost, formatMs, formatRate, formatShare, UNKNOWN } from '../elements/format.js';
import { createLongTable } from '../elements/long-table.js';
import { createName } from '../elements/name.js';
import { NO_FILTER } from '../records/filters.js';
import { explainErrors, toClientErrorLevel, toErrorLevel } from './levels.js';

/** @typedef {Overview['models'][number]} Part */

/** All names beyond those that the gateway counts one by one. */
const OTHERS = '_OTHER';

/** GPU time from here on is shown in hours. */
const LONG_SECONDS = 36_000;

/** Requests may name no tenant. */
const NO_PARTS = {
  model: 'No requests in this time.',
  tenant: 'No request named a tenant in this time.',
};

/**
 * Creates the table of traffic by model or by tenant. A press on a name shows its requests.
 * @param {HTMLTableElement} table
 * @param {'model' | 'tenant'} field
 * @param {ShowRecords} showRecords
 * @returns {(parts: readonly Part[]) => void}
 */
export function createBreakdown(table, field, showRecords) {
  const show = createLongTable(table, NO_PARTS[field], () => createPartRow(field, showRecords));
  const unit = table.querySelector('.cost small') ?? create('small', {});
  const gpuUnit = table.querySelector('.gpu small') ?? create('small', {});
  return (parts) => {
    const isKnown = parts.some(({ last_minute }) => last_minute.gpu_seconds !== null);
    setAttribute(table, 'data-gpu', isKnown ? 'known' : null);
    const currency = parts.find(({ last_minute }) => last_minute.currency !== null)?.last_minute.currency;
    setAttribute(table, 'data-cost', currency === undefined ? null : 'known');
    setText(unit, currency ?? '');
    const most = Math.max(0, ...parts.map(({ last_minute }) => last_minute.gpu_seconds ?? 0));
    const isLong = most >= LONG_SECONDS;
    setText(gpuUnit, isLong ? 'h' : 's');
    show(parts.map((part) => ({ ...part, gpuDivisor: isLong ? 3_600 : 1 })));
  };
}

/**
 * @param {'model' | 'tenant'} field
 * @param {ShowRecords} showRecords
 */
function createPartRow(field, showRecords) {
  const name = createName('part-name');
  const button = create('button', { type: 'button', class: 'link' }, name.element);
  const others = create('span', { class: 'faint' }, 'all others');
  const errors = create('span', { class: 'value' });
  const clientErrors = create('span', { class: 'value' });
  /** @param {...Node} children */
  const number = (...children) => create('td', { class: 'number' }, ...children);
  const [requests, ttft, latency, tokens] = [number(), number(), number(), number()];
  const gpuTime = create('td', { class: 'number gpu' });
  const cost = create('td', { class: 'number cost' });
  const errorCell = number(errors);
  const element = create(
    'tr',
    {},
    create('th', { scope: 'row' }, button, others),
    requests,
    errorCell,
    number(clientErrors),
    ttft,
    latency,
    tokens,
    gpuTime,
    cost,
  );
  let shown = '';
  button.addEventListener('click', () =>
    showRecords({ list: 'latest', filter: { ...NO_FILTER, [field]: shown } }),
  );
  return {
    element,
    /** @param {Part & { readonly gpuDivisor: number }} part */
    show({ name: text, last_minute, gpuDivisor }) {
      shown = text;
      button.hidden = text === OTHERS;
      others.hidden = text !== OTHERS;
      name.show(text === '' ? `without ${field}` : text);
      setText(requests, formatRate(last_minute.requests_per_s));
      setText(errors, formatShare(last_minute.errors, last_minute.requests));
      setAttribute(errors, 'data-level', toErrorLevel(last_minute.errors, last_minute.requests) || null);
      setAttribute(errorCell, 'title', explainErrors(last_minute));
      setText(clientErrors, formatShare(last_minute.client_errors, last_minute.requests));
      const clientLevel = toClientErrorLevel(last_minute.client_errors, last_minute.requests);
      setAttribute(clientErrors, 'data-level', clientLevel || null);
      setText(ttft, formatMs(last_minute.ttft_p95_ms));
      setText(latency, formatMs(last_minute.latency_p95_ms));
      setText(tokens, formatRate(last_minute.output_tokens_per_s));
      const { gpu_seconds } = last_minute;
      setText(gpuTime, gpu_seconds === null ? UNKNOWN : formatRate(gpu_seconds / gpuDivisor));
      setText(cost, last_minute.cost === null ? UNKNOWN : formatCost(last_minute.cost));
    },
  };
}
