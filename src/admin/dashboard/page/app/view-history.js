/** @import { View } from './view.js' */
import { parseView, START_VIEW, toFragment } from './view.js';

/** The current view. It is in the fragment of the URL, so a reload, a bookmark and the back button restore it. */
export class ViewHistory {
  /** @type {View} */
  #view = START_VIEW;
  /** @type {(view: View) => void} */
  #onChange;

  /** @param {(view: View) => void} onChange called after each change */
  constructor(onChange) {
    this.#onChange = onChange;
    this.#view = parseView(location.hash);
    const read = () => this.#set(parseView(location.hash));
    window.addEventListener('popstate', read);
    window.addEventListener('hashchange', read);
  }

  get view() {
    return this.#view;
  }

  /**
   * Changes parts of the view. A change that is not the last of a series replaces the entry of the history.
   * @param {Partial<View>} change
   * @param {boolean} [isTyping]
   */
  change(change, isTyping = false) {
    const view = { ...this.#view, ...change };
    const fragment = toFragment(view);
    if (fragment !== toFragment(this.#view)) {
      const url = `${location.pathname}${location.search}${fragment === '' ? '' : `#${fragment}`}`;
      if (isTyping) history.replaceState(null, '', url);
      else history.pushState(null, '', url);
    }
    this.#set(view);
  }

  /** @param {View} view */
  #set(view) {
    this.#view = view;
    this.#onChange(view);
  }
}
