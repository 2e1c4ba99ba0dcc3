/** @import { Overview } from '../../overview.ts' */
/** @import { RangeName } from '../history/range.js' */
/** @import { Filter, ShownRecord } from './filters.js' */

import { findRecords } from '../app/api.js';
import { session } from '../app/session.js';
import { byId, setAttribute, setChildren, setText } from '../elements/dom.js';
import { counted, formatCount } from '../elements/format.js';
import { LIVE, toRange } from '../history/range.js';
import { DetailsDialog } from './details.js';
import { FilterForm } from './filter-form.js';
import { matches, toStatusGroup } from './filters.js';
import { PastRecords } from './past-records.js';
import { createRecordRow } from './row.js';

/** The parts of the page's view that this section shows. */
/** @typedef {{ readonly range: RangeName, readonly list: 'latest' | 'failures', readonly filter: Filter, readonly record: string | null, readonly find: string | null }} RecordView */
/** What a search by id has found; `note` says why it is nothing, or not all. */
/** @typedef {{ readonly id: string, readonly records: readonly ShownRecord[], readonly note: string }} Found */

/**
 * Where the shown records come from. `empty`: what stands there without any; `toText`: the text beside the title.
 * @typedef {object} Source
 * @property {readonly ShownRecord[]} held
 * @property {number} maxShown
 * @property {string} note
 * @property {string} empty
 * @property {(shown: number, wanted: number, held: number) => string} toText
 */

/** The numbers that the gateway keeps (of failures: of each kind), and the most rows that a table shows without becoming slow. */
const LISTS = {
  latest: { maxKept: 500, maxShown: 50, empty: 'No request has ended yet.' },
  failures: { maxKept: 200, maxShown: 400, empty: 'No request has failed.' },
};
const NOT_AMONG_LATEST =
  'None of the latest requests has this id. The history is off, so older ones are not known: remove `history: off` from the configuration to keep them.';
const NO_MATCH = 'No request matches these filters.';

/** The lists of the latest and of the failed requests, and those with an id, newest first, with their filters and details. */
export class RecordSection {
  #body = byId('records', HTMLTableElement).tBodies[0];
  #summary = byId('records-summary', HTMLElement);
  #empty = byId('records-empty', HTMLElement);
  #findForm = byId('find', HTMLFormElement);
  #findId = byId('find-id', HTMLInputElement);
  #foundNote = byId('found-note', HTMLElement);
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
  #keepsHistory = false;
  #past = new PastRecords(() => this.#show());
  #older = byId('records-older', HTMLButtonElement);
  /** @type {Found | null} */
  #found = null;
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
    this.#tabs.latest.addEventListener('click', () => onChange({ list: 'latest', find: null }));
    this.#tabs.failures.addEventListener('click', () => onChange({ list: 'failures', find: null }));
    this.#findForm.addEventListener('submit', (event) => {
      event.preventDefault();
      const id = this.#findId.value.trim();
      // What was not there may be there now.
      this.#found = null;
      onChange({ find: id === '' ? null : id });
      this.#show();
    });
    // Of an emptied search nothing is left.
    this.#findId.addEventListener('input', () => {
      if (this.#findId.value === '' && this.#view?.find != null) onChange({ find: null });
    });
    this.#older.addEventListener('click', () => this.#past.loadMore());
    this.#pause.addEventListener('click', () => this.#setPaused(!this.#isPaused));
  }

  /** Removes all records. */
  clear() {
    this.#kept = { latest: [], failures: [] };
    this.#held = this.#kept;
    this.#hasData = false;
    this.#found = null;
    this.#past.clear();
    this.#show();
  }

  /** @param {Overview} overview with the new records */
  add({ records, failures, trace_url_template, keeps_history }) {
    this.#traceUrlTemplate = trace_url_template;
    this.#keepsHistory = keeps_history;
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
    if (this.#view?.find !== view.find) this.#findId.value = view.find ?? '';
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
    const { list, filter, find } = this.#view;
    const { held, maxShown, note, empty, toText } = this.#toSource(this.#view);
    for (const [name, tab] of Object.entries(this.#tabs))
      setAttribute(tab, 'aria-pressed', String(find === null && name === list));
    this.#form.show(filter, held);
    const wanted = held.filter((record) => matches(record, filter));
    const shown = wanted.slice(0, maxShown);
    setChildren(
      this.#body,
      shown.map((record) => this.#rowOf(record)),
    );
    setText(this.#summary, toText(shown.length, wanted.length, held.length));
    setText(this.#foundNote, note);
    this.#empty.hidden = shown.length > 0 || (held.length === 0 && empty === '');
    setText(this.#empty, held.length === 0 ? empty : NO_MATCH);
    this.#showDetails(this.#view.record);
  }

  /**
   * Where the records come from: a search by an id, a range of the history, or the latest ones.
   * @param {RecordView} view
   * @returns {Source}
   */
  #toSource({ range, list, filter, find }) {
    const isPast = find === null && range !== LIVE.name && this.#keepsHistory;
    this.#pause.hidden = isPast || find !== null;
    this.#older.hidden = !isPast || !this.#past.hasMore;
    if (find !== null) {
      if (this.#hasData && this.#found?.id !== find) void this.#find(find);
      const found = this.#found?.id === find ? this.#found : null;
      const toText = (/** @type {number} */ _shown, /** @type {number} */ wanted) =>
        counted(wanted, 'request with this id', 'requests with this id');
      return { held: found?.records ?? [], maxShown: Infinity, note: found?.note ?? '', empty: '', toText };
    }
    if (!isPast) return { held: this.#held[list], ...LISTS[list], note: '', toText: toSummary };
    const wanted = toRange(range);
    this.#past.show({ range: wanted, list, filter });
    const { records, note, isLoading } = this.#past;
    const empty = isLoading ? '' : `No request of ${wanted.words} is like this.`;
    const toText = (/** @type {number} */ shown) =>
      shown === 0 ? '' : `the newest ${formatCount(shown)} of ${wanted.words}`;
    return { held: records, maxShown: Infinity, note, empty, toText };
  }

  /** Looks for an id, in the history if there is one. @param {string} id */
  async #find(id) {
    this.#found = { id, records: [], note: 'Looking in the history …' };
    const found = await (this.#keepsHistory ? findInHistory(id) : this.#findAmongLatest(id));
    // Something else is wanted meanwhile.
    if (this.#view?.find !== id) return;
    this.#found = found;
    const [only, more] = found.records;
    if (only !== undefined && more === undefined && this.#view.record === null)
      this.#onChange({ record: only.request_id });
    else this.#show();
  }

  /** @param {string} id @returns {Found} */
  #findAmongLatest(id) {
    const byId = new Map(this.#all.map((record) => [record.request_id, record]));
    const records = [...byId.values()].filter((record) => hasId(record, id));
    return { id, records, note: records.length === 0 ? NOT_AMONG_LATEST : '' };
  }

  /** All records that the page has; some twice. */
  get #all() {
    return [
      ...this.#kept.latest,
      ...this.#kept.failures,
      ...this.#held.latest,
      ...this.#held.failures,
      ...(this.#found?.records ?? []),
    ];
  }

  /** @param {string | null} requestId */
  #showDetails(requestId) {
    if (requestId === null) this.#details.close();
    else if (this.#hasData) {
      const record = this.#all.find(({ request_id }) => request_id === requestId);
      this.#details.open(requestId, record, {
        traceUrlTemplate: this.#traceUrlTemplate,
        keepsHistory: this.#keepsHistory,
      });
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
 * @param {string} id
 * @returns {Promise<Found>}
 */
async function findInHistory(id) {
  const result = await findRecords(session.token ?? '', id);
  if (result.kind === 'ok') return { id, records: result.value.records, note: result.value.note ?? '' };
  return { id, records: [], note: result.kind === 'failed' ? result.message : '' };
}

/**
 * Whether one of the ids of a record is this one.
 * @param {ShownRecord} record
 * @param {string} id
 */
function hasId({ request_id, trace_id, response_id, client_request_id }, id) {
  return [request_id, trace_id, response_id, client_request_id].includes(id);
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
