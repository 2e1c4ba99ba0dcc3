/** @import { Filter, NameField, StatusGroup } from '../records/filters.js' */
/** @import { ReplicaView, Sort } from '../replicas/order.js' */
import { NO_FILTER, STATUS_GROUPS } from '../records/filters.js';
import { SORTABLE } from '../replicas/columns.js';

/** What the user has chosen to see, and its form in the URL. Pure. */

/**
 * `list`: all requests or the failed ones. `record`: the request id of the record whose details are open.
 * @typedef {{ readonly replicas: ReplicaView, readonly list: 'latest' | 'failures', readonly filter: Filter, readonly record: string | null }} View
 */

/** @type {View} */
export const START_VIEW = {
  replicas: { search: '', sort: null, isFlat: false },
  list: 'latest',
  filter: NO_FILTER,
  record: null,
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
    replicas: {
      search: text('search') ?? '',
      sort: toSort(text('sort') ?? ''),
      isFlat: parameters.get('flat') === '1',
    },
    list: parameters.get('list') === 'failures' ? 'failures' : 'latest',
    filter: { ...NO_FILTER, ...names, status: toStatus(text('status') ?? '') },
    record: text('record') || null,
  };
}

/**
 * The fragment of a URL for a view, without `#`; empty for the view at the start.
 * @param {View} view
 */
export function toFragment({ replicas, list, filter, record }) {
  const parameters = new URLSearchParams();
  /** @param {string} name @param {string | null} value */
  const add = (name, value) => value !== null && parameters.append(name, value);
  add('search', replicas.search || null);
  add(
    'sort',
    replicas.sort === null ? null : `${replicas.sort.isDescending ? '-' : ''}${replicas.sort.column}`,
  );
  add('flat', replicas.isFlat ? '1' : null);
  add('list', list === 'failures' ? list : null);
  for (const field of NAME_FIELDS) add(field, filter[field]);
  add('status', filter.status || null);
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
