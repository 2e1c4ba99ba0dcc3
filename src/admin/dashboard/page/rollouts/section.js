/** @import { Result } from '../app/api.js' */
/** @import { Action, Rollout, Summary } from './rollout.js' */
import { byId, create, setAttribute, setChildren, setText } from '../elements/dom.js';
import { counted, formatMoment } from '../elements/format.js';
import { RolloutCard } from './card.js';
import { RolloutDialog } from './dialog.js';
import { isOpen, toDriver, toProblem, toState } from './rollout.js';

/** More rollouts than these are not under way at a time; the others are in the table. */
const MAX_OPEN = 4;

/**
 * What the section needs of the admin API.
 * @typedef {object} RolloutCalls
 * @property {() => Promise<Result<{ readonly rollouts: readonly Summary[] }>>} list
 * @property {(id: string) => Promise<Result<Rollout>>} find
 * @property {(id: string, action: Action) => Promise<Result<Rollout>>} ask
 */

/** The rollouts: those under way on top, with their replicas, and below them those that are over. */
export class RolloutSection {
  #section = byId('rollouts-section', HTMLElement);
  #summary = byId('rollouts-summary', HTMLElement);
  #open = byId('rollouts-open', HTMLElement);
  #past = byId('rollouts-past', HTMLDetailsElement);
  #pastTitle = byId('rollouts-past-title', HTMLElement);
  #pastBody = byId('rollouts-past-body', HTMLElement);
  #dialog = new RolloutDialog();
  /** @type {Map<string, RolloutCard>} */
  #cards = new Map();
  #isLoading = false;
  #calls;

  /** @param {RolloutCalls} calls */
  constructor(calls) {
    this.#calls = calls;
  }

  /**
   * Loads what there is and shows it, one load at a time. What cannot be loaded stays as it was.
   * @param {{ readonly now: string, readonly canChange: boolean }} surroundings
   */
  async refresh(surroundings) {
    if (this.#isLoading) return;
    this.#isLoading = true;
    try {
      const listed = await this.#calls.list();
      if (listed.kind !== 'ok') return;
      const { rollouts } = listed.value;
      const wanted = rollouts.filter(isOpen).slice(0, MAX_OPEN);
      const found = await Promise.all(wanted.map(({ id }) => this.#calls.find(id)));
      const open = found.flatMap((result) => (result.kind === 'ok' ? [result.value] : []));
      this.#show(rollouts, open, surroundings);
    } finally {
      this.#isLoading = false;
    }
  }

  /** Forgets what it has shown. */
  clear() {
    this.#section.hidden = true;
    this.#cards.clear();
    setChildren(this.#open, []);
    setChildren(this.#pastBody, []);
  }

  /**
   * @param {readonly Summary[]} rollouts
   * @param {readonly Rollout[]} open
   * @param {{ readonly now: string, readonly canChange: boolean }} surroundings
   */
  #show(rollouts, open, surroundings) {
    this.#section.hidden = rollouts.length === 0;
    const running = rollouts.filter(({ state }) => state === 'running' || state === 'paused').length;
    setText(
      this.#summary,
      running === 0 ? 'none is under way' : `${counted(running, 'is', 'are')} under way`,
    );
    const cards = open.map((rollout) => {
      const card = this.#cards.get(rollout.id) ?? new RolloutCard((action) => this.#ask(action, rollout.id));
      card.show(rollout, surroundings);
      return /** @type {const} */ ([rollout.id, card]);
    });
    this.#cards = new Map(cards);
    setChildren(
      this.#open,
      cards.map(([, card]) => card.element),
    );
    const past = rollouts.filter(({ id }) => !this.#cards.has(id));
    this.#past.hidden = past.length === 0;
    setText(this.#pastTitle, counted(past.length, 'earlier rollout'));
    setChildren(
      this.#pastBody,
      past.map((rollout) => this.#toRow(rollout, surroundings.now)),
    );
  }

  /**
   * @param {Summary} rollout
   * @param {string} now
   */
  #toRow(rollout, now) {
    const { text, look } = toState(rollout);
    const cells = [
      rollout.id,
      text,
      `${rollout.done_count} of ${rollout.replica_count}`,
      formatMoment(rollout.started_at, now),
      toDriver(rollout),
      rollout.state === 'stopped' ? toProblem(rollout) : rollout.sentence,
    ];
    const known = [...this.#pastBody.children].find((row) => row.getAttribute('data-id') === rollout.id);
    const row = known ?? create('tr', { 'data-id': rollout.id }, ...cells.map(() => create('td')));
    for (const [at, cell] of [...row.children].entries()) setText(cell, cells[at] ?? '');
    const state = row.children[1];
    if (state !== undefined) setAttribute(state, 'class', `verdict-${look}`);
    return row;
  }

  /**
   * @param {Action} action
   * @param {string} id
   */
  async #ask(action, id) {
    const found = await this.#calls.find(id);
    if (found.kind !== 'ok') return;
    this.#dialog.open(action, found.value, async () => {
      const result = await this.#calls.ask(id, action);
      if (result.kind === 'failed') return result.message;
      return result.kind === 'ok' ? null : 'The token was rejected.';
    });
  }
}
