/** @import { Overview } from '../../overview.ts' */
/** @import { Replica, StateKind } from '../replicas/state.js' */
/** @import { Level } from '../traffic/levels.js' */
/** @import { View } from './view.js' */
import { counted, formatShare } from '../elements/format.js';
import { NO_FILTER } from '../records/filters.js';
import { serves } from '../replicas/consequences.js';
import { toReason, toStateKind, toWord } from '../replicas/state.js';
import { toClientErrorLevel, toErrorLevel, toUseLevel } from '../traffic/levels.js';

/** Finds what an operator should look at. Pure. */

/**
 * One problem. `section` is the id of the part of the page about it, `change` how to show it there.
 * @typedef {{ readonly level: Exclude<Level, ''>, readonly text: string, readonly section: string, readonly change: Partial<View> }} Problem
 */

/** More models than these are not named one by one. */
const MAX_MODELS_CHECKED = 200;

/**
 * The problems of an overview, the most severe first.
 * @param {Overview} overview
 * @returns {readonly Problem[]}
 */
export function toProblems(overview) {
  const present = overview.replicas.filter(({ removing }) => !removing);
  const problems = [
    ...toModelProblems(present),
    ...toStateProblems(present, 'unreachable', 'bad'),
    ...toStateProblems(present, 'failing', 'bad'),
    ...toErrorProblems(overview, present),
    ...toSourceProblems(overview),
    ...toCollectorProblems(overview),
    ...toSaturationProblems(overview),
    ...toStateProblems(present, 'loading', 'warn'),
  ];
  return problems.toSorted((a, b) => Number(b.level === 'bad') - Number(a.level === 'bad'));
}

/**
 * Models for which no replica answers that is not drained.
 * @param {readonly Replica[]} replicas
 * @returns {readonly Problem[]}
 */
function toModelProblems(replicas) {
  const models = [...new Set(replicas.flatMap((replica) => replica.models ?? []))].slice(
    0,
    MAX_MODELS_CHECKED,
  );
  const able = replicas.filter(
    ({ drained, reachability }) => !drained && (reachability === 'reachable' || reachability === 'unknown'),
  );
  const dead = models.filter((model) => !able.some((replica) => serves(replica, model)));
  return dead.length === 0
    ? []
    : [
        {
          level: 'bad',
          text: `No replica serves ${dead.length === 1 ? toModel(dead[0]) : `${dead.length} models`}`,
          section: 'replicas-section',
          change: toSearch(dead.length === 1 && dead[0] !== '*' ? (dead[0] ?? '') : ''),
        },
      ];
}

/** @param {string | undefined} model */
function toModel(model = '') {
  return model === '*' ? 'models without a replica of their own' : model;
}

/**
 * @param {readonly Replica[]} replicas
 * @param {StateKind} kind
 * @param {Problem['level']} level
 * @returns {readonly Problem[]}
 */
function toStateProblems(replicas, kind, level) {
  const found = replicas.filter((replica) => toStateKind(replica) === kind);
  const [first] = found;
  if (first === undefined) return [];
  const word = toWord(kind).toLowerCase();
  const reason = kind !== 'loading' && toReason(first) !== '' ? `: ${toReason(first)}` : '';
  const text =
    found.length === 1 ? `${first.name} is ${word}${reason}` : `${found.length} replicas are ${word}`;
  const search = found.length === 1 ? first.name : word;
  return [{ level, text, section: 'replicas-section', change: toSearch(search) }];
}

/**
 * @param {Overview} overview
 * @param {readonly Replica[]} replicas
 * @returns {readonly Problem[]}
 */
function toErrorProblems({ last_minute }, replicas) {
  /** @type {Problem[]} */
  const problems = [];
  const { errors, client_errors, requests } = last_minute;
  const level = toErrorLevel(errors, requests);
  if (level !== '')
    problems.push({
      level,
      text: `${formatShare(errors, requests)} of requests fail`,
      section: 'reasons-section',
      change: {},
    });
  // One that is unreachable has been named already.
  const present = replicas.filter((replica) => toStateKind(replica) !== 'unreachable');
  problems.push(...toReplicaErrorProblems(present, 'bad', 'many'));
  if (!problems.some((problem) => problem.section === 'replicas-section')) {
    problems.push(...toReplicaErrorProblems(present, 'warn', 'some'));
  }
  if (toClientErrorLevel(client_errors, requests) !== '')
    problems.push({
      level: 'warn',
      text: `${formatShare(client_errors, requests)} of requests get 4xx`,
      section: 'records-section',
      change: { list: 'failures', filter: { ...NO_FILTER, status: 'client_error' } },
    });
  else problems.push(...toReplicaClientErrorProblems(present));
  return problems;
}

/**
 * The replicas whose share of errors has this level.
 * @param {readonly Replica[]} replicas
 * @param {Problem['level']} level
 * @param {'many' | 'some'} amount
 * @returns {readonly Problem[]}
 */
function toReplicaErrorProblems(replicas, level, amount) {
  const found = replicas.filter(
    ({ last_minute: { errors, requests } }) => toErrorLevel(errors, requests) === level,
  );
  const [first] = found;
  if (first === undefined) return [];
  const share = formatShare(first.last_minute.errors, first.last_minute.requests);
  const text =
    found.length === 1
      ? `${first.name} fails ${share} of its requests`
      : `${found.length} replicas fail ${amount} requests`;
  return [{ level, text, section: 'replicas-section', change: toSort('errors') }];
}

/**
 * The replicas that answer 4xx to many requests although the gateway as a whole does not.
 * @param {readonly Replica[]} replicas
 * @returns {readonly Problem[]}
 */
function toReplicaClientErrorProblems(replicas) {
  const found = replicas.filter(
    ({ last_minute: { client_errors, requests } }) => toClientErrorLevel(client_errors, requests) !== '',
  );
  const [first] = found;
  if (first === undefined) return [];
  const share = formatShare(first.last_minute.client_errors, first.last_minute.requests);
  const text =
    found.length === 1
      ? `${first.name} answers 4xx to ${share} of its requests`
      : `${found.length} replicas answer 4xx to many requests`;
  return [{ level: 'warn', text, section: 'replicas-section', change: toSort('client_errors') }];
}

/**
 * @param {"errors" | "client_errors"} column
 * @returns {Partial<View>}
 */
function toSort(column) {
  return { replicas: { search: '', sort: { column, isDescending: true }, isFlat: true } };
}

/**
 * @param {Overview} overview
 * @returns {readonly Problem[]}
 */
function toCollectorProblems({ collector, stats, queue_size }) {
  /** @type {Problem[]} */
  const problems = [];
  /** @param {Problem['level']} level @param {string} text */
  const add = (level, text) => problems.push({ level, text, section: 'export-section', change: {} });
  if (collector.state === 'failing') add('bad', `Export calls fail: ${counted(stats.queued, 'record')} wait`);
  if (collector.state === 'refusing') add('bad', 'Collector is rejecting records');
  if (collector.state !== 'failing' && toUseLevel(stats.queued, queue_size) !== '')
    add('warn', 'The queue of records is nearly full');
  return problems;
}

/**
 * Kubernetes or DNS that fails: the replicas may be out of date. A readiness gate that fails: pods do not get ready.
 * @param {Overview} overview
 * @returns {readonly Problem[]}
 */
function toSourceProblems({ sources }) {
  const gates = sources.flatMap(({ name, readiness_gate: gate }) =>
    gate?.state === 'failing' ? [`Readiness gate fails for ${name}: ${toErrorText(gate)}`] : [],
  );
  const texts = [...toSourceText(sources), ...gates.slice(0, 1)];
  return texts.map((text) => ({ level: 'warn', text, section: 'replicas-section', change: {} }));
}

/**
 * @param {Pick<Overview['sources'][number], 'error_code' | 'error_cause'>} failing
 * @returns {string}
 */
function toErrorText({ error_code: code, error_cause: cause }) {
  return cause === null ? `${code}` : `${code} (${cause})`;
}

/**
 * @param {Overview['sources']} sources
 * @returns {readonly string[]}
 */
function toSourceText(sources) {
  const found = sources.filter(({ state }) => state === 'failing');
  const [first] = found;
  if (first === undefined) return [];
  const label = first.kind === 'dns' ? 'DNS' : 'Kubernetes';
  return found.length === 1
    ? [`${label} fails for ${first.name}: ${toErrorText(first)}`]
    : [`Kubernetes or DNS fails for ${found.length} names`];
}

/**
 * @param {Overview} overview
 * @returns {readonly Problem[]}
 */
function toSaturationProblems({ saturation }) {
  const busiest = Math.max(0, ...saturation.workers.map((worker) => worker.event_loop_utilization));
  /** @type {readonly (readonly [level: Level, text: string])[]} */
  const uses = [
    [toUseLevel(busiest, 1), `A worker is busy ${formatShare(busiest, 1)} of the time`],
    [
      toUseLevel(saturation.connections.now, saturation.connections.limit),
      'Connections are close to their limit',
    ],
    [
      toUseLevel(saturation.buffered_bytes.now, saturation.buffered_bytes.limit),
      'Buffers are close to their limit',
    ],
  ];
  return uses.flatMap(([level, text]) =>
    level === '' ? [] : [{ level, text, section: 'saturation-section', change: {} }],
  );
}

/**
 * @param {string} search
 * @returns {Partial<View>}
 */
function toSearch(search) {
  return { replicas: { search, sort: null, isFlat: false } };
}
