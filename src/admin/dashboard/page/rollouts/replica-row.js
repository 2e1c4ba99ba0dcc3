/** @import { Replica } from './rollout.js' */
import { create, setAttribute, setChildren, setText } from '../elements/dom.js';
import { toFigures, toPhase, toStep } from './rollout.js';

/** One replica of a rollout, as a row of a table; on a narrow screen its cells are below each other. */
export class ReplicaRow {
  #phase = create('td');
  #steps = create('ol', { class: 'rollout-steps' });
  #verdict = create('td');
  #text = create('span');
  #figures = create('span', { class: 'faint' });
  name;
  element;

  /** @param {string} name */
  constructor(name) {
    this.name = name;
    this.element = create(
      'tr',
      {},
      create('th', { scope: 'row' }, name),
      this.#phase,
      create('td', {}, this.#steps),
      this.#verdict,
      create('td', { class: 'rollout-text' }, this.#text, ' ', this.#figures),
    );
  }

  /** @param {Replica} replica */
  show(replica) {
    setAttribute(this.element, 'data-phase', replica.phase);
    setText(this.#phase, toPhase(replica));
    const known = [...this.#steps.children];
    const steps = replica.steps.map((step, at) => {
      const item = known[at] ?? create('li');
      setText(item, toStep(step));
      const isBad = step.outcome !== 'ok' && step.outcome !== 'good';
      setAttribute(item, 'class', isBad ? 'bad' : null);
      setAttribute(item, 'title', isBad ? step.outcome : null);
      return item;
    });
    setChildren(this.#steps, steps);
    setText(this.#verdict, replica.verdict ?? '–');
    setAttribute(this.#verdict, 'class', replica.verdict === null ? null : `verdict-${replica.verdict}`);
    setText(this.#text, replica.text);
    // While it is compared, and when it is good, its text has them already.
    const figures = replica.text.includes('×') ? '' : toFigures(replica.figures);
    setText(this.#figures, figures === '' ? '' : `(${figures})`);
  }
}
