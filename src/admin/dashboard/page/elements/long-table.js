import { create, setAttribute, setChildren, setText } from './dom.js';

/** Rows that are shown without a press on the button. */
const FEW = 8;

/**
 * Shows items in the rows of a table: a few of them, and all after a press on a button. Rows belong to places and not
 * to items, so the focus stays when the order changes.
 * @template Item
 * @param {HTMLTableElement} table
 * @param {string} emptyText shown if there are no items
 * @param {() => { readonly element: HTMLTableRowElement, show(item: Item): void }} createRow
 * @returns {(items: readonly Item[]) => void}
 */
export function createLongTable(table, emptyText, createRow) {
  const body = table.createTBody();
  const button = create('button', { type: 'button', class: 'link' });
  const more = create('p', { class: 'more' }, button);
  const empty = create('p', { class: 'empty' }, emptyText);
  table.after(empty, more);
  /** @type {ReturnType<typeof createRow>[]} */
  const rows = [];
  /** @type {readonly Item[]} */
  let items = [];
  let isLong = false;
  const show = () => {
    const shown = isLong ? items : items.slice(0, FEW);
    while (rows.length < shown.length) rows.push(createRow());
    for (const [at, item] of shown.entries()) rows[at]?.show(item);
    setChildren(
      body,
      rows.slice(0, shown.length).map(({ element }) => element),
    );
    table.hidden = items.length === 0;
    empty.hidden = items.length > 0;
    more.hidden = items.length <= FEW;
    setAttribute(button, 'aria-expanded', String(isLong));
    setText(button, isLong ? 'Show fewer' : `Show all ${items.length}`);
  };
  button.addEventListener('click', () => {
    isLong = !isLong;
    show();
  });
  return (all) => {
    items = all;
    show();
  };
}
