/** @import { View } from './view.js' */
import { parseView, START_VIEW, toFragment } from './view.js';

/** Safari allows 100 changes of the URL in 30 seconds, so they wait until the user stops typing. */
const TYPING_MS = 300;

/** The current view. It is in the fragment of the URL, so a reload, a bookmark and the back button restore it. */
export class ViewHistory {
  /** @type {View} */
  #view = START_VIEW;
  /** The fragment that the URL has, as the page writes it. */
  #written = '';
  /** @type {number | undefined} */
  #timer;
  /** @type {(view: View) => void} */
  #onChange;

  /** @param {(view: View) => void} onChange called after each change */
  constructor(onChange) {
    this.#onChange = onChange;
    this.#read();
    for (const event of ['popstate', 'hashchange']) {
      window.addEventListener(event, () => {
        this.#read();
        onChange(this.#view);
      });
    }
  }

  get view() {
    return this.#view;
  }

  /**
   * Changes parts of the view. While the user is typing, the entry of the history is replaced.
   * @param {Partial<View>} change
   * @param {boolean} [isTyping]
   */
  change(change, isTyping = false) {
    if (!isTyping) this.#write('replaceState');
    this.#view = { ...this.#view, ...change };
    window.clearTimeout(this.#timer);
    if (isTyping) this.#timer = window.setTimeout(() => this.#write('replaceState'), TYPING_MS);
    else this.#write('pushState');
    this.#onChange(this.#view);
  }

  #read() {
    window.clearTimeout(this.#timer);
    this.#view = parseView(location.hash);
    this.#written = toFragment(this.#view);
  }

  /**
   * Writes the view into the URL, unless it is there already.
   * @param {'pushState' | 'replaceState'} how
   */
  #write(how) {
    const fragment = toFragment(this.#view);
    if (fragment === this.#written) return;
    this.#written = fragment;
    history[how](null, '', `${location.pathname}${location.search}${fragment === '' ? '' : `#${fragment}`}`);
  }
}
