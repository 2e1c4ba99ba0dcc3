import { setText } from '../elements/dom.js';

const SHOWN_MS = 6_000;

/** A short message that disappears by itself. */
export class Toast {
  #element;
  /** @type {number | undefined} */
  #timer;

  /** @param {HTMLElement} element with the role `status` */
  constructor(element) {
    this.#element = element;
  }

  /** @param {string} text */
  show(text) {
    setText(this.#element, text);
    window.clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => setText(this.#element, ''), SHOWN_MS);
  }
}
