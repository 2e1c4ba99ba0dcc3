/** @import { Action, Rollout } from './rollout.js' */
import { byId, create, setText } from '../elements/dom.js';
import { ACTION_NAMES, toConsequences } from './rollout.js';

/** The dialog before a rollout is paused, goes on or is aborted. It stays open until the call succeeds. */
export class RolloutDialog {
  #dialog = byId('rollout-confirm', HTMLDialogElement);
  #title = byId('rollout-confirm-title', HTMLElement);
  #list = byId('rollout-confirm-consequences', HTMLElement);
  #problem = byId('rollout-confirm-problem', HTMLElement);
  #button = byId('rollout-confirm-go', HTMLButtonElement);
  /** @type {() => Promise<string | null>} */
  #go = async () => null;

  constructor() {
    byId('rollout-confirm-cancel', HTMLButtonElement).addEventListener('click', () => this.#dialog.close());
    byId('rollout-confirm-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#submit();
    });
  }

  /**
   * @param {Action} action
   * @param {Rollout} rollout
   * @param {() => Promise<string | null>} go carries it out; resolves to null, or to what is wrong
   */
  open(action, rollout, go) {
    setText(this.#title, `${ACTION_NAMES[action]}: rollout ${rollout.id}?`);
    this.#list.replaceChildren(
      ...toConsequences(action, rollout).map((text) =>
        create('li', action === 'abort' ? { class: 'severe' } : {}, text),
      ),
    );
    setText(this.#problem, '');
    setText(this.#button, ACTION_NAMES[action]);
    this.#button.className = action === 'abort' ? 'danger' : 'primary';
    this.#button.disabled = false;
    this.#go = go;
    this.#dialog.showModal();
  }

  async #submit() {
    if (this.#button.disabled) return;
    this.#button.disabled = true;
    const problem = await this.#go();
    this.#button.disabled = false;
    if (problem === null) this.#dialog.close();
    else setText(this.#problem, problem);
  }
}
