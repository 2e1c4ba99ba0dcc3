/** @import { Overview } from '../overview.ts' */
/** @import { Replica } from './consequences.js' */
import { byId, create, setAttribute, setChildren, setText } from './dom.js';
import { formatMs, formatRate, formatShare } from './format.js';
import { toInflight, toSince, toState, toSummary, toUnconfirmed } from './state.js';

/** @typedef {{ readonly row: HTMLTableRowElement, show(replica: Replica, time: string): void }} Row */

/**
 * Creates the table of replicas. `onAction` is called when a replica's button is pressed.
 * @param {(action: 'drain' | 'undrain', name: string) => void} onAction
 * @returns {(overview: Overview) => void} shows an overview
 */
export function createReplicaTable(onAction) {
  const body = byId('replicas', HTMLTableElement).tBodies[0];
  const summary = byId('replicas-summary', HTMLElement);
  /** @type {Map<string, Row>} */
  let rows = new Map();
  return ({ replicas, time }) => {
    /** @type {Map<string, Row>} */
    const shown = new Map();
    for (const replica of replicas) {
      const key = toFreeKey(replica.name, shown);
      const row = rows.get(key) ?? createRow(onAction);
      shown.set(key, row);
      row.show(replica, time);
    }
    rows = shown;
    if (body !== undefined)
      setChildren(
        body,
        [...shown.values()].map(({ row }) => row),
      );
    setText(summary, toSummary(replicas));
  };
}

/**
 * @param {(action: 'drain' | 'undrain', name: string) => void} onAction
 * @returns {Row}
 */
function createRow(onAction) {
  const name = create('strong', { class: 'name' });
  const machine = create('span', { class: 'faint' });
  const models = create('span', { class: 'models' });
  const state = create('span', { class: 'state' });
  const since = create('span', { class: 'faint' });
  const unconfirmed = create('span', { class: 'faint unconfirmed' });
  const numbers = NUMBERS.map(({ label, isKey }) =>
    create('td', { class: isKey === true ? 'number key' : 'number', 'data-label': label }),
  );
  const button = create('button', { type: 'button' });
  /** @type {Replica | undefined} */
  let shown;
  button.addEventListener('click', () => {
    if (shown !== undefined) onAction(shown.drained ? 'undrain' : 'drain', shown.name);
  });
  const row = create(
    'tr',
    {},
    create('th', { scope: 'row' }, name, machine),
    create('td', { class: 'models-cell' }, models),
    create('td', { class: 'state-cell' }, state, since, unconfirmed),
    ...numbers,
    create('td', { class: 'action' }, button),
  );
  return {
    row,
    show(replica, time) {
      shown = replica;
      setText(name, replica.name);
      setText(models, toModels(replica));
      setAttribute(models, 'title', replica.models?.join('\n') ?? null);
      setText(machine, toMachine(replica));
      const { kind, text } = toState(replica);
      setAttribute(state, 'data-state', kind);
      setText(state, text);
      setText(since, toSince(replica, time));
      setAttribute(since, 'title', replica.reason);
      setText(unconfirmed, toUnconfirmed(replica));
      for (const [index, { write }] of NUMBERS.entries()) {
        const cell = numbers[index];
        if (cell !== undefined) setText(cell, write(replica));
      }
      const action = replica.drained ? 'Undrain' : 'Drain';
      setText(button, action);
      setAttribute(button, 'aria-label', `${action} ${replica.name}`);
      button.hidden = replica.removing;
      setAttribute(row, 'data-name', replica.name);
    },
  };
}

/** @type {readonly { label: string, isKey?: boolean, write(replica: Replica): string }[]} */
const NUMBERS = [
  { label: 'In flight', isKey: true, write: toInflight },
  { label: 'Requests/s', write: ({ last_minute }) => formatRate(last_minute.requests_per_s) },
  { label: 'TTFT p50', write: ({ last_minute }) => formatMs(last_minute.ttft_p50_ms) },
  { label: 'TTFT p95', write: ({ last_minute }) => formatMs(last_minute.ttft_p95_ms) },
  { label: 'Latency p50', write: ({ last_minute }) => formatMs(last_minute.latency_p50_ms) },
  { label: 'Latency p95', write: ({ last_minute }) => formatMs(last_minute.latency_p95_ms) },
  { label: 'Tokens/s', write: ({ last_minute }) => formatRate(last_minute.output_tokens_per_s) },
  {
    label: 'Errors',
    write: ({ last_minute }) => formatShare(last_minute.errors, last_minute.requests),
  },
];

/**
 * The key of a row: the replica's name, made longer if a replica that is being removed has the same name.
 * @param {string} name
 * @param {ReadonlyMap<string, unknown>} taken
 */
function toFreeKey(name, taken) {
  let key = name;
  while (taken.has(key)) key += ' ';
  return key;
}

/** @param {Replica} replica */
function toModels({ models }) {
  if (models === null) return 'models unknown';
  if (models.includes('*')) return 'any model';
  return models.length > 2
    ? `${models.slice(0, 2).join(', ')} and ${models.length - 2} more`
    : models.join(', ');
}

/** @param {Replica} replica */
function toMachine({ host, gpu_model, gpu_count }) {
  if (gpu_model === null) return host;
  return gpu_count === null ? `${host} · ${gpu_model}` : `${host} · ${gpu_count} × ${gpu_model}`;
}
