/** @import { Overview } from '../../overview.ts' */
/** @import { Condition } from './condition.js' */
import { byId, create, setAttribute, setText } from '../elements/dom.js';
import { formatMoment } from '../elements/format.js';
import { Chips } from './chips.js';
import { toLine, toSummary } from './condition.js';

/** More would hide the rest of the page. */
const MAX_SHOWN = 6;
const MAX_SHOWN_NARROW = 4;

const narrow = window.matchMedia('(max-width: 640px)');

/**
 * The line at the top: what is wrong, the most severe first, or that nothing is. It always has a place, so that nothing
 * moves when the last condition is over. One more button opens a list of all conditions.
 */
export class ConditionLine {
  #summary = byId('conditions-summary', HTMLElement);
  #all = byId('conditions-all', HTMLDialogElement);
  #more = create('button', { type: 'button', class: 'chip-more', 'aria-haspopup': 'dialog' });
  #moreItem = create('li', {}, this.#more);
  #line;
  #list;
  /** @type {Pick<Overview, 'conditions' | 'time'>} */
  #shown = { conditions: [], time: '' };
  /** @type {string | null} when the last condition was over; null if the page has not seen that */
  #calmSince = null;

  /** @param {(condition: Condition) => void} onChoose */
  constructor(onChoose) {
    this.#line = new Chips(byId('conditions', HTMLElement), onChoose);
    this.#list = new Chips(byId('conditions-list', HTMLElement), onChoose);
    this.#more.addEventListener('click', () => this.#all.showModal());
    narrow.addEventListener('change', () => this.#render());
  }

  /** @param {Pick<Overview, 'conditions' | 'time'>} overview */
  show(overview) {
    const isCalm = overview.conditions.length === 0;
    if (!isCalm) this.#calmSince = null;
    else if (this.#shown.conditions.length > 0) this.#calmSince = overview.time;
    this.#shown = overview;
    this.#render();
  }

  /** Forgets what it has shown. */
  clear() {
    this.#shown = { conditions: [], time: '' };
    this.#calmSince = null;
    this.#render();
  }

  #render() {
    const { conditions, time } = this.#shown;
    const { shown, others } = toLine(conditions, narrow.matches ? MAX_SHOWN_NARROW : MAX_SHOWN);
    setText(this.#more, `and ${others} more`);
    this.#line.show(shown, others > 0 ? this.#moreItem : null);
    this.#list.show(conditions, null);
    const since = this.#calmSince === null ? '' : ` since ${formatMoment(this.#calmSince, time)}`;
    setText(this.#summary, conditions.length === 0 ? `Nothing is wrong${since}` : toSummary(conditions));
    // The buttons tell the same, except to those who hear it.
    setAttribute(this.#summary, 'class', conditions.length === 0 ? 'calm' : 'unseen');
  }
}
