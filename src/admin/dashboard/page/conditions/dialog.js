/** @import { Overview } from '../../overview.ts' */
/** @import { Condition, Target } from './condition.js' */
import { byId, create, setAttribute, setText } from '../elements/dom.js';
import { formatMoment } from '../elements/format.js';
import { toChip, toFigures, toKey, toPieces, toSince, toTargets } from './condition.js';

/** The dialog about one condition. It stays open while its figures change, and when the condition is over. */
export class ConditionDialog {
  #dialog = byId('condition', HTMLDialogElement);
  #severity = byId('condition-severity', HTMLElement);
  #since = byId('condition-since', HTMLElement);
  #title = byId('condition-title', HTMLElement);
  #over = byId('condition-over', HTMLElement);
  #means = byId('condition-means', HTMLElement);
  #remedy = byId('condition-remedy', HTMLElement);
  #figures = byId('condition-figures', HTMLElement);
  #targets = byId('condition-targets', HTMLElement);
  #onGo;
  /** @type {Condition | null} */
  #shown = null;

  /** @param {(target: Target) => void} onGo called after the dialog is closed */
  constructor(onGo) {
    this.#onGo = onGo;
    this.#dialog.addEventListener('close', () => {
      this.#shown = null;
      // The button that opened it may be gone with the condition. The focus then stays in the closed dialog for a moment.
      const focused = document.activeElement;
      if (focused === document.body || this.#dialog.contains(focused))
        byId('conditions-section', HTMLElement).focus();
    });
  }

  /**
   * @param {Condition} condition
   * @param {string} now RFC 3339
   */
  open(condition, now) {
    setText(this.#over, '');
    this.#means.replaceChildren(...toNodes(condition.means));
    this.#remedy.replaceChildren(...toNodes(condition.remedy));
    this.#targets.replaceChildren(...toTargets(condition).map((target) => this.#toButton(target)));
    this.#show(condition, now);
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  /** Shows the figures of now. @param {Pick<Overview, 'conditions' | 'time'>} overview */
  update({ conditions, time }) {
    const before = this.#shown;
    if (before === null) return;
    const now = conditions.find((condition) => toKey(condition) === toKey(before));
    if (now !== undefined) {
      setText(this.#over, '');
      this.#show(now, time);
    } else if (this.#over.textContent === '')
      setText(this.#over, `It is over since ${formatMoment(time, time)}.`);
  }

  /**
   * @param {Condition} condition
   * @param {string} now
   */
  #show(condition, now) {
    this.#shown = condition;
    const { severity, word, text } = toChip(condition);
    setAttribute(this.#severity, 'data-severity', severity);
    setText(this.#severity, word);
    setText(this.#since, toSince(condition, now));
    setText(this.#title, text);
    this.#showFigures(toFigures(condition));
  }

  /** @param {ReturnType<typeof toFigures>} figures */
  #showFigures(figures) {
    const names = [...this.#figures.querySelectorAll('dt')].map(({ textContent }) => textContent);
    if (names.length === figures.length && figures.every(([name], at) => name === names[at])) {
      for (const [at, value] of [...this.#figures.querySelectorAll('dd')].entries())
        setText(value, figures[at]?.[1] ?? '');
      return;
    }
    this.#figures.replaceChildren(
      ...figures.map(([name, value]) => create('div', {}, create('dt', {}, name), create('dd', {}, value))),
    );
  }

  /** @param {Target} target */
  #toButton(target) {
    const button = create('button', { type: 'button' }, target.label);
    button.addEventListener('click', () => {
      // It may be above the list of all conditions.
      for (const dialog of document.querySelectorAll('dialog')) dialog.close();
      this.#onGo(target);
    });
    return button;
  }
}

/** @param {string} markdown */
function toNodes(markdown) {
  return toPieces(markdown).map(({ text, isCode }) => (isCode ? create('code', {}, text) : text));
}
