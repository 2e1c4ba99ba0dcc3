/** @import { Range } from '../history/range.js' */
/** @import { Filter, ShownRecord } from './filters.js' */
import { fetchRecords } from '../app/api.js';
import { session } from '../app/session.js';
import { withLocalTimes } from '../elements/format.js';

/** So many records are loaded at a time. */
const PAGE = '200';

/** Which records of a range are wanted. */
/** @typedef {{ readonly range: Range, readonly list: 'latest' | 'failures', readonly filter: Filter }} Wanted */

/**
 * The parameters of GET /admin/records. What it cannot select, the page leaves out.
 * @param {Wanted} wanted
 * @returns {Readonly<Record<string, string>>}
 */
export function toRecordsQuery({ range, list, filter }) {
  const names = Object.entries({ replica: filter.replica, model: filter.model, tenant: filter.tenant });
  const isFailed = list === 'failures' || filter.status === 'server_error';
  return {
    since: range.name,
    limit: PAGE,
    ...Object.fromEntries(names.flatMap(([name, value]) => (value ? [[name, value]] : []))),
    ...(filter.status === 'client_error' ? { status: '4xx' } : {}),
    ...(isFailed ? { failed: 'true' } : filter.status === 'success' ? { failed: 'false' } : {}),
  };
}

/** Records of a range from the history: the newest, and older ones page by page. */
export class PastRecords {
  #onLoad;
  /** @type {Wanted | null} */
  #wanted = null;
  #key = '';
  /** @type {readonly ShownRecord[]} */
  #records = [];
  /** @type {number | null} */
  #next = null;
  #note = '';
  #isLoading = false;

  /** @param {() => void} onLoad called when there are other records */
  constructor(onLoad) {
    this.#onLoad = onLoad;
  }

  /** The newest first. */
  get records() {
    return this.#records;
  }

  get isLoading() {
    return this.#isLoading;
  }

  /** Whether there are older ones. */
  get hasMore() {
    return this.#next !== null;
  }

  /** Why there is nothing, or what is missing; may be empty. */
  get note() {
    return this.#note;
  }

  /** Loads what is wanted, unless it is there. @param {Wanted} wanted */
  show(wanted) {
    const key = JSON.stringify([wanted.range.name, wanted.list, wanted.filter]);
    if (key === this.#key) return;
    this.clear();
    this.#key = key;
    this.#wanted = wanted;
    this.#note = 'Looking in the history …';
    void this.#load({});
  }

  /** Loads older ones. */
  loadMore() {
    if (this.#next !== null) void this.#load({ before: String(this.#next) });
  }

  /** Forgets all. */
  clear() {
    this.#key = '';
    this.#wanted = null;
    this.#isLoading = false;
    this.#records = [];
    this.#next = null;
    this.#note = '';
  }

  /** @param {Readonly<Record<string, string>>} page */
  async #load(page) {
    const wanted = this.#wanted;
    if (wanted === null) return;
    this.#isLoading = true;
    const result = await fetchRecords(session.token ?? '', { ...toRecordsQuery(wanted), ...page });
    // Something else is wanted meanwhile.
    if (this.#wanted !== wanted) return;
    this.#isLoading = false;
    if (result.kind === 'ok') {
      const { records, history } = result.value;
      this.#records = [...this.#records, ...records];
      this.#next = history?.next ?? null;
      this.#note = withLocalTimes(history?.note ?? '');
    } else {
      // It is asked again when something else is chosen.
      this.#note = result.kind === 'failed' ? result.message : '';
      this.#next = null;
    }
    this.#onLoad();
  }
}
