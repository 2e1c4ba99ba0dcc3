/** @import { Range, RangeName } from './range.js' */
import { byId, create, setAttribute } from '../elements/dom.js';
import { RANGES } from './range.js';

/** The buttons for the range of charts and tables. */
export class RangeChoice {
  #buttons;

  /** @param {(name: RangeName) => void} onChoose */
  constructor(onChoose) {
    const group = byId('ranges', HTMLElement);
    this.#buttons = RANGES.map(({ name, title }) => {
      const button = create('button', { type: 'button', 'aria-pressed': 'false' }, title);
      button.addEventListener('click', () => onChoose(name));
      group.append(button);
      return { name, button };
    });
  }

  /** @param {Range} range */
  show(range) {
    for (const { name, button } of this.#buttons)
      setAttribute(button, 'aria-pressed', String(name === range.name));
  }
}
