/** @import { Reason } from '../history/figures.js' */
/** @import { Filter, ShowRecords } from '../records/filters.js' */
import { create, setAttribute, setText } from '../elements/dom.js';
import { formatCount, UNKNOWN } from '../elements/format.js';
import { createLongTable } from '../elements/long-table.js';
import { createName } from '../elements/name.js';
import { NO_FILTER } from '../records/filters.js';

/** Stands for all names and codes that the gateway does not count one by one. */
const OTHERS = '_OTHER';

/**
 * Creates the table of why requests failed. A press on a reason shows its requests.
 * @param {HTMLTableElement} table
 * @param {ShowRecords} showRecords
 * @returns {(reasons: readonly Reason[]) => void}
 */
export function createFailureReasons(table, showRecords) {
  return createLongTable(table, 'No request has failed in this time.', () => createReasonRow(showRecords));
}

/** @param {ShowRecords} showRecords */
function createReasonRow(showRecords) {
  const count = create('td', { class: 'number' });
  const code = create('button', { type: 'button', class: 'link' });
  const status = create('span', { class: 'status-code' });
  const replica = createName('part-name');
  const model = createName('part-name');
  /** @type {Reason | undefined} */
  let shown;
  code.addEventListener('click', () => {
    if (shown !== undefined) showRecords({ list: 'failures', filter: toFilter(shown) });
  });
  const element = create(
    'tr',
    {},
    count,
    create('th', { scope: 'row' }, create('span', { class: 'reason' }, status, code)),
    create('td', {}, replica.element),
    create('td', {}, model.element),
  );
  return {
    element,
    /** @param {Reason} reason */
    show(reason) {
      shown = reason;
      setText(count, formatCount(reason.count));
      setText(code, isWithoutCode(reason) ? 'answered by the replica' : reason.code);
      status.hidden = reason.status === null;
      setText(status, String(reason.status ?? ''));
      const isClientError = reason.status !== null && reason.status >= 400 && reason.status < 500;
      setAttribute(status, 'data-level', isClientError ? 'warn' : 'bad');
      replica.show(reason.replica ?? UNKNOWN);
      model.show(reason.model ?? UNKNOWN);
    },
  };
}

/**
 * The filter for the requests of a reason.
 * @param {Reason} reason
 * @returns {Filter}
 */
function toFilter(reason) {
  const { code, replica, model } = reason;
  /** @param {string | null} name */
  const wanted = (name) => (name === OTHERS ? null : (name ?? ''));
  const error_type = code === OTHERS ? null : isWithoutCode(reason) ? '' : code;
  return { ...NO_FILTER, error_type, replica: wanted(replica), model: wanted(model) };
}

/**
 * Whether the records of a reason have no code: the replica has answered with this status itself.
 * @param {Reason} reason
 */
function isWithoutCode({ code, status }) {
  return code === String(status);
}
