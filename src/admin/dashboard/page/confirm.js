/** @import { Replica } from './consequences.js' */
import { toConsequences } from './consequences.js';
import { byId, create, setText } from './dom.js';

/**
 * Carries out the confirmed action. Resolves to an error message, or null.
 * @callback Go
 * @param {string} reason may be empty
 * @returns {Promise<string | null>}
 */

/** The dialog before a drain or an undrain. It shows the consequences and stays open until the call succeeds. */
export class ConfirmDialog {
  #dialog = byId('confirm', HTMLDialogElement);
  #title = byId('confirm-title', HTMLElement);
  #list = byId('confirm-consequences', HTMLElement);
  #reason = byId('confirm-reason', HTMLInputElement);
  #problem = byId('confirm-problem', HTMLElement);
  #button = byId('confirm-go', HTMLButtonElement);
  /** @type {Go} */
  #go = async () => null;

  constructor() {
    byId('confirm-cancel', HTMLButtonElement).addEventListener('click', () => this.#dialog.close());
    byId('confirm-form', HTMLFormElement).addEventListener('submit', (event) => {
      event.preventDefault();
      void this.#submit();
    });
  }

  /**
   * Opens the dialog.
   * @param {'drain' | 'undrain'} action
   * @param {Replica} replica
   * @param {readonly Replica[]} replicas all replicas
   * @param {Go} go
   */
  open(action, replica, replicas, go) {
    const consequences = toConsequences(action, replica, replicas);
    const isSevere = consequences.some((consequence) => consequence.isSevere);
    const verb = action === 'drain' ? 'Drain' : 'Undrain';
    setText(this.#title, `${verb} ${replica.name}?`);
    this.#list.replaceChildren(
      ...consequences.map(({ isSevere, text }) => create('li', isSevere ? { class: 'severe' } : {}, text)),
    );
    setText(this.#problem, '');
    setText(this.#button, isSevere ? `${verb} anyway` : verb);
    this.#button.className = isSevere ? 'danger' : 'primary';
    this.#button.disabled = false;
    this.#reason.value = '';
    this.#go = go;
    this.#dialog.showModal();
    this.#reason.focus();
  }

  async #submit() {
    this.#button.disabled = true;
    const problem = await this.#go(this.#reason.value.trim());
    this.#button.disabled = false;
    if (problem === null) this.#dialog.close();
    else setText(this.#problem, problem);
  }
}
