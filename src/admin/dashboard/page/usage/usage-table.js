/** @import { UsageJson } from '../../../routes/history/usage.ts' */
/** @import { Dimension, Step } from './usage-query.js' */
import { create, setAttribute } from '../elements/dom.js';
import { formatCost, formatCount, formatMs, formatShare, UNKNOWN } from '../elements/format.js';
import { nameElement } from '../elements/name.js';
import { nameOf, OTHERS } from '../history/figures.js';
import { toErrorLevel } from '../traffic/levels.js';
import { DIMENSIONS, toStepText } from './usage-query.js';

/** @typedef {UsageJson['total']} Sums */
/** @typedef {UsageJson['rows'][number]} Row */

/**
 * A column of figures. `of`: what it is sorted by.
 * @typedef {object} Column
 * @property {string} id
 * @property {string} title
 * @property {string} [explain]
 * @property {(sums: Sums) => number} of
 * @property {(sums: Sums) => string} toText
 */

/** @type {readonly Column[]} */
const COLUMNS = [
  count('requests', 'Requests', 'requests'),
  {
    id: 'errors',
    title: 'Errors',
    explain: 'A 5xx status, or a response that broke off',
    of: ({ errors }) => errors,
    toText: ({ errors, requests }) =>
      errors === 0 ? '0' : `${formatCount(errors)} (${formatShare(errors, requests)})`,
  },
  { ...count('client_errors', '4xx', 'client_errors'), explain: 'Another status from 400, but 499' },
  count('tokens_in', 'Tokens in', 'prompt_tokens'),
  { ...count('cached', 'Cached', 'cached_tokens'), explain: 'Tokens in that came from a prefix cache' },
  count('tokens_out', 'Tokens out', 'completion_tokens'),
  {
    id: 'gpu',
    title: 'GPU time',
    explain: 'Divided between the requests in flight at the same time',
    of: ({ gpu_seconds }) => gpu_seconds,
    toText: ({ gpu_seconds }) => (gpu_seconds === 0 ? UNKNOWN : toHours(gpu_seconds)),
  },
  {
    id: 'latency',
    title: 'Latency p95',
    explain: 'Of all requests, failed ones too',
    of: ({ e2e_ms }) => e2e_ms.p95 ?? 0,
    toText: ({ e2e_ms }) => formatMs(e2e_ms.p95),
  },
];

/**
 * @param {string} id
 * @param {string} title
 * @param {'requests' | 'client_errors' | 'prompt_tokens' | 'cached_tokens' | 'completion_tokens'} name
 * @returns {Column}
 */
function count(id, title, name) {
  return { id, title, of: (sums) => sums[name], toText: (sums) => formatCount(sums[name]) };
}

/** @param {number} seconds */
function toHours(seconds) {
  if (seconds < 600) return formatMs(1_000 * seconds);
  const hours = seconds / 3_600;
  return `${hours < 100 ? hours.toFixed(hours < 10 ? 2 : 1) : formatCount(hours)} h`;
}

/** The table of usage. A press on the head of a figure sorts by it; a press on a name shows only its requests. */
export class UsageTable {
  #table;
  #onOnly;
  /** @type {UsageJson | null} */
  #usage = null;
  /** @type {Step} */
  #step = '';
  #sort = 'requests';

  /**
   * @param {HTMLTableElement} table
   * @param {(of: Dimension, named: string) => void} onOnly
   */
  constructor(table, onOnly) {
    this.#table = table;
    this.#onOnly = onOnly;
  }

  /**
   * @param {UsageJson} usage
   * @param {Step} step how the span is divided
   */
  show(usage, step) {
    this.#usage = usage;
    this.#step = step;
    this.#render();
  }

  /** Shows nothing. */
  clear() {
    this.#usage = null;
    this.#table.replaceChildren();
  }

  #render() {
    const usage = this.#usage;
    if (usage === null) return;
    const columns = [...COLUMNS, ...toCostColumns(usage)];
    const sort = columns.find(({ id }) => id === this.#sort) ?? columns[0];
    if (sort === undefined) return;
    const rows = toSorted(usage.rows, sort, this.#step !== '');
    const most = Math.max(0, ...rows.filter(({ other }) => !other).map(sort.of));
    const focused = document.activeElement?.getAttribute('data-key') ?? null;
    this.#table.hidden = rows.length === 0;
    this.#table.replaceChildren(
      create('thead', {}, this.#toHead(usage, columns, sort)),
      create('tbody', {}, ...rows.map((row) => this.#toRow(row, usage, columns, sort, most))),
      create('tfoot', {}, this.#toFoot(usage, columns)),
    );
    if (focused === null) return;
    // The button that has the focus is a new one.
    const buttons = [...this.#table.querySelectorAll('button')];
    buttons.find((button) => button.getAttribute('data-key') === focused)?.focus();
  }

  /**
   * @param {UsageJson} usage
   * @param {readonly Column[]} columns
   * @param {Column} sort
   */
  #toHead({ by }, columns, sort) {
    const titles = new Map(DIMENSIONS);
    const figures = columns.map((column) => {
      const button = create('button', { type: 'button', 'data-key': `by ${column.id}` }, column.title);
      button.addEventListener('click', () => this.#sortBy(column.id));
      const head = create('th', { scope: 'col', class: `number u-${toClass(column.id)}` }, button);
      setAttribute(head, 'title', column.explain ?? null);
      setAttribute(head, 'aria-sort', column === sort ? 'descending' : null);
      return head;
    });
    return create(
      'tr',
      {},
      ...(this.#step !== '' ? [create('th', { scope: 'col', class: 'u-when' }, 'When')] : []),
      ...by.map((name) => create('th', { scope: 'col', class: 'u-name' }, titles.get(name) ?? name)),
      ...figures,
    );
  }

  /**
   * @param {Row} row
   * @param {UsageJson} usage
   * @param {readonly Column[]} columns
   * @param {Column} sort
   * @param {number} most
   */
  #toRow(row, { by, time_zone }, columns, sort, most) {
    const when = create('td', { class: 'u-when' }, toStepText(row.start, time_zone, this.#step));
    const names = by.map((dimension, at) => this.#toName(row, dimension, at === 0));
    const share = row.other || most === 0 ? 0 : sort.of(row) / most;
    const bar = create('span', { class: 'u-bar', 'aria-hidden': 'true' });
    bar.style.width = `${100 * share}%`;
    names[0]?.append(bar);
    return create('tr', {}, ...(this.#step !== '' ? [when] : []), ...names, ...toCells(row, columns));
  }

  /**
   * @param {Row} row
   * @param {Dimension} dimension
   * @param {boolean} isFirst
   */
  #toName(row, dimension, isFirst) {
    const name = nameOf(row, dimension);
    const cell = create(isFirst ? 'th' : 'td', { class: 'u-name', ...(isFirst ? { scope: 'row' } : {}) });
    if (name === OTHERS) cell.append(create('span', { class: 'faint' }, isFirst ? 'all others' : ''));
    else if (name === '') cell.append(create('span', { class: 'faint' }, `without ${dimension}`));
    else {
      const attributes = { type: 'button', class: 'link', 'data-key': `${row.start} ${dimension} ${name}` };
      const button = create('button', attributes, nameElement('part-name', name));
      button.addEventListener('click', () => this.#onOnly(dimension, name));
      cell.append(button);
    }
    return cell;
  }

  /**
   * @param {UsageJson} usage
   * @param {readonly Column[]} columns
   */
  #toFoot({ by, total }, columns) {
    const named = by.length + Number(this.#step !== '');
    const head = create(
      'th',
      { scope: 'row', class: 'u-name', colspan: String(Math.max(1, named)) },
      'Total',
    );
    return create('tr', {}, head, ...toCells(total, columns));
  }

  /** @param {string} id */
  #sortBy(id) {
    this.#sort = id;
    this.#render();
  }
}

/**
 * @param {Sums} sums
 * @param {readonly Column[]} columns
 */
function toCells(sums, columns) {
  return columns.map((column) => {
    const text = create('span', { class: 'value' }, column.toText(sums));
    if (column.id === 'errors')
      setAttribute(text, 'data-level', toErrorLevel(sums.errors, sums.requests) || null);
    return create('td', { class: `number u-${toClass(column.id)}`, 'data-label': column.title }, text);
  });
}

/** A column for each currency. @param {UsageJson} usage @returns {readonly Column[]} */
function toCostColumns({ total }) {
  return Object.keys(total.costs)
    .toSorted()
    .map((currency) => ({
      id: `cost_${currency}`,
      title: `Cost ${currency}`,
      explain: 'What the GPU time costs',
      of: ({ costs }) => costs[currency] ?? 0,
      toText: ({ costs }) => (costs[currency] === undefined ? UNKNOWN : formatCost(costs[currency])),
    }));
}

/** @param {string} id */
function toClass(id) {
  return id.startsWith('cost_') ? 'cost' : id.replaceAll('_', '-');
}

/**
 * The largest first, in each step; all others are the last.
 * @param {readonly Row[]} rows
 * @param {Column} column
 * @param {boolean} hasSteps
 */
function toSorted(rows, { of }, hasSteps) {
  return rows.toSorted(
    (a, b) =>
      (hasSteps ? a.start.localeCompare(b.start) : 0) || Number(a.other) - Number(b.other) || of(b) - of(a),
  );
}
