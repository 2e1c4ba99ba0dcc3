/** @import { ReplicaView, Sort } from './order.js' */
import { byId, create, setAttribute, setText } from '../elements/dom.js';
import { SORTABLE } from './columns.js';

/** Columns whose first press sorts from the lowest: names and states. */
const ASCENDING_FIRST = new Set(['name', 'state', 'host']);
/** The option of the list that sorts by urgency. */
const BY_URGENCY = '';

/**
 * The search, the grouping and the sort of the table of replicas. Calls `onChange` with what the user wants;
 * `isTyping` if more may follow.
 */
export class ReplicaControls {
  #search = byId('replica-search', HTMLInputElement);
  #grouped = byId('replica-grouped', HTMLButtonElement);
  /** On a phone the table has no head to press. */
  #sortList = byId('replica-sort', HTMLSelectElement);
  #heads = [...byId('replicas', HTMLTableElement).querySelectorAll('th[data-column]')];
  /** @type {ReplicaView} */
  #view = { search: '', sort: null, isFlat: false };

  /** @param {(change: Partial<ReplicaView>, isTyping: boolean) => void} onChange */
  constructor(onChange) {
    this.#search.addEventListener('input', () => onChange({ search: this.#search.value }, true));
    this.#grouped.addEventListener('click', () => onChange({ isFlat: !this.#view.isFlat }, false));
    for (const head of this.#heads) {
      const column = head.getAttribute('data-column') ?? '';
      head
        .querySelector('button')
        ?.addEventListener('click', () => onChange({ sort: nextSort(this.#view.sort, column) }, false));
    }
    this.#sortList.append(
      create('option', { value: BY_URGENCY }, 'Most urgent first'),
      ...[...SORTABLE].map(([id, { title, aside = '' }]) =>
        create('option', { value: id }, `By ${`${title} ${aside}`.trim().toLowerCase()}`),
      ),
    );
    this.#sortList.addEventListener('change', () => {
      const column = this.#sortList.value;
      const sort = column === BY_URGENCY ? null : { column, isDescending: !ASCENDING_FIRST.has(column) };
      onChange({ sort }, false);
    });
  }

  /** @param {ReplicaView} view */
  show(view) {
    this.#view = view;
    if (this.#search.value !== view.search) this.#search.value = view.search;
    setAttribute(this.#grouped, 'aria-pressed', String(!view.isFlat));
    this.#sortList.value = view.sort?.column ?? BY_URGENCY;
    for (const head of this.#heads) {
      const isSorted = head.getAttribute('data-column') === view.sort?.column;
      const order = view.sort?.isDescending === true ? 'descending' : 'ascending';
      setAttribute(head, 'aria-sort', isSorted ? order : null);
      const arrow = head.querySelector('.arrow');
      if (arrow !== null) setText(arrow, isSorted ? (order === 'ascending' ? '▲' : '▼') : '');
    }
  }
}

/**
 * The sort after a press on a head: one direction, then the other, then none.
 * @param {Sort | null} sort
 * @param {string} column
 * @returns {Sort | null}
 */
function nextSort(sort, column) {
  const first = !ASCENDING_FIRST.has(column);
  if (sort?.column !== column) return { column, isDescending: first };
  return sort.isDescending === first ? { column, isDescending: !first } : null;
}
