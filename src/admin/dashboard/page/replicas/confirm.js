/** @import { Replica } from './state.js' */
import { byId, create, setText } from '../elements/dom.js';
import { toConsequences } from './consequences.js';

/**
 * Carries out the confirmed action. Resolves to an error message, or null.
 * @callback Go
 * @param {string} reason may be empty
 * @returns {Promise<string | null>}
 */

/**
 * The dialog before a drain or an undrain. It shows the consequences and stays open until the call succeeds. If
 * requests will fail, its button works only after the reader has ticked that this is accepted.
 */
export class ConfirmDialog {
  #dialog = byId('confirm', HTMLDialogElement);
  #title = byId('confirm-title', HTMLElement);
  #list = byId('confirm-consequences', HTMLElement);
  #reason = byId('confirm-reason', HTMLInputElement);
  #problem = byId('confirm-problem', HTMLElement);
  #button = byId('confirm-go', HTMLButtonElement);
  #acceptRow = byId('confirm-accept-row', HTMLElement);
  #accept = byId('confirm-accept', HTMLInputElement);
  #isRunning = false;
  /** @type {Go} */
  #go = async () => null;

  constructor() {
    byId('confirm-cancel', HTMLButtonElement).addEventListener('click', () => this.#dialog.close());
    this.#accept.addEventListener('change', () => this.#enable());
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
    this.#acceptRow.hidden = !isSevere;
    this.#accept.checked = false;
    this.#isRunning = false;
    this.#enable();
    this.#reason.value = '';
    this.#go = go;
    this.#dialog.showModal();
    this.#reason.focus();
  }

  #enable() {
    this.#button.disabled = this.#isRunning || !(this.#acceptRow.hidden || this.#accept.checked);
  }

  async #submit() {
    // Enter in the field of the reason submits too, so the button's state is not enough.
    if (this.#button.disabled) return;
    this.#isRunning = true;
    this.#enable();
    const problem = await this.#go(this.#reason.value.trim());
    this.#isRunning = false;
    this.#enable();
    if (problem === null) this.#dialog.close();
    else setText(this.#problem, problem);
  }
}
