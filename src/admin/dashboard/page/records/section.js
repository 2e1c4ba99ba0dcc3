/** @import { Overview } from '../../overview.ts' */
/** @import { Filter, ShownRecord } from './filters.js' */
import { byId, setAttribute, setChildren, setText } from '../elements/dom.js';
import { counted, formatCount } from '../elements/format.js';
import { DetailsDialog } from './details.js';
import { FilterForm } from './filter-form.js';
import { matches, toStatusGroup } from './filters.js';
import { createRecordRow } from './row.js';

/** The parts of the page's view that this section shows. */
/** @typedef {{ readonly list: 'latest' | 'failures', readonly filter: Filter, readonly record: string | null }} RecordView */

/** The numbers that the gateway keeps (of failures: of each kind), and the most rows that a table shows without becoming slow. */
const LISTS = {
  latest: { maxKept: 500, maxShown: 50, empty: 'No request has ended yet.' },
  failures: { maxKept: 200, maxShown: 400, empty: 'No request has failed.' },
};
const NO_MATCH = 'No request matches these filters.';

/** The lists of the latest and of the failed requests, newest first, with their filters and details. */
export class RecordSection {
  #body = byId('records', HTMLTableElement).tBodies[0];
  #summary = byId('records-summary', HTMLElement);
  #empty = byId('records-empty', HTMLElement);
  #pause = byId('records-pause', HTMLButtonElement);
  #tabs = { latest: byId('list-latest', HTMLElement), failures: byId('list-failures', HTMLElement) };
  #form;
  #details;
  #onChange;
  /** @type {{ latest: readonly ShownRecord[], failures: readonly ShownRecord[] }} */
  #kept = { latest: [], failures: [] };
  /** What the tables show; it does not change while they are paused. */
  #held = this.#kept;
  #hasData = false;
  /** @type {RecordView | null} */
  #view = null;
  /** @type {WeakMap<ShownRecord, HTMLTableRowElement>} */
  #rows = new WeakMap();
  /** @type {string | null} */
  #traceUrlTemplate = null;

  /** @param {(change: Partial<RecordView>) => void} onChange called when the user chooses something */
  constructor(onChange) {
    this.#onChange = onChange;
    this.#form = new FilterForm((filter) => onChange({ filter }));
    this.#details = new DetailsDialog(() => onChange({ record: null }));
    this.#tabs.latest.addEventListener('click', () => onChange({ list: 'latest' }));
    this.#tabs.failures.addEventListener('click', () => onChange({ list: 'failures' }));
    this.#pause.addEventListener('click', () => this.#setPaused(!this.#isPaused));
  }

  /** Removes all records. */
  clear() {
    this.#kept = { latest: [], failures: [] };
    this.#held = this.#kept;
    this.#hasData = false;
    this.#show();
  }

  /** @param {Overview} overview with the new records */
  add({ records, failures, trace_url_template }) {
    this.#traceUrlTemplate = trace_url_template;
    this.#kept = {
      latest: [...records, ...this.#kept.latest].slice(0, LISTS.latest.maxKept),
      failures: keepFailures([...failures, ...this.#kept.failures]),
    };
    if (!this.#isPaused) this.#held = this.#kept;
    this.#hasData = true;
    this.#show();
  }

  /** @param {RecordView} view */
  showView(view) {
    this.#view = view;
    this.#show();
  }

  get #isPaused() {
    return this.#pause.getAttribute('aria-pressed') === 'true';
  }

  /** @param {boolean} isPaused */
  #setPaused(isPaused) {
    setAttribute(this.#pause, 'aria-pressed', String(isPaused));
    if (!isPaused) this.#held = this.#kept;
    this.#show();
  }

  #show() {
    if (this.#view === null || this.#body === undefined) return;
    const { list, filter } = this.#view;
    const held = this.#held[list];
    for (const [name, tab] of Object.entries(this.#tabs))
      setAttribute(tab, 'aria-pressed', String(name === list));
    this.#form.show(filter, held);
    const wanted = held.filter((record) => matches(record, filter));
    const shown = wanted.slice(0, LISTS[list].maxShown);
    setChildren(
      this.#body,
      shown.map((record) => this.#rowOf(record)),
    );
    setText(this.#summary, toSummary(shown.length, wanted.length, held.length));
    this.#empty.hidden = shown.length > 0;
    setText(this.#empty, held.length === 0 ? LISTS[list].empty : NO_MATCH);
    this.#showDetails(this.#view.record);
  }

  /** @param {string | null} requestId */
  #showDetails(requestId) {
    if (requestId === null) this.#details.close();
    else if (this.#hasData) {
      const kept = [
        ...this.#kept.latest,
        ...this.#kept.failures,
        ...this.#held.latest,
        ...this.#held.failures,
      ];
      const record = kept.find(({ request_id }) => request_id === requestId);
      this.#details.open(requestId, record, this.#traceUrlTemplate);
    }
  }

  /** @param {ShownRecord} record */
  #rowOf(record) {
    let row = this.#rows.get(record);
    if (row === undefined) {
      row = createRecordRow(record, this.#traceUrlTemplate, ({ request_id }) =>
        this.#onChange({ record: request_id }),
      );
      this.#rows.set(record, row);
    }
    return row;
  }
}

/**
 * The latest errors and the latest client errors, so that many of one kind do not hide the others.
 * @param {readonly ShownRecord[]} records newest first
 */
function keepFailures(records) {
  const left = { errors: LISTS.failures.maxKept, clientErrors: LISTS.failures.maxKept };
  return records.filter((record) => {
    const kind = toStatusGroup(record) === 'client_error' ? 'clientErrors' : 'errors';
    left[kind] -= 1;
    return left[kind] >= 0;
  });
}

/**
 * @param {number} shown
 * @param {number} wanted
 * @param {number} kept
 */
function toSummary(shown, wanted, kept) {
  if (kept === 0) return '';
  const which = shown < wanted ? `the newest ${formatCount(shown)} of ` : '';
  const of = wanted < kept ? `${counted(wanted, 'match', 'matches')} in ` : '';
  return `${which}${of}the last ${formatCount(kept)}`;
}
