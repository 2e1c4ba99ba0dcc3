/** @import { Overview } from '../../overview.ts' */

/** @typedef {Overview['records'][number]} ShownRecord */
/** The fields that a name is chosen for. `error_type` is the code of the failure. */
/** @typedef {'replica' | 'model' | 'tenant' | 'error_type'} NameField */
/** @typedef {'' | 'success' | 'client_error' | 'server_error' | 'disconnected'} StatusGroup */

/**
 * Which records to show. Null matches any name, an empty name matches records without one.
 * @typedef {Readonly<Record<NameField, string | null> & { status: StatusGroup }>} Filter
 */

/** Shows the requests of a list that a filter matches. */
/** @typedef {(change: { readonly list: 'latest' | 'failures', readonly filter: Filter }) => void} ShowRecords */

/** @type {Filter} */
export const NO_FILTER = { replica: null, model: null, tenant: null, error_type: null, status: '' };

/** The groups with their titles. */
/** @type {readonly (readonly [group: StatusGroup, title: string])[]} */
export const STATUS_GROUPS = [
  ['', 'Any status'],
  ['success', 'Success'],
  ['client_error', 'Client errors (4xx)'],
  ['server_error', 'Failures (5xx, truncated)'],
  ['disconnected', 'Client disconnected'],
];

/**
 * The status group of a record. An incomplete response with status 200 is not a success.
 * @param {ShownRecord} record
 * @returns {Exclude<StatusGroup, ''>}
 */
export function toStatusGroup({ status, error_type }) {
  if (status === 499 || error_type === 'client_closed') return 'disconnected';
  if (status >= 500) return 'server_error';
  if (status >= 400) return 'client_error';
  return error_type === undefined ? 'success' : 'server_error';
}

/**
 * Whether a record matches the filter.
 * @param {ShownRecord} record
 * @param {Filter} filter
 */
export function matches(record, filter) {
  const matchesName = (/** @type {NameField} */ field) =>
    filter[field] === null || (record[field] ?? '') === filter[field];
  return (
    matchesName('replica') &&
    matchesName('model') &&
    matchesName('tenant') &&
    matchesName('error_type') &&
    (filter.status === '' || toStatusGroup(record) === filter.status)
  );
}

/**
 * The sorted names in a field of the records. An empty name stands for records without one.
 * @param {readonly ShownRecord[]} records
 * @param {NameField} field
 */
export function namesIn(records, field) {
  return [...new Set(records.map((record) => record[field] ?? ''))].sort((a, b) => a.localeCompare(b));
}
