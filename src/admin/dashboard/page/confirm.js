/** @import { Replica } from './consequences.js' */
import { toConsequences } from './consequences.js';
import { byId, create, setText } from './dom.js';

/**
 * The dialog before a drain or an undrain. It says what follows, and stays open until the gateway has agreed.
 */
export class ConfirmDialog {
  #dialog = byId('confirm', HTMLDialogElement);
  #title = byId('confirm-title', HTMLElement);
  #list = byId('confirm-consequences', HTMLElement);
  #problem = byId('confirm-problem', HTMLElement);
  #button = byId('confirm-go', HTMLButtonElement);
  /** @type {() => Promise<string | null>} */
  #go = async () => null;

  constructor() {
    this.#button.addEventListener('click', () => void this.#submit());
  }

  /**
   * Asks. `go` carries it out, and resolves to what went wrong, if anything did.
   * @param {'drain' | 'undrain'} action
   * @param {Replica} replica
   * @param {readonly Replica[]} replicas
   * @param {() => Promise<string | null>} go
   */
  open(action, replica, replicas, go) {
    const consequences = toConsequences(action, replica, replicas);
    const isGrave = consequences.some((consequence) => consequence.isGrave);
    const verb = action === 'drain' ? 'Drain' : 'Undrain';
    setText(this.#title, `${verb} ${replica.name}?`);
    this.#list.replaceChildren(
      ...consequences.map(({ isGrave, text }) => create('li', isGrave ? { class: 'grave' } : {}, text)),
    );
    setText(this.#problem, '');
    setText(this.#button, isGrave ? `${verb} all the same` : verb);
    this.#button.className = isGrave ? 'danger' : 'primary';
    this.#button.disabled = false;
    this.#go = go;
    this.#dialog.showModal();
  }

  async #submit() {
    this.#button.disabled = true;
    const problem = await this.#go();
    this.#button.disabled = false;
    if (problem === null) this.#dialog.close();
    else setText(this.#problem, problem);
  }
}
