/** @import { Replica } from './state.js' */
import { byId, create, setText } from '../elements/dom.js';
import { toConsequences } from './consequences.js';

/** Why an action was not carried out. `isLast`: no other replica answers, and the user has not accepted that. */
/** @typedef {{ readonly message: string, readonly isLast: boolean }} Problem */

/**
 * Carries out the confirmed action. Resolves to null when it is done.
 * @callback Go
 * @param {{ readonly reason: string, readonly ramp: string, readonly isAccepted: boolean }} answers the reason and the
 *   ramp, a duration, may be empty
 * @returns {Promise<Problem | null>}
 */

/**
 * The dialog before a drain or an undrain. It shows the consequences and stays open until the call succeeds. If
 * requests will fail, its button works only after the user has ticked that this is accepted: as soon as the page knows
 * it, or when the gateway, which asks the other replicas first, says so.
 */
export class ConfirmDialog {
  #dialog = byId('confirm', HTMLDialogElement);
  #title = byId('confirm-title', HTMLElement);
  #list = byId('confirm-consequences', HTMLElement);
  #reason = byId('confirm-reason', HTMLInputElement);
  #rampRow = byId('confirm-ramp-row', HTMLElement);
  #ramp = byId('confirm-ramp', HTMLSelectElement);
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
    this.#isRunning = false;
    this.#ask(verb, isSevere);
    this.#reason.value = '';
    this.#rampRow.hidden = action !== 'undrain';
    this.#ramp.value = '';
    this.#go = go;
    this.#dialog.showModal();
    this.#reason.focus();
  }

  /**
   * @param {string} verb
   * @param {boolean} isSevere whether requests will fail
   */
  #ask(verb, isSevere) {
    setText(this.#button, isSevere ? `${verb} anyway` : verb);
    this.#button.className = isSevere ? 'danger' : 'primary';
    this.#acceptRow.hidden = !isSevere;
    this.#accept.checked = false;
    this.#enable();
  }

  #enable() {
    this.#button.disabled = this.#isRunning || !(this.#acceptRow.hidden || this.#accept.checked);
  }

  async #submit() {
    // Enter in the field of the reason submits too, so the button's state is not enough.
    if (this.#button.disabled) return;
    this.#isRunning = true;
    this.#enable();
    const problem = await this.#go({
      reason: this.#reason.value.trim(),
      ramp: this.#ramp.value,
      isAccepted: this.#accept.checked,
    });
    this.#isRunning = false;
    this.#enable();
    if (problem === null) return this.#dialog.close();
    setText(this.#problem, problem.message);
    if (!problem.isLast) return;
    this.#ask('Drain', true);
    this.#accept.focus();
  }
}
