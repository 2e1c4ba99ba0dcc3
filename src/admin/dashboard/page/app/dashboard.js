/** @import { Overview } from '../../overview.ts' */
/** @import { Target } from '../conditions/condition.js' */
/** @import { Past } from '../history/past-loader.js' */
/** @import { Phase } from './phase.js' */
/** @import { Outcome } from './poller.js' */
/** @import { View } from './view.js' */
import { ConditionDialog } from '../conditions/dialog.js';
import { ConditionLine } from '../conditions/line.js';
import { byId, setAttribute, setText } from '../elements/dom.js';
import { formatTime } from '../elements/format.js';
import { PastLoader } from '../history/past-loader.js';
import { LIVE, toRange } from '../history/range.js';
import { RangeChoice } from '../history/range-choice.js';
import { TimelineView } from '../history/timeline-view.js';
import { RecordSection } from '../records/section.js';
import { ConfirmDialog } from '../replicas/confirm.js';
import { toDone } from '../replicas/consequences.js';
import { ReplicaControls } from '../replicas/controls.js';
import { ReplicaTable } from '../replicas/table.js';
import { RolloutSection } from '../rollouts/section.js';
import { createTrafficSections } from '../traffic/sections.js';
import { START_USAGE } from '../usage/usage-query.js';
import { UsageSection } from '../usage/usage-section.js';
import { askRollout, changeDrain, fetchOverview, fetchRollout, fetchRollouts } from './api.js';
import { GatewayHeader } from './gateway-header.js';
import { PhaseView } from './phase.js';
import { Poller } from './poller.js';
import { session } from './session.js';
import { Toast } from './toast.js';
import { ViewHistory } from './view-history.js';

/** What stands where the history would be told. */
const HISTORY_OFF =
  'The history is off, so only the last 5 minutes are known. To keep what happens, remove `history: off` from the configuration and reload it.';

/** The page: what it has loaded, and what the user wants to see of it. */
export class Dashboard {
  #phase = new PhaseView();
  #header = new GatewayHeader();
  #conditions = new ConditionLine((condition) => this.#condition.open(condition, this.#latest?.time ?? ''));
  #condition = new ConditionDialog((target) => this.#go(target));
  #traffic = createTrafficSections((change) => this.#showRecords(change));
  #timeline = new TimelineView(this.#traffic.tiles);
  #ranges = new RangeChoice((range) => this.#history.change({ range }));
  #replicas = new ReplicaTable((action, name) => this.#confirm(action, name));
  #controls = new ReplicaControls((change, isTyping) =>
    this.#history.change({ replicas: { ...this.#history.view.replicas, ...change } }, isTyping),
  );
  #records = new RecordSection((change) => this.#history.change(change));
  #rollouts = new RolloutSection({
    list: () => fetchRollouts(session.token ?? ''),
    find: (id) => fetchRollout(session.token ?? '', id),
    ask: (id, action) => askRollout(session.token ?? '', id, action),
  });
  #dialog = new ConfirmDialog();
  #toast = new Toast(byId('toast', HTMLElement));
  #history = new ViewHistory((view) => this.#showView(view));
  #poller;
  #past;
  #usage;
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
    this.#past = new PastLoader(pollIntervalMs, (past) => this.#showPast(past));
    this.#usage = new UsageSection(pollIntervalMs, (usage, isTyping) =>
      this.#history.change({ usage }, isTyping),
    );
    byId('usage-open', HTMLElement).addEventListener('click', () => this.#openUsage());
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
    this.#rollouts.clear();
    this.#header.clear();
    this.#poller.stop();
    this.#past.stop();
    this.#usage.close();
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
    this.#traffic.showNow(overview);
    this.#showRange(overview);
    this.#replicas.show(overview, this.#history.view.replicas);
    this.#records.add(overview);
    void this.#rollouts.refresh({ now: overview.time, canChange: overview.can_change });
    return overview.replicas.some(({ drained, inflight, background }) => drained && inflight + background > 0)
      ? 'hurry'
      : 'live';
  }

  /** Shows the figures of now, or has those of a range loaded. @param {Overview} overview */
  #showRange(overview) {
    const range = toRange(this.#history.view.range);
    if (range === LIVE) this.#traffic.showLive(overview);
    this.#showUsage(overview);
    if (this.#history.view.usage !== null) this.#past.stop();
    else if (overview.keeps_history) this.#past.show(range);
    else {
      this.#past.stop();
      this.#timeline.showNote(HISTORY_OFF);
      if (range !== LIVE) this.#traffic.showLive(overview);
    }
  }

  /** Shows who used how much, if that is wanted. @param {Overview} overview */
  #showUsage({ keeps_history }) {
    const { usage } = this.#history.view;
    byId('live', HTMLElement).hidden = usage !== null;
    byId('usage-section', HTMLElement).hidden = usage === null;
    setAttribute(byId('usage-open', HTMLElement), 'aria-current', usage === null ? null : 'page');
    if (usage === null) this.#usage.close();
    else if (keeps_history) this.#usage.show(usage);
    else this.#usage.showNote(HISTORY_OFF);
  }

  #openUsage() {
    this.#history.change({ usage: this.#history.view.usage ?? START_USAGE });
    window.scrollTo({ top: 0 });
    byId('usage-title', HTMLElement).focus();
  }

  /** Goes to a part of the page. @param {string} section the id of its element */
  goTo(section) {
    if (this.#history.view.usage !== null) this.#history.change({ usage: null });
    byId(section, HTMLElement).scrollIntoView({ block: 'start' });
  }

  /** @param {Past} past */
  #showPast(past) {
    if (past.range.name !== this.#history.view.range) return;
    this.#timeline.show(past);
    if (past.range.name === LIVE.name) return;
    this.#traffic.showPast(past);
    if (past.usage === null) this.#traffic.showNote(past.problem ?? '');
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
    this.#ranges.show(toRange(view.range));
    if (this.#latest !== null) this.#showRange(this.#latest);
    this.#records.showView(view);
    if (this.#latest !== null) this.#replicas.show(this.#latest, view.replicas);
  }

  /** Goes to what a condition is about. @param {Target} target */
  #go({ section, change, replica }) {
    if (replica === undefined) this.#history.change({ find: null, ...change, usage: null });
    // A search may hide the row.
    else this.#history.change({ usage: null, replicas: { ...this.#history.view.replicas, search: '' } });
    if (replica !== undefined && this.#replicas.reveal(replica)) return;
    byId(section, HTMLElement).scrollIntoView({ block: 'start' });
  }

  /** @param {Partial<View>} change */
  #showRecords(change) {
    this.#history.change({ ...change, find: null });
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
      this.#past.loadNow();
      return null;
    });
  }
}
