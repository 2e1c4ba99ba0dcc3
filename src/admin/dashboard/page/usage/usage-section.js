/** @import { UsageJson } from '../../../routes/history/usage.ts' */
/** @import { SpanName, Step, UsageView } from './usage-query.js' */
import { fetchUsage } from '../app/api.js';
import { session } from '../app/session.js';
import { byId, create, setText } from '../elements/dom.js';
import { toCsv } from './usage-csv.js';
import {
  DIMENSIONS,
  only,
  SPANS,
  START_USAGE,
  STEPS,
  toDay,
  toKeptText,
  toNotes,
  toQuery,
  toSpanText,
} from './usage-query.js';
import { UsageTable } from './usage-table.js';

/** Polls of the page between two looks at the same span. */
const EVERY_POLLS = 15;
/** A name is asked for when the user has stopped typing. */
const TYPING_MS = 400;

/** The part of the page about who used how much, over a span of the history. */
export class UsageSection {
  #by = byId('usage-by', HTMLSelectElement);
  #and = byId('usage-and', HTMLSelectElement);
  #span = byId('usage-span', HTMLSelectElement);
  #days = byId('usage-days', HTMLElement);
  #from = byId('usage-from', HTMLInputElement);
  #to = byId('usage-to', HTMLInputElement);
  #step = byId('usage-step', HTMLSelectElement);
  #of = byId('usage-of', HTMLSelectElement);
  #named = byId('usage-named', HTMLInputElement);
  #names = byId('usage-names', HTMLElement);
  #save = byId('usage-save', HTMLButtonElement);
  #summary = byId('usage-summary', HTMLElement);
  #notes = byId('usage-notes', HTMLElement);
  #kept = byId('usage-kept', HTMLElement);
  #table;
  #onChange;
  #pollIntervalMs;
  /** @type {UsageView} */
  #view = START_USAGE;
  /** @type {UsageJson | null} */
  #usage = null;
  /** @type {string | null} the query whose answer is shown or on its way; null: none */
  #asked = null;
  #isOpen = false;
  /** @type {number | undefined} */
  #timer;
  /** @type {number | undefined} */
  #typing;

  /**
   * @param {number} pollIntervalMs
   * @param {(view: UsageView, isTyping: boolean) => void} onChange called when the user chooses something
   */
  constructor(pollIntervalMs, onChange) {
    this.#pollIntervalMs = pollIntervalMs;
    this.#onChange = onChange;
    this.#table = new UsageTable(byId('usage', HTMLTableElement), (of, named) =>
      onChange(only(this.#view, of, named), false),
    );
    this.#offer();
    this.#listen();
  }

  /** Shows this view, and what the history has of it. @param {UsageView} view */
  show(view) {
    this.#view = view;
    this.#isOpen = true;
    this.#showControls();
    const query = JSON.stringify(view);
    if (query === this.#asked) return;
    this.#asked = query;
    void this.#load();
  }

  /** Loads nothing more. */
  close() {
    this.#isOpen = false;
    this.#asked = null;
    window.clearTimeout(this.#timer);
  }

  /** Shows a text in place of figures. @param {string} text */
  showNote(text) {
    this.close();
    this.#usage = null;
    this.#table.clear();
    this.#save.disabled = true;
    setText(this.#summary, '');
    setText(this.#kept, '');
    this.#showNotes([text]);
  }

  async #load() {
    window.clearTimeout(this.#timer);
    const view = this.#view;
    const asked = this.#asked;
    const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
    const result = await fetchUsage(session.token ?? '', toQuery(view, { nowMs: Date.now(), timeZone }));
    // The user has chosen something else meanwhile.
    if (!this.#isOpen || this.#asked !== asked) return;
    if (result.kind === 'ok') this.#showUsage(result.value, view);
    else if (result.kind === 'failed') this.#showProblem(result.message);
    if (!document.hidden || this.#usage === null)
      this.#timer = window.setTimeout(() => void this.#load(), EVERY_POLLS * this.#pollIntervalMs);
  }

  /**
   * @param {UsageJson} usage
   * @param {UsageView} view
   */
  #showUsage(usage, view) {
    this.#usage = usage;
    this.#save.disabled = usage.rows.length === 0;
    this.#table.show(usage, view.step);
    setText(this.#summary, toSpanText(usage));
    setText(this.#kept, toKeptText(usage));
    this.#showNotes(toNotes(usage, view));
    if (view.of !== null && view.of !== view.by) return;
    const names = usage.rows.flatMap((row) => {
      const name = /** @type {Readonly<Record<string, unknown>>} */ (row)[view.by];
      return typeof name === 'string' ? [name] : [];
    });
    this.#names.replaceChildren(...[...new Set(names)].map((name) => create('option', { value: name })));
  }

  /** @param {string} message */
  #showProblem(message) {
    this.#usage = null;
    this.#save.disabled = true;
    this.#table.clear();
    setText(this.#summary, '');
    this.#showNotes([message]);
  }

  /** @param {readonly string[]} notes */
  #showNotes(notes) {
    const shown = [...this.#notes.children].map(({ textContent }) => textContent);
    if (shown.join('\n') === notes.join('\n')) return;
    this.#notes.replaceChildren(...notes.map((note) => create('p', {}, note)));
  }

  #showControls() {
    const { by, and, span, from, to, step, of, named } = this.#view;
    this.#by.value = by;
    this.#and.value = and ?? '';
    this.#span.value = span;
    this.#step.value = step;
    this.#of.value = of ?? '';
    this.#days.hidden = span !== 'days';
    this.#named.hidden = of === null;
    if (document.activeElement !== this.#named) this.#named.value = named;
    if (document.activeElement !== this.#from) this.#from.value = from;
    if (document.activeElement !== this.#to) this.#to.value = to;
  }

  #offer() {
    const options = DIMENSIONS.map(([name, title]) => ({ name, title: title.toLowerCase() }));
    this.#by.append(...options.map(({ name, title }) => create('option', { value: name }, `By ${title}`)));
    this.#and.append(
      create('option', { value: '' }, 'and nothing else'),
      ...options.map(({ name, title }) => create('option', { value: name }, `and ${title}`)),
    );
    this.#of.append(
      create('option', { value: '' }, 'All requests'),
      ...options.map(({ name, title }) => create('option', { value: name }, `Only this ${title}`)),
    );
    this.#span.append(...SPANS.map(([name, title]) => create('option', { value: name }, title)));
    this.#step.append(...STEPS.map(([name, title]) => create('option', { value: name }, title)));
  }

  #listen() {
    const change = (/** @type {Partial<UsageView>} */ changes) =>
      this.#onChange({ ...this.#view, ...changes }, false);
    const dimension = (/** @type {string} */ value) =>
      DIMENSIONS.find(([name]) => name === value)?.[0] ?? null;
    this.#by.addEventListener('change', () => change({ by: dimension(this.#by.value) ?? 'tenant' }));
    this.#and.addEventListener('change', () => change({ and: dimension(this.#and.value) }));
    this.#of.addEventListener('change', () => {
      change({ of: dimension(this.#of.value), named: '' });
      if (this.#of.value !== '') this.#named.focus();
    });
    this.#step.addEventListener('change', () => change({ step: /** @type {Step} */ (this.#step.value) }));
    this.#span.addEventListener('change', () => {
      const span = /** @type {SpanName} */ (this.#span.value);
      const today = toDay(Date.now(), new Intl.DateTimeFormat().resolvedOptions().timeZone);
      change(span === 'days' && this.#view.from === '' ? { span, from: today, to: today } : { span });
    });
    this.#from.addEventListener('change', () => change({ from: this.#from.value }));
    this.#to.addEventListener('change', () => change({ to: this.#to.value }));
    this.#named.addEventListener('input', () => {
      window.clearTimeout(this.#typing);
      const named = this.#named.value;
      this.#typing = window.setTimeout(() => this.#onChange({ ...this.#view, named }, true), TYPING_MS);
    });
    byId('usage-form', HTMLFormElement).addEventListener('submit', (event) => event.preventDefault());
    this.#save.addEventListener('click', () => this.#saveCsv());
  }

  #saveCsv() {
    if (this.#usage === null) return;
    const { since, until, by } = this.#usage;
    const url = URL.createObjectURL(new Blob([toCsv(this.#usage)], { type: 'text/csv;charset=utf-8' }));
    const days = [since, until].map((time) => time.slice(0, 16).replaceAll(':', '')).join('-');
    const link = create('a', { href: url, download: `usage-${by.join('-')}-${days}.csv` });
    link.click();
    // The browser reads it after this turn.
    window.setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
}
