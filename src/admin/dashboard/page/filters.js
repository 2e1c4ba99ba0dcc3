/** @import { Overview } from '../overview.ts' */

/** @typedef {Overview['records'][number]} ShownRecord */
/** @typedef {'replica' | 'model' | 'tenant'} NameField */
/** @typedef {'' | 'success' | 'client_error' | 'server_error' | 'left'} StatusGroup */

/**
 * What is wanted of the records; null is any, an empty name those without one.
 * @typedef {Readonly<Record<NameField, string | null> & { status: StatusGroup }>} Filter
 */

/** @type {Filter} */
export const NO_FILTER = { replica: null, model: null, tenant: null, status: '' };

/**
 * The group of a record's end: a response that broke off has status 200 and is no success.
 * @param {ShownRecord} record
 * @returns {Exclude<StatusGroup, ''>}
 */
export function toStatusGroup({ status, error_type }) {
  if (status === 499 || error_type === 'client_closed') return 'left';
  if (status >= 500) return 'server_error';
  if (status >= 400) return 'client_error';
  return error_type === undefined ? 'success' : 'server_error';
}

/**
 * Whether the filter lets the record through.
 * @param {ShownRecord} record
 * @param {Filter} filter
 */
export function matches(record, filter) {
  const isWanted = (/** @type {NameField} */ field) =>
    filter[field] === null || (record[field] ?? '') === filter[field];
  return (
    isWanted('replica') &&
    isWanted('model') &&
    isWanted('tenant') &&
    (filter.status === '' || toStatusGroup(record) === filter.status)
  );
}

/**
 * The names that the records have in a field, sorted; an empty one stands for records without.
 * @param {readonly ShownRecord[]} records
 * @param {NameField} field
 */
export function namesIn(records, field) {
  return [...new Set(records.map((record) => record[field] ?? ''))].sort((a, b) => a.localeCompare(b));
}
