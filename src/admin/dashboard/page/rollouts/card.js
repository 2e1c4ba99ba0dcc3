/** @import { Action, Replica, Rollout } from './rollout.js' */
import { create, setAttribute, setChildren, setText } from '../elements/dom.js';
import { formatMoment } from '../elements/format.js';
import { ReplicaRow } from './replica-row.js';
import { ACTION_NAMES, toActions, toDriver, toProblem, toState } from './rollout.js';

/** A rollout that is under way, or that somebody must decide about: its state, its buttons, its replicas. */
export class RolloutCard {
  #state = create('span', { class: 'rollout-state' });
  #title = create('h3');
  #facts = create('p', { class: 'faint' });
  #problem = create('p', { class: 'rollout-problem' });
  #advice = create('p', { class: 'rollout-advice' });
  #buttons;
  #actions = create('div', { class: 'rollout-actions' });
  #body = create('tbody');
  /** @type {Map<string, ReplicaRow>} */
  #rows = new Map();
  element;

  /** @param {(action: Action) => void} onAction */
  constructor(onAction) {
    /** @param {Action} action */
    const toButton = (action) => {
      const look = action === 'abort' ? { class: 'danger' } : {};
      const button = create('button', { type: 'button', ...look }, ACTION_NAMES[action]);
      button.addEventListener('click', () => onAction(action));
      return button;
    };
    this.#buttons = { pause: toButton('pause'), continue: toButton('continue'), abort: toButton('abort') };
    const heads = ['Replica', 'Phase', 'Steps', 'Verdict', 'What is known'];
    const row = create('tr', {}, ...heads.map((head) => create('th', { scope: 'col' }, head)));
    this.element = create(
      'article',
      { class: 'card rollout' },
      create('div', { class: 'rollout-head' }, this.#state, this.#title, this.#actions),
      this.#facts,
      this.#problem,
      this.#advice,
      create('table', { class: 'rollout-replicas' }, create('thead', {}, row), this.#body),
    );
  }

  /**
   * @param {Rollout} rollout
   * @param {{ readonly now: string, readonly canChange: boolean }} surroundings
   */
  show(rollout, { now, canChange }) {
    const { text, look } = toState(rollout);
    setText(this.#state, text);
    setAttribute(this.#state, 'class', `rollout-state ${look}`);
    setText(this.#title, `Rollout ${rollout.id}: ${rollout.sentence}`);
    const reason = rollout.plan.reason === null ? '' : `, because of: ${rollout.plan.reason}`;
    setText(
      this.#facts,
      `Driven by ${toDriver(rollout)} since ${formatMoment(rollout.started_at, now)}${reason}`,
    );
    setText(this.#problem, toProblem(rollout));
    this.#problem.hidden = rollout.problem === null;
    setText(this.#advice, rollout.problem?.advice ?? '');
    this.#advice.hidden = (rollout.problem?.advice ?? null) === null;
    const actions = canChange ? toActions(rollout) : [];
    setChildren(
      this.#actions,
      actions.map((action) => this.#buttons[action]),
    );
    this.#showReplicas(rollout.replicas);
  }

  /** @param {readonly Replica[]} replicas */
  #showReplicas(replicas) {
    const rows = replicas.map((replica) => {
      const row = this.#rows.get(replica.name) ?? new ReplicaRow(replica.name);
      row.show(replica);
      return row;
    });
    this.#rows = new Map(rows.map((row) => [row.name, row]));
    setChildren(
      this.#body,
      rows.map(({ element }) => element),
    );
  }
}
