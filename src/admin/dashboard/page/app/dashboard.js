/** @import { Overview } from '../../overview.ts' */
/** @import { Target } from '../conditions/condition.js' */
/** @import { Phase } from './phase.js' */
/** @import { Outcome } from './poller.js' */
/** @import { View } from './view.js' */
import { ConditionDialog } from '../conditions/dialog.js';
import { ConditionLine } from '../conditions/line.js';
import { byId, setText } from '../elements/dom.js';
import { formatTime } from '../elements/format.js';
import { RecordSection } from '../records/section.js';
import { ConfirmDialog } from '../replicas/confirm.js';
import { toDone } from '../replicas/consequences.js';
import { ReplicaControls } from '../replicas/controls.js';
import { ReplicaTable } from '../replicas/table.js';
import { createTrafficSections } from '../traffic/sections.js';
import { changeDrain, fetchOverview } from './api.js';
import { GatewayHeader } from './gateway-header.js';
import { PhaseView } from './phase.js';
import { Poller } from './poller.js';
import { session } from './session.js';
import { Toast } from './toast.js';
import { ViewHistory } from './view-history.js';

/** The page: what it has loaded, and what the user wants to see of it. */
export class Dashboard {
  #phase = new PhaseView();
  #header = new GatewayHeader();
  #conditions = new ConditionLine((condition) => this.#condition.open(condition, this.#latest?.time ?? ''));
  #condition = new ConditionDialog((target) => this.#go(target));
  #showTraffic = createTrafficSections((change) => this.#showRecords(change));
  #replicas = new ReplicaTable((action, name) => this.#confirm(action, name));
  #controls = new ReplicaControls((change, isTyping) =>
    this.#history.change({ replicas: { ...this.#history.view.replicas, ...change } }, isTyping),
  );
  #records = new RecordSection((change) => this.#history.change(change));
  #dialog = new ConfirmDialog();
  #toast = new Toast(byId('toast', HTMLElement));
  #history = new ViewHistory((view) => this.#showView(view));
  #poller;
  /** @type {Overview | null} what the page shows; null before the first response */
  #latest = null;
  /** @type {(problem: string) => void} */
  #onSessionEnd;

  /**
   * @param {object} options
   * @param {number} options.pollIntervalMs
   * @param {(problem: string) => void} options.onSessionEnd called when the token is needed, with what is wrong with the last
   */
  constructor({ pollIntervalMs, onSessionEnd }) {
    this.#onSessionEnd = onSessionEnd;
    this.#poller = new Poller(() => this.#refresh(), pollIntervalMs);
    this.#setPhase(session.token === null ? 'signed_out' : 'loading');
    this.#showView(this.#history.view);
  }

  /** Loads and shows the data from now on. */
  begin() {
    this.#setPhase('loading');
    this.#poller.start();
  }

  /** Loads the data without waiting for the interval. */
  refreshNow() {
    void this.#poller.pollNow();
  }

  /**
   * Forgets the token and all data.
   * @param {string} problem shown above the form; may be empty
   */
  endSession(problem) {
    session.token = null;
    this.#latest = null;
    this.#records.clear();
    this.#conditions.clear();
    this.#header.clear();
    this.#poller.stop();
    for (const dialog of document.querySelectorAll('dialog')) dialog.close();
    this.#setPhase('signed_out');
    this.#onSessionEnd(problem);
  }

  /** @param {Phase} phase */
  #setPhase(phase) {
    this.#phase.show(phase, {
      isSignedIn: session.token !== null,
      hasData: this.#latest !== null,
      isReadOnly: this.#latest?.can_change === false,
    });
  }

  /**
   * Loads what is new and shows it.
   * @returns {Promise<Outcome>}
   */
  async #refresh() {
    const token = session.token;
    if (token === null) return 'stop';
    const result = await fetchOverview(token, this.#latest?.last_record ?? 0);
    // If the user has signed out or changed the token meanwhile, drop the result.
    if (session.token !== token) return session.token === null ? 'stop' : 'live';
    switch (result.kind) {
      case 'ok':
        return this.#show(result.value);
      case 'unauthorized':
        this.endSession('This token was rejected.');
        return 'stop';
      case 'disabled':
        this.#setPhase('disabled');
        return 'stop';
      case 'failed':
        this.#showLost(result.message);
        return 'failed';
    }
  }

  /**
   * @param {Overview} overview
   * @returns {Outcome}
   */
  #show(overview) {
    if (this.#latest !== null && this.#latest.started_at !== overview.started_at) {
      // Another gateway, or this one after a restart: its record numbers start again. The next response has all records.
      this.#latest = null;
      this.#records.clear();
      return 'hurry';
    }
    this.#announceSafe(overview);
    this.#latest = overview;
    this.#setPhase('live');
    this.#header.show(
      overview,
      overview.conditions.some(({ severity }) => severity !== 'notice'),
    );
    this.#conditions.show(overview);
    this.#condition.update(overview);
    this.#showTraffic(overview);
    this.#replicas.show(overview, this.#history.view.replicas);
    this.#records.add(overview);
    return overview.replicas.some(({ drained, inflight, background }) => drained && inflight + background > 0)
      ? 'hurry'
      : 'live';
  }

  /** Says which drains have become safe since the last response. @param {Overview} overview */
  #announceSafe(overview) {
    const draining = new Set(
      this.#latest?.replicas.flatMap(({ name, drained, safe_to_stop }) =>
        drained && safe_to_stop !== true ? [name] : [],
      ),
    );
    const safe = overview.replicas.filter(
      ({ name, safe_to_stop }) => safe_to_stop === true && draining.has(name),
    );
    if (safe.length > 0) this.#toast.show(`${safe.map(({ name }) => name).join(', ')}: safe to stop.`);
  }

  /** @param {string} message */
  #showLost(message) {
    this.#setPhase('lost');
    this.#header.showLost();
    const seen = this.#latest === null ? '' : ` The data shown is from ${formatTime(this.#latest.time)}.`;
    setText(byId('lost-details', HTMLElement), `${message} Trying again.${seen}`);
  }

  /** @param {View} view */
  #showView(view) {
    this.#controls.show(view.replicas);
    this.#records.showView(view);
    if (this.#latest !== null) this.#replicas.show(this.#latest, view.replicas);
  }

  /** Goes to what a condition is about. @param {Target} target */
  #go({ section, change, replica }) {
    if (replica === undefined) this.#history.change(change);
    // A search may hide the row.
    else this.#history.change({ replicas: { ...this.#history.view.replicas, search: '' } });
    if (replica !== undefined && this.#replicas.reveal(replica)) return;
    byId(section, HTMLElement).scrollIntoView({ block: 'start' });
  }

  /** @param {Partial<View>} change */
  #showRecords(change) {
    this.#history.change(change);
    byId('records-section', HTMLElement).scrollIntoView({ block: 'start' });
  }

  /**
   * @param {'drain' | 'undrain'} action
   * @param {string} name
   */
  #confirm(action, name) {
    const latest = this.#latest;
    const replica = latest?.replicas.find((each) => each.name === name && !each.removing);
    if (latest === null || replica === undefined || !latest.can_change) return;
    this.#dialog.open(action, replica, latest.replicas, async ({ reason, ramp, isAccepted }) => {
      const result = await changeDrain(session.token ?? '', name, action, {
        reason,
        ramp,
        unlessLast: !isAccepted,
      });
      if (result.kind === 'unauthorized') return { message: 'The token was rejected.', isLast: false };
      if (result.kind === 'disabled') return { message: 'The admin API is off.', isLast: false };
      if (result.kind === 'failed')
        return { message: result.message, isLast: result.code === 'last_replica' };
      const done = toDone(action, name, result.value);
      this.#toast.show(result.value.warning === undefined ? done : `${done} ${result.value.warning}`);
      this.refreshNow();
      return null;
    });
  }
}
