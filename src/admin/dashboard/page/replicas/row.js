/** @import { Replica } from './state.js' */
import { create, setAttribute, setText } from '../elements/dom.js';
import { createName } from '../elements/name.js';
import { createSparkline } from '../elements/sparkline.js';
import { NUMBER_COLUMNS, toHost } from './columns.js';
import { toState } from './state.js';

/** @typedef {{ readonly element: HTMLTableRowElement, show(replica: Replica, time: string): void }} Row */

/**
 * Creates the row of a replica. It keeps its elements from update to update, so that the focus stays.
 * @param {(action: 'drain' | 'undrain', name: string) => void} onAction
 * @returns {Row}
 */
export function createRow(onAction) {
  const name = createName('replica-name');
  const state = createStateCell();
  const cells = createNumberCells();
  const host = create('td', { class: 'col-host', 'data-label': 'Host' });
  const button = create('button', { type: 'button', class: 'small' });
  /** @type {Replica | undefined} */
  let shown;
  button.addEventListener('click', () => {
    if (shown !== undefined) onAction(shown.drained ? 'undrain' : 'drain', shown.name);
  });
  const element = create(
    'tr',
    { class: 'replica' },
    create('th', { scope: 'row', class: 'col-name' }, name.element),
    state.element,
    ...cells.elements,
    host,
    create('td', { class: 'col-action' }, button),
  );
  return {
    element,
    show(replica, time) {
      shown = replica;
      name.show(replica.name, `${replica.name}\n${replica.url}\n${toHost(replica)}`);
      state.show(replica, time);
      cells.show(replica);
      setText(host, toHost(replica));
      setAttribute(host, 'title', toHost(replica));
      const action = replica.drained ? 'Undrain' : 'Drain';
      setText(button, action);
      setAttribute(button, 'aria-label', `${action} ${replica.name}`);
      button.hidden = replica.removing;
      setAttribute(element, 'data-name', replica.name);
    },
  };
}

function createStateCell() {
  const word = create('span', { class: 'state' });
  const detail = create('span', { class: 'detail' });
  const progress = create('progress', { 'aria-label': 'Requests that have ended since the drain' });
  const element = create('td', { class: 'col-state' }, word, progress, detail);
  /** The most requests that were left during this drain. */
  let most = 0;
  return {
    element,
    /** @param {Replica} replica @param {string} time */
    show(replica, time) {
      const state = toState(replica, time);
      setAttribute(word, 'data-state', state.kind);
      setText(word, state.word);
      setText(detail, state.detail);
      setAttribute(detail, 'title', state.detail === '' ? null : state.detail);
      setAttribute(detail, 'data-safe', replica.drained && replica.safe_to_stop === true ? 'true' : null);
      setAttribute(detail, 'data-level', replica.silent_streams.count > 0 ? 'warn' : null);
      const isDraining = state.kind === 'draining';
      const left = replica.inflight + replica.background;
      most = isDraining ? Math.max(most, left) : 0;
      progress.hidden = !isDraining;
      setAttribute(progress, 'max', String(Math.max(most, 1)));
      setAttribute(progress, 'value', String(most - left));
    },
  };
}

/** The cells of the columns of numbers, with the drawing of the trend among them. */
function createNumberCells() {
  const spark = createSparkline();
  const cells = NUMBER_COLUMNS.map((column) => {
    const text = create('span', { class: 'value' });
    const extra = create('span', { class: 'extra' });
    const label = column.aside === undefined ? column.title : `${column.title} ${column.aside}`;
    const children = column.id === 'trend' ? [spark.element] : [text, extra];
    const element = create('td', { class: `number col-${column.id}`, 'data-label': label }, ...children);
    return { column, element, text, extra };
  });
  return {
    elements: cells.map(({ element }) => element),
    /** @param {Replica} replica */
    show(replica) {
      for (const { column, element, text, extra } of cells) {
        setText(text, column.text(replica));
        setText(extra, column.extra?.(replica) ?? '');
        setAttribute(text, 'data-level', column.level?.(replica) || null);
        setAttribute(element, 'title', column.explain?.(replica) ?? null);
      }
      spark.show(replica.trend);
    },
  };
}
