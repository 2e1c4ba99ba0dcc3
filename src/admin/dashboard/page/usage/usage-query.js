/** @import { UsageJson } from '../../../routes/history/usage.ts' */
import { formatCount, formatMoment, withLocalTimes } from '../elements/format.js';

/** What the part about usage asks the history, and what it says of the answer. Pure. */

/** @typedef {UsageJson['by'][number]} Dimension */
/** @typedef {'today' | 'yesterday' | '1d' | '7d' | '30d' | 'month' | 'last_month' | 'days'} SpanName */
/** @typedef {'' | '1h' | '1d'} Step */

/**
 * What the user wants to see. `and`: a second name of each row. `from` and `to`: the days of the span `days`, both included,
 * as `2026-01-31`. `of`: only requests whose name of this kind is `named`.
 * @typedef {object} UsageView
 * @property {Dimension} by
 * @property {Dimension | null} and
 * @property {SpanName} span
 * @property {string} from
 * @property {string} to
 * @property {Step} step
 * @property {Dimension | null} of
 * @property {string} named
 */

/** @type {readonly (readonly [Dimension, title: string])[]} */
export const DIMENSIONS = [
  ['tenant', 'Tenant'],
  ['client', 'Client'],
  ['model', 'Model'],
  ['replica', 'Replica'],
  ['endpoint', 'Endpoint'],
];

/** @type {readonly (readonly [SpanName, title: string])[]} */
export const SPANS = [
  ['today', 'Today'],
  ['yesterday', 'Yesterday'],
  ['1d', 'The last 24 hours'],
  ['7d', 'The last 7 days'],
  ['30d', 'The last 30 days'],
  ['month', 'This month'],
  ['last_month', 'Last month'],
  ['days', 'These days'],
];

/** @type {readonly (readonly [Step, title: string])[]} */
export const STEPS = [
  ['', 'In one sum'],
  ['1d', 'By day'],
  ['1h', 'By hour'],
];

/** @type {UsageView} */
export const START_USAGE = {
  by: 'tenant',
  and: null,
  span: 'today',
  from: '',
  to: '',
  step: '',
  of: null,
  named: '',
};

/** A table of more rows is of no use to anybody. The rest is summed in one row. */
const LIMIT = '1000';
const DAY = /^\d{4}-\d\d-\d\d$/;

/**
 * The parameters of GET /admin/usage.
 * @param {UsageView} view
 * @param {{ readonly nowMs: number, readonly timeZone: string }} here
 * @returns {Readonly<Record<string, string>>}
 */
export function toQuery({ by, and, step, of, named, ...span }, { nowMs, timeZone }) {
  return {
    ...toSpan(span, toDay(nowMs, timeZone), step === '1d'),
    by: and === null || and === by ? by : `${by},${and}`,
    ...(step === '' ? {} : { step }),
    ...(of === null || named === '' ? {} : { [of]: named }),
    time_zone: timeZone,
    limit: LIMIT,
  };
}

/**
 * @param {Pick<UsageView, 'span' | 'from' | 'to'>} span
 * @param {string} today
 * @param {boolean} isByDay whether it is divided into days, which then are those of the calendar
 * @returns {Readonly<Record<string, string>>}
 */
function toSpan({ span, from, to }, today, isByDay) {
  const month = `${today.slice(0, 7)}-01`;
  switch (span) {
    case 'yesterday':
      return { since: 'yesterday', until: 'today' };
    case 'month':
      return { since: month };
    case 'last_month':
      return { since: addMonths(month, -1), until: month };
    case 'days': {
      if (!DAY.test(from) && !DAY.test(to)) return { since: 'today' };
      const [first, last] = [DAY.test(from) ? from : to, DAY.test(to) ? to : from].toSorted();
      const end = addDays(last ?? today, 1);
      return { since: first ?? today, ...(end > today ? {} : { until: end }) };
    }
    case '7d':
    case '30d':
      return { since: isByDay ? addDays(today, 1 - Number.parseInt(span, 10)) : span };
    default:
      return { since: span };
  }
}

/**
 * The day in a time zone, as `2026-01-31`.
 * @param {number} epochMs
 * @param {string} timeZone
 */
export function toDay(epochMs, timeZone) {
  // The dates of Sweden are those of ISO 8601.
  return new Intl.DateTimeFormat('sv-SE', {
    timeZone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  }).format(epochMs);
}

/** @param {string} day @param {number} count */
function addDays(day, count) {
  return new Date(Date.parse(day) + count * 86_400_000).toISOString().slice(0, 10);
}

/** @param {string} firstOfMonth @param {number} count */
function addMonths(firstOfMonth, count) {
  const date = new Date(firstOfMonth);
  date.setUTCMonth(date.getUTCMonth() + count);
  return date.toISOString().slice(0, 10);
}

/**
 * The view without what a press on a name asks for: only this name, by what is left to tell apart.
 * @param {UsageView} view
 * @param {Dimension} of
 * @param {string} named
 * @returns {UsageView}
 */
export function only(view, of, named) {
  return { ...view, of, named, by: of === 'model' ? 'tenant' : 'model', and: null };
}

/**
 * From when to when, in which zone, and how it was rounded.
 * @param {Pick<UsageJson, 'since' | 'until' | 'time_zone' | 'resolution'>} usage
 */
export function toSpanText({ since, until, time_zone, resolution }) {
  return `${toMoment(since, time_zone)} to ${toMoment(until, time_zone)} (${time_zone}), by whole ${resolution}s`;
}

/**
 * A minute in a time zone.
 * @param {string} time RFC 3339
 * @param {string} timeZone
 */
export function toMoment(time, timeZone) {
  return new Intl.DateTimeFormat('en', {
    timeZone,
    year: 'numeric',
    month: 'short',
    day: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
  }).format(new Date(time));
}

/**
 * When a step begins, in a time zone.
 * @param {string} time RFC 3339
 * @param {string} timeZone
 * @param {Step} step
 */
export function toStepText(time, timeZone, step) {
  if (step !== '1d') return toMoment(time, timeZone);
  const day = new Intl.DateTimeFormat('en', { timeZone, weekday: 'short', month: 'short', day: 'numeric' });
  return day.format(new Date(time));
}

/** @type {Readonly<Record<UsageJson['gaps'][number]['reason'], string>>} */
const GAP_REASONS = {
  behind: 'the disk was full, read-only or too slow',
  unencodable: 'their records could not be written',
  killed: 'the gateway ended without a shutdown, so at most its last second is missing',
  thread_ended: 'the history failed',
  lost: 'a worker died with them, or could not hand them over',
  off: 'the history was off',
  waiting: 'they cannot be written now, and are counted as soon as they can',
  damaged: 'their sums in the file are damaged',
};

/** A list names no more. */
const MAX_GAPS = 5;

/**
 * What to know of the figures: why there are none, what is missing.
 * @param {Pick<UsageJson, 'rows' | 'note' | 'gaps' | 'until'>} usage
 * @param {Pick<UsageView, 'of' | 'named'>} view
 * @returns {readonly string[]}
 */
export function toNotes({ rows, note, gaps, until }, { of, named }) {
  const which = of === null || named === '' ? 'No' : 'No such';
  const more = gaps.length > MAX_GAPS ? [`${formatCount(gaps.length - MAX_GAPS)} more gaps are older.`] : [];
  return [
    ...(rows.length === 0 ? [`${which} request arrived in this span.`] : []),
    ...(note === null ? [] : [withLocalTimes(note)]),
    ...gaps.slice(0, MAX_GAPS).map((gap) => toGapText(gap, until)),
    ...more,
  ];
}

/**
 * @param {UsageJson['gaps'][number]} gap
 * @param {string} until
 */
function toGapText({ from, until: end, records, reason }, until) {
  const missing = records === null ? 'Some requests' : formatCount(records);
  const times = `${formatMoment(from, until)} to ${formatMoment(end, until)}`;
  const are =
    records === null ? 'may be missing' : records === 1 ? 'request is missing' : 'requests are missing';
  return `${missing} ${are}, ${times}: ${GAP_REASONS[reason]}.`;
}

/**
 * From when on the gateway knows how much.
 * @param {Pick<UsageJson, 'kept' | 'time_zone'>} usage
 */
export function toKeptText({ kept, time_zone }) {
  const [minutes, hours] = [kept.minutes_since, kept.hours_since].map((time) => toMoment(time, time_zone));
  return minutes === hours
    ? `This gateway has sums since ${hours}.`
    : `This gateway has sums by hour since ${hours}, by minute since ${minutes}.`;
}
