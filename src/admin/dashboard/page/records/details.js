/** @import { ShownRecord } from './filters.js' */

import { fetchUsage, findRecords } from '../app/api.js';
import { session } from '../app/session.js';
import { byId, create, setText } from '../elements/dom.js';
import { formatCost, formatCount, formatMoment, formatMs, formatRate, UNKNOWN } from '../elements/format.js';
import { explain } from './explain.js';
import { toLikeQuery, toUsual } from './like-requests.js';
import { createPicture } from './picture.js';
import { RECORD_FIELDS } from './record-fields.js';
import { createTraceLink } from './trace-link.js';

/** @type {Readonly<Record<typeof RECORD_FIELDS[number]['format'], (value: unknown) => string>>} */
const FORMATS = {
  plain: (value) => (Array.isArray(value) ? value.join(', ') : String(value)),
  count: (value) => formatCount(Number(value)),
  duration: (value) => formatMs(Number(value)),
  seconds: (value) => formatMs(1000 * Number(value)),
  rate: (value) => formatRate(Number(value)),
  cost: (value) => formatCost(Number(value)),
  yes_or_no: (value) => (value === true ? 'yes' : 'no'),
};

const FIRST = ['status', 'error_type', 'truncated'];
const LAST = ['request_id', 'client_request_id', 'trace_id'];
/** @param {string} field */
const rankOf = (field) => (FIRST.includes(field) ? 0 : LAST.includes(field) ? 2 : 1);

const FIELDS = RECORD_FIELDS.toSorted((a, b) => rankOf(a.field) - rankOf(b.field));

const GONE =
  'The gateway does not keep this request any more. It keeps the last 500 requests, the last 200 errors and the last 200 client errors, because its history is off.';
const TOO_FEW = 'Too few requests of this model and endpoint succeeded in its hour to compare it with.';

/** @typedef {{ readonly traceUrlTemplate: string | null, readonly keepsHistory: boolean }} DetailsContext */

/** The dialog with all known details of a request: a picture of its time, why it took so long, its attempts that failed. */
export class DetailsDialog {
  #dialog = byId('details', HTMLDialogElement);
  #fields = byId('details-fields', HTMLElement);
  #attempts = byId('details-attempts', HTMLElement);
  #gone = byId('details-gone', HTMLElement);
  #trace = byId('details-trace', HTMLElement);
  #why = byId('details-why', HTMLElement);
  #picture = byId('details-picture', HTMLElement);
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
   * @param {ShownRecord | undefined} record undefined if the page does not have it
   * @param {DetailsContext} context
   */
  open(requestId, record, context) {
    if (this.#shown === requestId) return;
    this.#shown = requestId;
    this.#show(record, context);
    if (record === undefined && context.keepsHistory) void this.#load(requestId, context);
    else if (record === undefined) this.#showGone(GONE);
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  /**
   * Shows what the history has of a request.
   * @param {string} requestId
   * @param {DetailsContext} context
   */
  async #load(requestId, context) {
    this.#showGone('Looking in the history …');
    const result = await findRecords(session.token ?? '', requestId);
    if (this.#shown !== requestId) return;
    const record =
      result.kind === 'ok'
        ? result.value.records.find(({ request_id }) => request_id === requestId)
        : undefined;
    if (record !== undefined) this.#show(record, context);
    else this.#showGone(result.kind === 'failed' ? result.message : GONE);
  }

  /** @param {string} text */
  #showGone(text) {
    this.#gone.hidden = false;
    setText(this.#gone, text);
  }

  /**
   * @param {ShownRecord | undefined} record
   * @param {DetailsContext} context
   */
  #show(record, { traceUrlTemplate, keepsHistory }) {
    this.#gone.hidden = true;
    this.#fields.replaceChildren(...(record === undefined ? [] : toFields(record)));
    this.#attempts.replaceChildren(...(record === undefined ? [] : toAttempts(record)));
    this.#trace.replaceChildren(
      ...(record === undefined ? [] : createTraceLink(record, traceUrlTemplate, 'Trace')),
    );
    setText(
      byId('details-title', HTMLElement),
      record === undefined ? 'Request' : `Request ${record.status}`,
    );
    this.#picture.replaceChildren(...(record === undefined ? [] : createPicture(record, null)));
    const query = record === undefined || !keepsHistory ? null : toLikeQuery(record);
    setText(this.#why, record === undefined || query !== null ? '' : explain(record, null));
    if (record !== undefined && query !== null) void this.#compare(record, query);
  }

  /**
   * Compares it with like requests of its hour.
   * @param {ShownRecord} record
   * @param {Readonly<Record<string, string>>} query
   */
  async #compare(record, query) {
    const result = await fetchUsage(session.token ?? '', query);
    if (this.#shown !== record.request_id) return;
    const usual = result.kind === 'ok' ? toUsual(result.value) : null;
    setText(this.#why, explain(record, usual));
    const note = result.kind === 'failed' ? result.message : usual === null ? TOO_FEW : '';
    this.#picture.replaceChildren(
      ...createPicture(record, usual),
      ...(note === '' ? [] : [create('p', { class: 'usual usual-note' }, note)]),
    );
  }

  /** Closes the dialog. It is not the user who does. */
  close() {
    this.#shown = null;
    if (this.#dialog.open) this.#dialog.close();
  }
}

/** @param {ShownRecord} record */
function toFields(record) {
  // As the list tells it, and as logs and traces do.
  const arrived = `${formatMoment(record.ts, Date.now())} (${record.ts})`;
  return FIELDS.filter(({ field }) => record[field] !== undefined).map(({ field, title, format }) => {
    const text = field === 'ts' ? arrived : FORMATS[format](record[field]);
    return create('div', {}, create('dt', {}, title), create('dd', {}, text));
  });
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
