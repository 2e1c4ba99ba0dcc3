/** @import { Happening } from './timeline.js' */
import { byId, create, setText } from '../elements/dom.js';
import { counted } from '../elements/format.js';
import { toTimes } from './timeline.js';

/** The dialog that lists what happened: the newest first, as an operator looks for it. */
export class TimelineDialog {
  #dialog = byId('events', HTMLDialogElement);
  #title = byId('events-title', HTMLElement);
  #list = byId('events-list', HTMLElement);

  /**
   * @param {readonly Happening[]} happenings the oldest first
   * @param {number} nowMs
   */
  open(happenings, nowMs) {
    const [only, more] = happenings;
    const isOne = only !== undefined && more === undefined;
    setText(this.#title, isOne ? only.title : counted(happenings.length, 'event'));
    this.#list.replaceChildren(
      ...happenings.toReversed().map((happening) => toItem(happening, nowMs, isOne)),
    );
    if (!this.#dialog.open) this.#dialog.showModal();
  }
}

/**
 * @param {Happening} happening
 * @param {number} nowMs
 * @param {boolean} isTitled whether its title stands above
 * @returns {HTMLLIElement}
 */
function toItem(happening, nowMs, isTitled) {
  const { title, details, steps, look } = happening;
  return create(
    'li',
    { class: 'event', 'data-look': look },
    ...(isTitled ? [] : [create('p', { class: 'event-title', dir: 'auto' }, title)]),
    create('p', { class: 'event-times' }, toTimes(happening, nowMs)),
    ...(details === '' ? [] : [create('p', { class: 'event-details', dir: 'auto' }, details)]),
    ...(steps.length === 0
      ? []
      : [create('ol', { class: 'steps' }, ...steps.map((step) => toItem(step, nowMs, false)))]),
  );
}
