/** @import { ShownRecord } from './filters.js' */
import { byId, create, setText } from '../elements/dom.js';
import { formatCount, formatMs, formatRate, UNKNOWN } from '../elements/format.js';
import { RECORD_FIELDS } from './record-fields.js';
import { createTraceLink } from './trace-link.js';

/** @type {Readonly<Record<typeof RECORD_FIELDS[number]['format'], (value: unknown) => string>>} */
const FORMATS = {
  plain: (value) => (Array.isArray(value) ? value.join(', ') : String(value)),
  count: (value) => formatCount(Number(value)),
  duration: (value) => formatMs(Number(value)),
  seconds: (value) => formatMs(1000 * Number(value)),
  rate: (value) => formatRate(Number(value)),
  yes_or_no: (value) => (value === true ? 'yes' : 'no'),
};

const FIRST = ['status', 'error_type', 'truncated'];
const LAST = ['request_id', 'client_request_id', 'trace_id'];
/** @param {string} field */
const rankOf = (field) => (FIRST.includes(field) ? 0 : LAST.includes(field) ? 2 : 1);

const FIELDS = RECORD_FIELDS.toSorted((a, b) => rankOf(a.field) - rankOf(b.field));

/** The dialog with all known details of a request, and with its attempts that failed. */
export class DetailsDialog {
  #dialog = byId('details', HTMLDialogElement);
  #fields = byId('details-fields', HTMLElement);
  #attempts = byId('details-attempts', HTMLElement);
  #gone = byId('details-gone', HTMLElement);
  #trace = byId('details-trace', HTMLElement);
  /** @type {string | null} the request id of the shown record */
  #shown = null;

  /** @param {() => void} onClose called when the user closes the dialog */
  constructor(onClose) {
    this.#dialog.addEventListener('close', () => {
      const isByUser = this.#shown !== null;
      this.#shown = null;
      if (isByUser) onClose();
    });
  }

  /**
   * Opens the dialog, unless it shows this record already.
   * @param {string} requestId
   * @param {ShownRecord | undefined} record undefined if it is not kept any more
   * @param {string | null} traceUrlTemplate
   */
  open(requestId, record, traceUrlTemplate) {
    if (this.#shown === requestId) return;
    this.#shown = requestId;
    this.#gone.hidden = record !== undefined;
    this.#fields.replaceChildren(...(record === undefined ? [] : toFields(record)));
    this.#attempts.replaceChildren(...(record === undefined ? [] : toAttempts(record)));
    this.#trace.replaceChildren(
      ...(record === undefined ? [] : createTraceLink(record, traceUrlTemplate, 'Trace')),
    );
    setText(
      byId('details-title', HTMLElement),
      record === undefined ? 'Request' : `Request ${record.status}`,
    );
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  /** Closes the dialog. It is not the user who does. */
  close() {
    this.#shown = null;
    if (this.#dialog.open) this.#dialog.close();
  }
}

/** @param {ShownRecord} record */
function toFields(record) {
  return FIELDS.filter(({ field }) => record[field] !== undefined).map(({ field, title, format }) =>
    create('div', {}, create('dt', {}, title), create('dd', {}, FORMATS[format](record[field]))),
  );
}

/** @param {ShownRecord} record */
function toAttempts({ failed_attempts = [] }) {
  if (failed_attempts.length === 0) return [];
  const rows = failed_attempts.map(({ replica, failure, status, duration_ms }) =>
    create(
      'tr',
      {},
      create('td', {}, replica),
      create('td', {}, failure),
      create('td', { class: 'number' }, status === null ? UNKNOWN : String(status)),
      create('td', { class: 'number' }, formatMs(duration_ms)),
    ),
  );
  const head = create(
    'tr',
    {},
    create('th', { scope: 'col' }, 'Replica'),
    create('th', { scope: 'col' }, 'Failure'),
    create('th', { scope: 'col', class: 'number' }, 'Status'),
    create('th', { scope: 'col', class: 'number' }, 'Duration'),
  );
  return [
    create('h3', {}, 'Attempts that failed'),
    create('table', {}, create('thead', {}, head), create('tbody', {}, ...rows)),
  ];
}
