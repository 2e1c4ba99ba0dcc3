/** @import { Overview } from '../../overview.ts' */
/** @import { ShowRecords } from '../records/filters.js' */
import { create, setAttribute, setChildren, setText } from '../elements/dom.js';
import { formatCount, UNKNOWN } from '../elements/format.js';
import { createName } from '../elements/name.js';
import { NO_FILTER } from '../records/filters.js';

/** @typedef {Overview['failure_reasons'][number]} Reason */

/**
 * Creates the table of why requests failed in the last minute. A press on a reason shows its requests.
 * @param {HTMLTableElement} table
 * @param {HTMLElement} empty shown if there is none
 * @param {ShowRecords} showRecords
 * @returns {(overview: Overview) => void}
 */
export function createFailureReasons(table, empty, showRecords) {
  const body = table.createTBody();
  /** @type {ReturnType<typeof createReasonRow>[]} */
  const rows = [];
  return ({ failure_reasons }) => {
    while (rows.length < failure_reasons.length) rows.push(createReasonRow(showRecords));
    for (const [at, reason] of failure_reasons.entries()) rows[at]?.show(reason);
    setChildren(
      body,
      rows.slice(0, failure_reasons.length).map(({ element }) => element),
    );
    table.hidden = failure_reasons.length === 0;
    empty.hidden = failure_reasons.length > 0;
  };
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
    if (shown === undefined) return;
    const { replica, model } = shown;
    showRecords({
      list: 'failures',
      filter: { ...NO_FILTER, error_type: shown.code, replica: replica ?? '', model: model ?? '' },
    });
  });
  const element = create(
    'tr',
    {},
    count,
    create('th', { scope: 'row' }, status, code),
    create('td', {}, replica.element),
    create('td', {}, model.element),
  );
  return {
    element,
    /** @param {Reason} reason */
    show(reason) {
      shown = reason;
      setText(count, formatCount(reason.count));
      setText(code, reason.code);
      setText(status, String(reason.status));
      setAttribute(status, 'data-level', reason.status >= 500 || reason.status < 400 ? 'bad' : 'warn');
      replica.show(reason.replica ?? UNKNOWN);
      model.show(reason.model ?? UNKNOWN);
    },
  };
}
