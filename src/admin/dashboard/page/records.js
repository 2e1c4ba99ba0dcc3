/** @import { Overview } from '../overview.ts' */
/** @import { Filter, NameField, ShownRecord, StatusGroup } from './filters.js' */
import { showDetails } from './details.js';
import { byId, create, setAttribute, setChildren, setText } from './dom.js';
import { matches, NO_FILTER, namesIn, toStatusGroup } from './filters.js';
import { counted, formatCount, formatMs, formatTime, UNKNOWN } from './format.js';

/** The number that the gateway keeps. */
const MAX_KEPT = 500;
/** The most rows that the table shows without becoming slow. */
const MAX_SHOWN = 50;

/** @type {readonly (readonly [field: NameField, title: string])[]} */
const NAME_FILTERS = [
  ['replica', 'Replica'],
  ['model', 'Model'],
  ['tenant', 'Tenant'],
];

/** @type {readonly (readonly [group: StatusGroup, title: string])[]} */
const STATUS_GROUPS = [
  ['', 'Any status'],
  ['success', 'Success'],
  ['client_error', 'Client errors (4xx)'],
  ['server_error', 'Failures (5xx, incomplete)'],
  ['disconnected', 'Client disconnected'],
];

/** The latest requests, with their filters. */
export class RecordTable {
  #body = byId('records', HTMLTableElement).tBodies[0];
  #summary = byId('records-summary', HTMLElement);
  #empty = byId('records-empty', HTMLElement);
  #pause = create('button', { type: 'button', class: 'quiet', 'aria-pressed': 'false' }, 'Pause');
  /** @type {Map<NameField, HTMLSelectElement>} */
  #selects = new Map();
  /** @type {ShownRecord[]} newest first */
  #records = [];
  /** @type {readonly ShownRecord[]} the records in the table; they do not change while it is paused */
  #held = [];
  /** @type {Filter} */
  #filter = NO_FILTER;
  /** @type {WeakMap<ShownRecord, HTMLTableRowElement>} */
  #rows = new WeakMap();
  /** @type {string | null} */
  #traceUrlTemplate = null;

  constructor() {
    const form = byId('filters', HTMLFormElement);
    for (const [field, title] of NAME_FILTERS) {
      const select = create('select', { id: `filter-${field}`, 'aria-label': title });
      select.addEventListener('change', () => {
        this.#filter = { ...this.#filter, [field]: toWanted(select.value) };
        this.#show();
      });
      this.#selects.set(field, select);
      form.append(select);
    }
    const options = STATUS_GROUPS.map(([group, title]) => create('option', { value: group }, title));
    const status = create('select', { id: 'filter-status', 'aria-label': 'Status' }, ...options);
    status.addEventListener('change', () => {
      this.#filter = { ...this.#filter, status: /** @type {StatusGroup} */ (status.value) };
      this.#show();
    });
    const clear = create('button', { type: 'reset', class: 'quiet' }, 'Clear filters');
    form.append(status, clear, this.#pause);
    form.addEventListener('submit', (event) => event.preventDefault());
    form.addEventListener('reset', () => {
      this.#filter = NO_FILTER;
      this.#show();
    });
    this.#pause.addEventListener('click', () => {
      this.#setPaused(!this.#isPaused);
    });
  }

  /** Removes all records. */
  clear() {
    this.#records = [];
    this.#held = [];
  }

  /** @param {Overview} overview with the new records */
  add({ records, trace_url_template }) {
    this.#traceUrlTemplate = trace_url_template;
    this.#records = [...records, ...this.#records].slice(0, MAX_KEPT);
    if (!this.#isPaused) this.#held = this.#records;
    this.#show();
  }

  get #isPaused() {
    return this.#pause.getAttribute('aria-pressed') === 'true';
  }

  /** @param {boolean} isPaused */
  #setPaused(isPaused) {
    setAttribute(this.#pause, 'aria-pressed', String(isPaused));
    if (!isPaused) this.#held = this.#records;
    this.#show();
  }

  #show() {
    for (const [field, title] of NAME_FILTERS) this.#offerNames(field, title);
    const wanted = this.#held.filter((record) => matches(record, this.#filter));
    const shown = wanted.slice(0, MAX_SHOWN);
    if (this.#body !== undefined)
      setChildren(
        this.#body,
        shown.map((record) => this.#rowOf(record)),
      );
    setText(this.#summary, toSummary(shown.length, wanted.length, this.#held.length));
    this.#empty.hidden = shown.length > 0;
    setText(this.#empty, this.#held.length === 0 ? NO_RECORDS : NO_MATCH);
  }

  /**
   * Updates the options of a select from the records. Always includes the selected one.
   * @param {NameField} field
   * @param {string} title
   */
  #offerNames(field, title) {
    const select = this.#selects.get(field);
    const chosen = this.#filter[field];
    if (select === undefined) return;
    const names = namesIn(this.#held, field);
    const offered = chosen === null || names.includes(chosen) ? names : [chosen, ...names];
    const values = [ANY, ...offered.map((name) => `=${name}`)];
    const { options } = select;
    if (options.length === values.length && values.every((value, at) => options[at]?.value === value)) return;
    select.replaceChildren(
      create('option', { value: ANY }, `Any ${title.toLowerCase()}`),
      ...offered.map((name) =>
        create('option', { value: `=${name}` }, name === '' ? `Without ${title.toLowerCase()}` : name),
      ),
    );
    select.value = chosen === null ? ANY : `=${chosen}`;
  }

  /** @param {ShownRecord} record */
  #rowOf(record) {
    let row = this.#rows.get(record);
    if (row === undefined) {
      row = createRow(record, this.#traceUrlTemplate);
      this.#rows.set(record, row);
    }
    return row;
  }
}

const NO_RECORDS = 'No request has ended yet.';
const NO_MATCH = 'No request matches these filters.';

/** The value of the option without a filter. The values of names start with `=`. */
const ANY = '';

/** @param {string} value */
function toWanted(value) {
  return value === ANY ? null : value.slice(1);
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

/**
 * @param {ShownRecord} record
 * @param {string | null} traceUrlTemplate
 */
function createRow(record, traceUrlTemplate) {
  const ended = formatTime(Date.parse(record.ts) + record.e2e_ms);
  const time = create('button', { type: 'button', class: 'link' }, ended);
  time.setAttribute('aria-label', `Details of the request that ended at ${ended}`);
  time.addEventListener('click', () => showDetails(record));
  const status = create(
    'span',
    { class: 'status', 'data-group': toStatusGroup(record) },
    String(record.status),
  );
  if (record.error_type !== undefined) status.append(create('span', { class: 'code' }, record.error_type));
  return create(
    'tr',
    {},
    create('td', { class: 'time' }, time),
    create('td', {}, status),
    textCell('replica', record.replica),
    textCell('model', record.model),
    textCell('tenant', record.tenant),
    textCell('endpoint', ENDPOINTS.get(record.endpoint) ?? record.endpoint),
    numberCell('in', formatCount(record.prompt_tokens)),
    numberCell('out', formatCount(record.completion_tokens)),
    numberCell('TTFT', formatMs(record.ttft_ms)),
    numberCell('e2e', formatMs(record.e2e_ms)),
    create('td', { class: 'trace' }, ...toTraceLink(record, traceUrlTemplate)),
  );
}

/** @type {ReadonlyMap<string, string>} */
const ENDPOINTS = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'completions'],
  ['/v1/embeddings', 'embeddings'],
]);

/**
 * @param {string} label
 * @param {string | undefined} text
 */
function textCell(label, text) {
  const shown = create('span', { class: 'cut', title: text ?? '' }, text ?? UNKNOWN);
  return create('td', { class: text === undefined ? `${label} unknown` : label }, shown);
}

/**
 * @param {string} label
 * @param {string} text
 */
function numberCell(label, text) {
  const known = text === UNKNOWN ? ' unknown' : '';
  return create('td', { class: `number ${label.toLowerCase()}${known}`, 'data-label': label }, text);
}

/**
 * @param {ShownRecord} record
 * @param {string | null} template
 */
function toTraceLink({ trace_id }, template) {
  if (template === null) return [];
  const href = template.replaceAll('{trace_id}', encodeURIComponent(trace_id));
  const link = { href, target: '_blank', rel: 'noopener noreferrer', 'aria-label': `Trace ${trace_id}` };
  return [create('a', link, 'Trace')];
}
