/** @import { RolloutJson, RolloutSummaryJson } from '../../../rollouts/rollout-json.ts' */
import { counted } from '../elements/format.js';

/** What a rollout says of itself, in the words of the page. Pure. */

/** @typedef {RolloutSummaryJson} Summary */
/** @typedef {RolloutJson} Rollout */
/** @typedef {Rollout['replicas'][number]} Replica */
/** @typedef {'pause' | 'continue' | 'abort'} Action */

/** @type {Readonly<Record<Summary['state'], readonly [text: string, look: 'good' | 'warn' | 'bad' | 'quiet']>>} */
const STATES = {
  running: ['Running', 'warn'],
  paused: ['Paused', 'warn'],
  vanished: ['Nobody drives it', 'bad'],
  stopped: ['Stopped', 'bad'],
  aborted: ['Aborted', 'quiet'],
  done: ['Done', 'good'],
};

/** @type {Readonly<Record<'pause' | 'continue' | 'abort', string>>} */
const ASKED = { pause: 'pausing', continue: 'going on', abort: 'aborting' };

/**
 * The state in words, and how it looks.
 * @param {Pick<Summary, 'state' | 'asked'>} rollout
 */
export function toState({ state, asked }) {
  const [text, look] = STATES[state];
  return { text: asked === null ? text : `${text}, ${ASKED[asked]}`, look };
}

/**
 * Whether it is shown at the top: it is under way, or somebody must decide.
 * @param {Pick<Summary, 'state'>} rollout
 */
export function isOpen({ state }) {
  return state !== 'done' && state !== 'aborted';
}

/**
 * What can be asked of it.
 * @param {Pick<Summary, 'state' | 'asked'>} rollout
 * @returns {readonly Action[]}
 */
export function toActions({ state, asked }) {
  if (asked === 'abort' || !isOpen({ state })) return [];
  if (state === 'stopped' || state === 'vanished') return ['abort'];
  const isHeld = asked === 'pause' || (state === 'paused' && asked !== 'continue');
  return [isHeld ? 'continue' : 'pause', 'abort'];
}

/**
 * Who drives it, and since when.
 * @param {Pick<Summary, 'driver'>} rollout
 */
export function toDriver({ driver: { user, host, token_name } }) {
  return `${user}@${host}${token_name === null ? '' : ` (token ${token_name})`}`;
}

/**
 * Why it stopped, with the replica at which it did; empty if it did not.
 * @param {Pick<Summary, 'problem'>} rollout
 */
export function toProblem({ problem }) {
  if (problem === null) return '';
  return problem.replica === null ? problem.sentence : `${problem.replica}: ${problem.sentence}`;
}

/** @type {Readonly<Record<Replica['phase'], string>>} */
const PHASES = {
  waiting: 'waits',
  draining: 'drains',
  restarting: 'restarts',
  starting: 'starts',
  ramp: 'ramp',
  compare: 'is compared',
  done: 'done',
  warned: 'done, with a warning',
  stopped: 'stopped',
};

/** @param {Pick<Replica, 'phase' | 'stage'>} replica */
export function toPhase({ phase, stage }) {
  if (stage === 'skipped') return 'left out';
  return stage === 'rolled_back' ? 'rolled back' : PHASES[phase];
}

/** @type {Readonly<Record<string, string>>} */
const STEPS = { rollout_drain: 'drain', rollout_undrain: 'undrain' };

/** @param {Replica['steps'][number]} step */
export function toStep({ step, duration_ms }) {
  const name = STEPS[step] ?? step;
  const seconds = duration_ms / 1_000;
  return `${name} ${seconds < 100 ? seconds.toFixed(1) : Math.round(seconds)} s`;
}

/** @type {readonly (readonly [name: string, head: string])[]} */
const RATIOS = [
  ['first_token_ratio', 'first token'],
  ['gaps_ratio', 'gaps'],
  ['duration_ratio', 'duration'],
  ['lengths_ratio', 'length'],
];

/**
 * The figures of its comparison in a few words; empty if there are none.
 * @param {Replica['figures']} figures
 */
export function toFigures(figures) {
  const { share, requests, error_share: errors } = figures;
  const ratios = RATIOS.flatMap(([name, head]) => {
    const ratio = figures[name];
    return ratio === undefined ? [] : [`${head} ×${ratio.toFixed(2)}`];
  });
  return [
    ...(share === undefined || share >= 1 ? [] : [`${Math.round(share * 100)} % of its turns`]),
    ...(requests === undefined ? [] : [counted(requests, 'request')]),
    ...ratios,
    ...(errors === undefined ? [] : [`${(errors * 100).toFixed(1)} % errors`]),
  ].join(', ');
}

/**
 * What a person should know before an action.
 * @param {Action} action
 * @param {Pick<Summary, 'state'>} rollout
 * @returns {readonly string[]}
 */
export function toConsequences(action, { state }) {
  if (action === 'pause') {
    return ['No further replica is begun.', 'A replica that is under way goes to its end.'];
  }
  if (action === 'continue') return ['The next replica is begun.'];
  return [
    'It cannot go on afterwards: pause it if it may.',
    'Its command is ended. A replica that is drained stays drained until somebody undrains it.',
    'Replicas that were restarted stay as they are.',
    ...(state === 'vanished'
      ? ['Nobody drives it: make sure that its command does not run on somewhere.']
      : []),
  ];
}

/** @type {Readonly<Record<Action, string>>} */
export const ACTION_NAMES = { pause: 'Pause', continue: 'Go on', abort: 'Abort' };
