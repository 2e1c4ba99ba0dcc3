/** @import { ShownRecord } from './filters.js' */
import { byId, create } from './dom.js';
import { formatCount, formatMs } from './format.js';
import { RECORD_FIELDS } from './record-fields.js';

/** @type {Readonly<Record<typeof RECORD_FIELDS[number]['format'], (value: unknown) => string>>} */
const FORMATS = {
  plain: (value) => (Array.isArray(value) ? value.join(', ') : String(value)),
  count: (value) => formatCount(Number(value)),
  duration: (value) => formatMs(Number(value)),
  yes_or_no: (value) => (value === true ? 'yes' : 'no'),
};

const FIRST = ['status', 'error_type', 'truncated'];
const LAST = ['request_id', 'client_request_id', 'trace_id'];
/** @param {string} field */
const rankOf = (field) => (FIRST.includes(field) ? 0 : LAST.includes(field) ? 2 : 1);

const FIELDS = RECORD_FIELDS.toSorted((a, b) => rankOf(a.field) - rankOf(b.field));

/**
 * Opens the dialog with all known details of a request.
 * @param {ShownRecord} record
 */
export function showDetails(record) {
  const known = FIELDS.filter(({ field }) => record[field] !== undefined);
  byId('details-fields', HTMLElement).replaceChildren(
    ...known.map(({ field, title, format }) =>
      create('div', {}, create('dt', {}, title), create('dd', {}, FORMATS[format](record[field]))),
    ),
  );
  byId('details', HTMLDialogElement).showModal();
}
