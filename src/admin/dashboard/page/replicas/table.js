/** @import { Overview } from '../../overview.ts' */
/** @import { Group, ReplicaView } from './order.js' */
/** @import { Row } from './row.js' */
import { byId, create, setAttribute, setChildren, setText } from '../elements/dom.js';
import { createGroupRow } from './group-row.js';
import { inOrderOf, toGroups } from './order.js';
import { createRow } from './row.js';
import { toSummary } from './state.js';

/** @typedef {{ readonly element: HTMLTableSectionElement, readonly head: ReturnType<typeof createGroupRow> }} Section */

const canHover = window.matchMedia('(hover: hover)');

/** The table of replicas. While the pointer or the focus is in it, its order stays. */
export class ReplicaTable {
  #table = byId('replicas', HTMLTableElement);
  #summary = byId('replicas-summary', HTMLElement);
  #empty = byId('replicas-empty', HTMLElement);
  #onAction;
  /** @type {Map<string, Row>} */
  #rows = new Map();
  /** @type {Map<string, Section>} */
  #sections = new Map();
  /** @type {Set<string>} the keys of groups whose replicas are hidden */
  #closed = new Set();
  /** @type {readonly Group[]} */
  #groups = [];
  /** @type {ReplicaView | null} the view that the order belongs to */
  #view = null;
  /** @type {Pick<Overview, 'replicas' | 'time'>} */
  #shown = { replicas: [], time: '' };

  /** @param {(action: 'drain' | 'undrain', name: string) => void} onAction called when a replica's button is pressed */
  constructor(onAction) {
    this.#onAction = onAction;
  }

  /**
   * Shows the replicas.
   * @param {Pick<Overview, 'replicas' | 'time'>} overview
   * @param {ReplicaView} view
   */
  show(overview, view) {
    const groups = toGroups(overview.replicas, view);
    const keepsOrder = this.#view === view && this.#isInUse;
    this.#groups = keepsOrder ? inOrderOf(groups, this.#groups) : groups;
    this.#view = view;
    this.#shown = overview;
    this.#render();
    setText(this.#summary, toSummary(overview.replicas));
    this.#empty.hidden = groups.length > 0 || view.search === '';
  }

  /**
   * Goes to the row of a replica and marks it.
   * @param {string} name
   * @returns {boolean} whether the table has it
   */
  reveal(name) {
    const group = this.#groups.find(({ replicas }) => replicas.some((replica) => replica.name === name));
    if (group === undefined) return false;
    if (this.#closed.delete(group.key)) this.#render();
    const row = this.#rows.get(name)?.element;
    row?.setAttribute('tabindex', '-1');
    row?.scrollIntoView({ block: 'center' });
    row?.focus({ preventScroll: true });
    return row !== undefined;
  }

  /** Whether a click or a key may be about to hit a row. After a touch nothing is: `:hover` and the focus only stay. */
  get #isInUse() {
    if (!canHover.matches) return this.#table.querySelector(':focus-visible') !== null;
    return [...this.#table.tBodies].some(
      (body) => body.matches(':hover') || body.contains(document.activeElement),
    );
  }

  #render() {
    /** @type {Map<string, Row>} */
    const rows = new Map();
    const bodies = this.#groups.map((group) => {
      const section = this.#sectionOf(group.key);
      const isOpen = group.title === '' || !this.#closed.has(group.key);
      section.head.show(group, isOpen);
      const members = (isOpen ? group.replicas : []).map((replica) => {
        const key = toFreeKey(replica.name, rows);
        const row = this.#rows.get(key) ?? createRow(this.#onAction);
        rows.set(key, row);
        row.show(replica, this.#shown.time);
        return row.element;
      });
      setChildren(section.element, group.title === '' ? members : [section.head.element, ...members]);
      return section.element;
    });
    this.#rows = rows;
    const head = this.#table.tHead;
    const columns = this.#table.querySelector('colgroup');
    setChildren(this.#table, [
      ...(columns === null ? [] : [columns]),
      ...(head === null ? [] : [head]),
      ...bodies,
    ]);
    const keys = new Set(this.#groups.map(({ key }) => key));
    for (const key of this.#sections.keys()) if (!keys.has(key)) this.#sections.delete(key);
  }

  /** @param {string} key */
  #sectionOf(key) {
    let section = this.#sections.get(key);
    if (section === undefined) {
      section = { element: create('tbody'), head: createGroupRow((toggled) => this.#toggle(toggled)) };
      this.#sections.set(key, section);
    }
    setAttribute(section.element, 'class', key === '' ? 'flat' : null);
    return section;
  }

  /** @param {string} key */
  #toggle(key) {
    if (!this.#closed.delete(key)) this.#closed.add(key);
    this.#render();
  }
}

/**
 * The key of a row: the replica's name, made longer if a replica that is being removed has the same name.
 * @param {string} name
 * @param {ReadonlyMap<string, unknown>} taken
 */
function toFreeKey(name, taken) {
  let key = name;
  while (taken.has(key)) key += ' ';
  return key;
}
