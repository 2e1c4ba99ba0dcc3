/** @import { Problem } from './problems.js' */
import { byId, create, setAttribute, setText } from '../elements/dom.js';

/** More would hide the rest of the page. */
const MAX_SHOWN = 6;

/** The line of problems at the top. It always has a place, so that nothing moves when the last problem is gone. */
export class ProblemList {
  #list = byId('problems', HTMLElement);
  #onChoose;
  /** @type {{ item: HTMLLIElement, button: HTMLButtonElement, problem: Problem | null }[]} */
  #places = [];
  #calm = create('li', { class: 'calm' }, 'No problems in the last minute');

  /** @param {(problem: Problem) => void} onChoose */
  constructor(onChoose) {
    this.#onChoose = onChoose;
    this.#list.append(this.#calm);
  }

  /** @param {readonly Problem[]} problems */
  show(problems) {
    while (this.#places.length < Math.min(problems.length, MAX_SHOWN)) this.#addPlace();
    for (const [at, place] of this.#places.entries()) {
      const problem = problems[at] ?? null;
      place.problem = problem;
      place.item.hidden = problem === null;
      if (problem === null) continue;
      const isLast = at === MAX_SHOWN - 1 && problems.length > MAX_SHOWN;
      setAttribute(place.button, 'data-level', problem.level);
      setText(
        place.button,
        isLast ? `${problem.text}, and ${problems.length - MAX_SHOWN} more` : problem.text,
      );
    }
    this.#calm.hidden = problems.length > 0;
  }

  #addPlace() {
    const button = create('button', { type: 'button', class: 'problem-button' });
    const place = { item: create('li', {}, button), button, problem: /** @type {Problem | null} */ (null) };
    button.addEventListener('click', () => {
      if (place.problem !== null) this.#onChoose(place.problem);
    });
    this.#places.push(place);
    this.#list.append(place.item);
  }
}
