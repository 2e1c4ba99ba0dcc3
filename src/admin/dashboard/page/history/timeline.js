/** @import { TimelineJson } from '../../../routes/history/timeline.ts' */
/** @import { Span } from './range.js' */
import { counted, formatAgo, formatMoment, toCapital } from '../elements/format.js';

/** What happened, as bands over time. The words of `gateway timeline`, for a page. Pure. */

/** @typedef {TimelineJson['events'][number]} TimelineEvent */

/** What colour and sign a band has. */
/** @typedef {'critical' | 'warning' | 'notice' | 'drain' | 'rollout' | 'failed' | 'down' | 'moment'} Look */

/**
 * One thing that happened. `untilMs`: null, it goes on; the same as `fromMs`, it was over at once. `details`: what else is
 * known of it. `steps`: those of a rollout.
 * @typedef {object} Happening
 * @property {string} lane
 * @property {Look} look
 * @property {number} fromMs
 * @property {number | null} untilMs
 * @property {string} title
 * @property {string} details
 * @property {readonly Happening[]} steps
 */

/**
 * What is drawn in one place: one thing, or several that are too close to each other. `left` and `width` are shares of the
 * whole.
 * @typedef {object} Band
 * @property {Look} look
 * @property {number} left
 * @property {number} width
 * @property {readonly Happening[]} happenings
 */

/** @typedef {{ readonly title: string, readonly rows: readonly (readonly Band[])[] }} Lane */

/** A lane for each kind, in this order. */
const LANES = ['Conditions', 'Drains', 'Rollouts', 'Gateway'];
/** Rows of a lane. What does not fit shares a band of the last one. */
const MAX_ROWS = 2;
/** A band can be seen, and pressed, from this share of the whole on. */
const LEAST_WIDTH = 0.02;
/** A rollout that has told nothing for so long has ended: longer than any of its steps takes. */
const ROLLOUT_SILENT_MS = 45 * 60_000;

/** The more severe one gives its colour to a band of several. @type {readonly Look[]} */
const BY_WEIGHT = ['critical', 'failed', 'down', 'warning', 'rollout', 'drain', 'notice', 'moment'];

/**
 * What happened, the oldest first. The steps of a rollout are one.
 * @param {readonly TimelineEvent[]} events in any order
 * @param {number} nowMs
 * @returns {readonly Happening[]}
 */
export function toHappenings(events, nowMs) {
  const sorted = events.toSorted((a, b) => Date.parse(a.from) - Date.parse(b.from) || a.number - b.number);
  const rollouts = Map.groupBy(
    sorted.filter(({ kind }) => kind === 'rollout'),
    ({ details }) => String(details.trace_id ?? ''),
  );
  const others = sorted
    .filter(({ kind }) => kind !== 'rollout')
    .map((event) => toHappening(event, findEnd(event, sorted)));
  return [...others, ...[...rollouts.values()].map((steps) => toRollout(steps, nowMs))].toSorted(
    (a, b) => a.fromMs - b.fromMs,
  );
}

/**
 * When it ended: a gateway that stopped did nothing until it started again.
 * @param {TimelineEvent} event
 * @param {readonly TimelineEvent[]} sorted
 */
function findEnd(event, sorted) {
  if (event.kind !== 'stop') return event.until;
  const start = sorted.find(({ kind, number }) => kind === 'start' && number > event.number);
  return start?.from ?? event.until;
}

/**
 * @param {TimelineEvent} event
 * @param {string | null} until
 * @returns {Happening}
 */
function toHappening(event, until) {
  const span = { fromMs: Date.parse(event.from), untilMs: until === null ? null : Date.parse(until) };
  return { ...toWords(event), ...span, steps: [] };
}

/**
 * @param {TimelineEvent} event
 * @returns {Pick<Happening, 'lane' | 'look' | 'title' | 'details'>}
 */
function toWords({ kind, subject, details }) {
  const text = (/** @type {string} */ name) => toText(details[name]);
  const by = text('by') === '' ? [] : [`by ${text('by')}`];
  switch (kind) {
    case 'condition': {
      const look = toSeverity(text('severity'));
      const sentence = text('sentence') || subject;
      // A name stays as it is.
      const isName = text('subject') !== '' && sentence.startsWith(text('subject'));
      const title = isName ? sentence : toCapital(sentence);
      return { lane: 'Conditions', look, title, details: look };
    }
    case 'shadow':
    case 'drain': {
      const reason = text('reason') === '' ? [] : [text('reason')];
      return {
        lane: 'Drains',
        look: 'drain',
        title: `${subject} ${kind === 'drain' ? 'drained' : 'a shadow'}`,
        details: [...reason, ...by].join(', '),
      };
    }
    case 'rollout': {
      const outcome = text('outcome');
      const title = [STEPS.get(text('step')) ?? text('step'), subject]
        .filter((each) => each !== '')
        .join(' of ');
      return {
        lane: 'Rollouts',
        look: isGood(details) ? 'rollout' : 'failed',
        title,
        details: [outcome, text('sentence')].filter((each) => each !== '').join(': '),
      };
    }
    case 'reload': {
      if (details.refused === true)
        return { lane: 'Gateway', look: 'failed', title: 'A reload was refused', details: by.join('') };
      const keys = text('changed_keys') === '' ? [] : [`changed ${text('changed_keys')}`];
      const replicas = ['added', 'changed', 'removed']
        .filter((name) => Number(details[name]) > 0)
        .map((name) => `${counted(Number(details[name]), 'replica')} ${name}`);
      return {
        lane: 'Gateway',
        look: 'moment',
        title: 'Configuration reloaded',
        details: [...keys, ...replicas, ...by].join(', '),
      };
    }
    case 'health':
      return {
        lane: 'Gateway',
        look: text('change') === 'replica_failing' ? 'failed' : 'moment',
        title: `${subject} ${HEALTH.get(text('change')) ?? text('change')}`,
        details: text('reason') || [text('judge'), text('verdict')].filter((each) => each !== '').join(': '),
      };
    case 'start':
      return {
        lane: 'Gateway',
        look: 'moment',
        title: 'The gateway started',
        details: text('version') === '' ? '' : `version ${text('version')}`,
      };
    case 'stop':
      return { lane: 'Gateway', look: 'down', title: 'The gateway was stopped', details: '' };
    case 'killed':
      return { lane: 'Gateway', look: 'down', title: 'The gateway ended without a shutdown', details: '' };
    case 'set_aside':
      return { lane: 'Gateway', look: 'failed', title: 'The history was set aside', details: text('reason') };
  }
}

/** @type {ReadonlyMap<string, string>} */
const STEPS = new Map([
  ['rollout', 'Rollout'],
  ['replica', 'Rollout'],
  ['rollout_drain', 'Drain'],
  ['restart', 'Restart'],
  ['answer', 'Wait for the engine'],
  ['rollout_undrain', 'Undrain'],
  ['ramp', 'Ramp'],
  ['compare', 'Comparison'],
]);

/** @type {ReadonlyMap<string, string>} */
const HEALTH = new Map([
  ['replica_failing', 'was found failing'],
  ['replica_ok', 'is in order again'],
  ['replica_probation', 'is on probation'],
  ['replica_kept', 'fails, and was kept because no other is left'],
]);

/**
 * All steps of a rollout as one. It is over when its last step is that of the whole.
 * @param {readonly TimelineEvent[]} events the oldest first, at least one
 * @param {number} nowMs
 * @returns {Happening}
 */
function toRollout(events, nowMs) {
  const steps = events.map((event) => toHappening(event, event.until));
  const fromMs = Math.min(...steps.map((step) => step.fromMs));
  const toldMs = Math.max(...steps.map((step) => step.untilMs ?? nowMs));
  const last = events.toSorted((a, b) => a.number - b.number).at(-1);
  const isOver = last?.details.step === 'rollout' || nowMs - toldMs > ROLLOUT_SILENT_MS;
  const problem = events.find(({ details }) => !isGood(details));
  const replicas = new Set(events.map(({ subject }) => subject).filter((subject) => subject !== ''));
  const of = replicas.size === 1 ? [...replicas].join('') : counted(replicas.size, 'replica');
  const end = problem === undefined ? (isOver ? 'done' : 'under way') : toText(problem.details.outcome);
  const sentence = toText((problem ?? last)?.details.sentence);
  return {
    lane: 'Rollouts',
    look: problem === undefined ? 'rollout' : 'failed',
    fromMs,
    untilMs: isOver ? toldMs : null,
    title: `Rollout of ${of}`,
    details: sentence === '' ? end : `${end}: ${sentence}`,
    steps: steps.filter((_, at) => events[at]?.details.step !== 'rollout'),
  };
}

/**
 * Whether a step went well. If a comparison that decides nothing stops the rollout, the step around it says so, too.
 * @param {TimelineEvent['details']} details
 */
function isGood({ step, outcome }) {
  return outcome === 'ok' || outcome === 'good' || (step === 'compare' && outcome === 'undecided');
}

/**
 * @param {string} severity
 * @returns {'critical' | 'warning' | 'notice'}
 */
function toSeverity(severity) {
  return severity === 'critical' || severity === 'warning' ? severity : 'notice';
}

/**
 * Places what happened in lanes: a lane for each kind that there is.
 * @param {readonly Happening[]} happenings the oldest first
 * @param {Span} span
 * @returns {readonly Lane[]}
 */
export function toLanes(happenings, span) {
  return LANES.map((title) => ({
    title,
    rows: toRows(happenings.filter(({ lane }) => lane === title).map((happening) => toBand(happening, span))),
  })).filter(({ rows }) => rows.length > 0);
}

/**
 * @param {Happening} happening
 * @param {Span} span
 * @returns {Band}
 */
function toBand(happening, { fromMs, untilMs }) {
  const share = (/** @type {number} */ ms) => Math.min(Math.max((ms - fromMs) / (untilMs - fromMs), 0), 1);
  const left = Math.min(share(happening.fromMs), 1 - LEAST_WIDTH);
  const width = Math.max(share(happening.untilMs ?? untilMs) - left, LEAST_WIDTH);
  return { look: happening.look, left, width, happenings: [happening] };
}

/**
 * Each band in the first row in which it overlaps no other.
 * @param {readonly Band[]} bands by their beginning
 * @returns {readonly (readonly Band[])[]}
 */
function toRows(bands) {
  /** @type {Band[][]} */
  const rows = [];
  for (const band of bands) {
    const free = rows.find((row) => endOf(row.at(-1)) <= band.left);
    if (free !== undefined) free.push(band);
    else if (rows.length < MAX_ROWS) rows.push([band]);
    else {
      const row = rows.at(-1) ?? [];
      const other = row.pop();
      row.push(other === undefined ? band : join(other, band));
    }
  }
  return rows;
}

/** @param {Band | undefined} band */
function endOf(band) {
  // Shares are computed: what touches does not overlap.
  return band === undefined ? 0 : band.left + band.width - 1e-9;
}

/**
 * @param {Band} a
 * @param {Band} b
 * @returns {Band}
 */
function join(a, b) {
  const width = Math.max(a.left + a.width, b.left + b.width) - a.left;
  const look = BY_WEIGHT.find((each) => each === a.look || each === b.look) ?? a.look;
  return { look, left: a.left, width, happenings: [...a.happenings, ...b.happenings] };
}

/**
 * What a chart marks: bands of things that last, lines of those that were over at once. What goes on has no end. Notices
 * would hide the rest.
 * @param {readonly Happening[]} happenings
 * @returns {readonly (Span & { readonly look: Look })[]}
 */
export function toMarks(happenings) {
  return happenings
    .filter(({ look }) => look !== 'notice')
    .map(({ look, fromMs, untilMs }) => ({ look, fromMs, untilMs: untilMs ?? Number.POSITIVE_INFINITY }));
}

/**
 * All that a band says, in words.
 * @param {Band} band
 * @param {number} nowMs
 */
export function toLabel({ happenings }, nowMs) {
  const [first, second] = happenings;
  if (first === undefined) return '';
  if (second === undefined) return `${toSentence(first)}, ${toTimes(first, nowMs)}`;
  const all = { fromMs: first.fromMs, untilMs: toEnd(happenings) };
  return `${counted(happenings.length, 'event')}, ${toTimes(all, nowMs)}: ${happenings.map(toSentence).join('; ')}`;
}

/**
 * @param {Happening} happening
 * @returns {string}
 */
export function toSentence({ title, details }) {
  return details === '' ? title : `${title} (${details})`;
}

/** @param {readonly Happening[]} happenings */
function toEnd(happenings) {
  const ends = happenings.map(({ untilMs }) => untilMs);
  return ends.includes(null) ? null : Math.max(...ends.map(Number));
}

/**
 * From when to when, and how long.
 * @param {Pick<Happening, 'fromMs' | 'untilMs'>} span
 * @param {number} nowMs
 */
export function toTimes({ fromMs, untilMs }, nowMs) {
  const from = formatMoment(fromMs, nowMs);
  if (untilMs === null) return `since ${from}, for ${formatAgo(nowMs - fromMs)}`;
  if (untilMs === fromMs) return `at ${from}`;
  return `${from} to ${formatMoment(untilMs, nowMs)}, for ${formatAgo(untilMs - fromMs)}`;
}

/** @param {unknown} value */
function toText(value) {
  return typeof value === 'string' ? value : '';
}
