/** @import { Overview } from '../overview.ts' */
import { changeDrain, fetchOverview } from './api.js';
import { ConfirmDialog } from './confirm.js';
import { toDone } from './consequences.js';
import { byId, setAttribute, setText } from './dom.js';
import { createExport } from './export.js';
import { formatTime } from './format.js';
import { Poller } from './poller.js';
import { RecordTable } from './records.js';
import { createReplicaTable } from './replicas.js';
import { session } from './session.js';
import { createTiles } from './traffic.js';

/** The state of the page. */
/** @typedef {'signed_out' | 'loading' | 'live' | 'lost' | 'disabled'} Phase */

const sections = {
  signIn: byId('sign-in', HTMLElement),
  disabled: byId('disabled', HTMLElement),
  overview: byId('overview', HTMLElement),
};
const connection = byId('connection', HTMLElement);
const lost = byId('lost', HTMLElement);
const lostDetails = byId('lost-details', HTMLElement);
const signInError = byId('sign-in-error', HTMLElement);
const tokenInput = byId('token', HTMLInputElement);
const signOut = byId('sign-out', HTMLButtonElement);
const toast = byId('toast', HTMLElement);

/** @type {Overview | null} what the page shows; null before the first response */
let latest = null;

/** @type {Readonly<Record<Phase, string>>} */
const CONNECTION = {
  signed_out: '',
  loading: 'Connecting',
  live: 'Live',
  lost: 'Reconnecting',
  disabled: '',
};

/** @param {Phase} phase */
function setPhase(phase) {
  document.body.dataset.phase = phase;
  sections.signIn.hidden = phase !== 'signed_out';
  sections.disabled.hidden = phase !== 'disabled';
  sections.overview.hidden = !(phase === 'loading' || phase === 'live' || phase === 'lost');
  setAttribute(sections.overview, 'aria-busy', latest === null ? 'true' : null);
  lost.hidden = phase !== 'lost';
  signOut.hidden = session.token === null;
  const isReadOnly = phase === 'live' && latest?.can_change === false;
  setText(connection, isReadOnly ? `${CONNECTION.live}, read-only` : CONNECTION[phase]);
}

setPhase(session.token === null ? 'signed_out' : 'loading');
const showTiles = createTiles(byId('tiles', HTMLElement));
const showReplicas = createReplicaTable(confirmAction);
const showExport = createExport(byId('export', HTMLElement));
const records = new RecordTable();
const dialog = new ConfirmDialog();
const poller = new Poller(refresh);

/** Loads what is new and shows it. */
async function refresh() {
  const token = session.token;
  if (token === null) return 'stop';
  const result = await fetchOverview(token, latest?.last_record ?? 0);
  // If the user has signed out or changed the token meanwhile, drop the result.
  if (session.token !== token) return session.token === null ? 'stop' : 'live';
  switch (result.kind) {
    case 'ok':
      return show(result.value);
    case 'unauthorized':
      endSession('This token was rejected.');
      return 'stop';
    case 'disabled':
      setPhase('disabled');
      return 'stop';
    case 'failed':
      showLost(result.message);
      return 'failed';
  }
}

/**
 * @param {Overview} overview
 * @returns {'live'}
 */
function show(overview) {
  if (latest !== null && latest.started_at !== overview.started_at) {
    // Another gateway, or this one after a restart: its record numbers start again. The next response has all records.
    latest = null;
    records.clear();
    return 'live';
  }
  latest = overview;
  setPhase('live');
  document.body.dataset.access = overview.can_change ? 'change' : 'read';
  showTiles(overview);
  showReplicas(overview);
  showExport(overview);
  records.add(overview);
  return 'live';
}

/** @param {string} message */
function showLost(message) {
  setPhase('lost');
  const seen = latest === null ? '' : ` The data shown is from ${formatTime(latest.time)}.`;
  setText(lostDetails, `${message} Trying again.${seen}`);
}

/** @param {string} reason shown above the form */
function endSession(reason) {
  session.token = null;
  latest = null;
  records.clear();
  poller.stop();
  for (const dialog of document.querySelectorAll('dialog')) dialog.close();
  setPhase('signed_out');
  setText(signInError, reason);
  tokenInput.value = '';
  tokenInput.focus();
}

/**
 * @param {'drain' | 'undrain'} action
 * @param {string} name
 */
function confirmAction(action, name) {
  const replica = latest?.replicas.find((each) => each.name === name);
  if (latest === null || replica === undefined || !latest.can_change) return;
  dialog.open(action, replica, latest.replicas, async (reason) => {
    const result = await changeDrain(session.token ?? '', name, action, reason);
    if (result.kind === 'unauthorized') return 'The token was rejected.';
    if (result.kind === 'disabled') return 'The admin API is off.';
    if (result.kind === 'failed') return result.message;
    const done = toDone(action, name, result.value);
    showToast(result.value.warning === undefined ? done : `${done} ${result.value.warning}`);
    void poller.pollNow();
    return null;
  });
}

const TOAST_MS = 6_000;
/** @type {number | undefined} */
let toastTimer;

/** @param {string} text */
function showToast(text) {
  setText(toast, text);
  window.clearTimeout(toastTimer);
  toastTimer = window.setTimeout(() => setText(toast, ''), TOAST_MS);
}

function begin() {
  setPhase('loading');
  poller.start();
}

byId('sign-in-form', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  setText(signInError, '');
  session.token = tokenInput.value.trim();
  tokenInput.value = '';
  begin();
});
signOut.addEventListener('click', () => endSession(''));
byId('try-now', HTMLButtonElement).addEventListener('click', () => void poller.pollNow());
byId('retry', HTMLButtonElement).addEventListener('click', begin);

if (session.token === null) tokenInput.focus();
else begin();
