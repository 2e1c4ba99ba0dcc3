/** @import { Condition } from './condition.js' */
import { create, setAttribute, setChildren, setText } from '../elements/dom.js';
import { toChip } from './condition.js';

/** @typedef {{ readonly item: HTMLLIElement, show(condition: Condition): void }} Item */

/** A list of buttons, one for each condition. A button stays that of its condition, so that a press never hits another. */
export class Chips {
  #list;
  #onChoose;
  /** @type {Map<string, Item>} */
  #items = new Map();

  /**
   * @param {HTMLElement} list
   * @param {(condition: Condition) => void} onChoose
   */
  constructor(list, onChoose) {
    this.#list = list;
    this.#onChoose = onChoose;
  }

  /**
   * @param {readonly Condition[]} conditions
   * @param {HTMLLIElement | null} last stays behind them; null: nothing does
   */
  show(conditions, last) {
    /** @type {Map<string, Item>} */
    const items = new Map();
    for (const condition of conditions) {
      const { key } = toChip(condition);
      const item = this.#items.get(key) ?? this.#create(condition);
      item.show(condition);
      items.set(key, item);
    }
    this.#items = items;
    const elements = [...items.values()].map(({ item }) => item);
    setChildren(this.#list, last === null ? elements : [...elements, last]);
  }

  /**
   * @param {Condition} first
   * @returns {Item}
   */
  #create(first) {
    const word = create('span', { class: 'unseen' });
    const text = create('span', { class: 'chip-text' });
    const names = { 'data-condition': first.id, 'data-subject': first.subject };
    const attributes = { type: 'button', class: 'chip', 'aria-haspopup': 'dialog', ...names };
    const button = create('button', attributes, word, text);
    let shown = first;
    button.addEventListener('click', () => this.#onChoose(shown));
    return {
      item: create('li', {}, button),
      show(condition) {
        shown = condition;
        const chip = toChip(condition);
        setAttribute(button, 'data-severity', chip.severity);
        setText(word, `${chip.word}: `);
        setText(text, chip.text);
        setAttribute(text, 'title', chip.text);
      },
    };
  }
}
