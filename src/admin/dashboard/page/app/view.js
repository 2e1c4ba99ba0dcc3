/** @import { Filter, NameField, StatusGroup } from '../records/filters.js' */
/** @import { RangeName } from '../history/range.js' */
/** @import { ReplicaView, Sort } from '../replicas/order.js' */
/** @import { UsageView } from '../usage/usage-query.js' */
import { toRange } from '../history/range.js';
import { NO_FILTER, STATUS_GROUPS } from '../records/filters.js';
import { SORTABLE } from '../replicas/columns.js';
import { DIMENSIONS, SPANS, START_USAGE, STEPS } from '../usage/usage-query.js';

/** What the user has chosen to see, and its form in the URL. Pure. */

/**
 * `list`: all requests or the failed ones; `find`: those with this id instead. `record`: the request id of the record whose details are open.
 * `usage`: who used how much; null: the page shows what is now.
 * @typedef {{ readonly range: RangeName, readonly usage: UsageView | null, readonly replicas: ReplicaView, readonly list: 'latest' | 'failures', readonly filter: Filter, readonly record: string | null, readonly find: string | null }} View
 */

/** @type {View} */
export const START_VIEW = {
  range: '5m',
  usage: null,
  replicas: { search: '', sort: null, isFlat: false },
  list: 'latest',
  filter: NO_FILTER,
  record: null,
  find: null,
};

/** Longer texts in a URL are not of this page: names in records have at most 256 characters. */
const MAX_CHARS = 256;

/** @type {readonly NameField[]} */
const NAME_FIELDS = ['replica', 'model', 'tenant', 'error_type'];

/**
 * Reads a view from the fragment of a URL, which anybody may have written. What it does not understand is ignored.
 * @param {string} fragment with or without `#`
 * @returns {View}
 */
export function parseView(fragment) {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ''));
  /** @param {string} name */
  const text = (name) => parameters.get(name)?.slice(0, MAX_CHARS) ?? null;
  const names = Object.fromEntries(NAME_FIELDS.map((field) => [field, text(field)]));
  return {
    range: toRange(text('range')).name,
    usage: parameters.get('view') === 'usage' ? toUsageView(text) : null,
    replicas: {
      search: text('search') ?? '',
      sort: toSort(text('sort') ?? ''),
      isFlat: parameters.get('flat') === '1',
    },
    list: parameters.get('list') === 'failures' ? 'failures' : 'latest',
    filter: { ...NO_FILTER, ...names, status: toStatus(text('status') ?? '') },
    record: text('record') || null,
    find: text('find') || null,
  };
}

/**
 * The fragment of a URL for a view, without `#`; empty for the view at the start.
 * @param {View} view
 */
export function toFragment({ range, usage, replicas, list, filter, record, find }) {
  const parameters = new URLSearchParams();
  /** @param {string} name @param {string | null} value */
  const add = (name, value) => value !== null && parameters.append(name, value);
  add('range', range === START_VIEW.range ? null : range);
  if (usage !== null) {
    add('view', 'usage');
    for (const [name, value] of Object.entries(usage))
      add(name, value === START_USAGE[/** @type {keyof UsageView} */ (name)] ? null : value);
  }
  add('search', replicas.search || null);
  add(
    'sort',
    replicas.sort === null ? null : `${replicas.sort.isDescending ? '-' : ''}${replicas.sort.column}`,
  );
  add('flat', replicas.isFlat ? '1' : null);
  add('list', list === 'failures' ? list : null);
  for (const field of NAME_FIELDS) add(field, filter[field]);
  add('status', filter.status || null);
  add('find', find);
  add('record', record);
  return parameters.toString();
}

/**
 * @param {string} text
 * @returns {Sort | null}
 */
function toSort(text) {
  const column = text.replace(/^-/, '');
  return SORTABLE.has(column) ? { column, isDescending: text.startsWith('-') } : null;
}

/**
 * @param {string} text
 * @returns {StatusGroup}
 */
function toStatus(text) {
  return STATUS_GROUPS.find(([group]) => group === text)?.[0] ?? '';
}

/**
 * @param {(name: string) => string | null} text
 * @returns {UsageView}
 */
function toUsageView(text) {
  /** @template Value @param {readonly (readonly [Value, string])[]} known @param {string} name */
  const oneOf = (known, name) => known.find(([value]) => value === text(name))?.[0] ?? null;
  return {
    by: oneOf(DIMENSIONS, 'by') ?? START_USAGE.by,
    and: oneOf(DIMENSIONS, 'and'),
    span: oneOf(SPANS, 'span') ?? START_USAGE.span,
    from: text('from') ?? '',
    to: text('to') ?? '',
    step: oneOf(STEPS, 'step') ?? START_USAGE.step,
    of: oneOf(DIMENSIONS, 'of'),
    named: text('named') ?? '',
  };
}
