/** @import { Overview } from '../../overview.ts' */
/** @import { View } from '../app/view.js' */
import { counted, formatAgo, formatMoment, toCapital, withLocalTimes } from '../elements/format.js';
import { NO_FILTER } from '../records/filters.js';

/** What the page says of a condition. It judges nothing: what is wrong is decided by the gateway. Pure. */

/** @typedef {Overview['conditions'][number]} Condition */
/** A condition as a button shows it. `word` says what the colour says. */
/** @typedef {{ readonly key: string, readonly severity: Condition['severity'], readonly word: string, readonly text: string }} Chip */
/** A piece of a text: code, or not. */
/** @typedef {{ readonly text: string, readonly isCode: boolean }} Piece */

/**
 * Where the page shows more of a condition: the id of a section, what to change in the view, and the replica whose row it
 * is about, if it is about one.
 * @typedef {{ readonly label: string, readonly section: string, readonly change: Partial<View>, readonly replica?: string }} Target
 */

/** @type {Readonly<Record<Condition['severity'], { readonly one: string, readonly many: string }>>} */
const SEVERITIES = {
  critical: { one: 'critical', many: 'critical' },
  warning: { one: 'warning', many: 'warnings' },
  notice: { one: 'notice', many: 'notices' },
};

/** The subject of conditions beyond those that the gateway names. */
const OTHER = '_OTHER';

/**
 * What tells a condition from all others.
 * @param {Condition} condition
 */
export function toKey({ id, subject }) {
  return `${id} ${subject}`;
}

/**
 * @param {Condition} condition
 * @returns {Chip}
 */
export function toChip(condition) {
  const { severity } = condition;
  return { key: toKey(condition), severity, word: toCapital(severity), text: toText(condition) };
}

/**
 * The conditions for a line with room for so many buttons, in their order. One more button stands for the rest.
 * @param {readonly Condition[]} conditions
 * @param {number} maxShown
 * @returns {{ readonly shown: readonly Condition[], readonly others: number }}
 */
export function toLine(conditions, maxShown) {
  const shown = conditions.length > maxShown ? conditions.slice(0, maxShown - 1) : conditions;
  return { shown, others: conditions.length - shown.length };
}

/**
 * How many conditions there are of each severity, in words.
 * @param {readonly Condition[]} conditions
 */
export function toSummary(conditions) {
  return Object.entries(SEVERITIES)
    .map(([severity, words]) => ({
      ...words,
      count: conditions.filter((condition) => condition.severity === severity).length,
    }))
    .filter(({ count }) => count > 0)
    .map(({ count, one, many }) => counted(count, one, many))
    .join(', ');
}

/**
 * The sentence as a text of its own. A name stays as it is.
 * @param {Condition} condition
 */
export function toText({ sentence, subject }) {
  return subject !== '' && sentence.startsWith(subject) ? sentence : toCapital(sentence);
}

/**
 * Since when, and for how long.
 * @param {Condition} condition
 * @param {string} now RFC 3339
 */
export function toSince({ since }, now) {
  return `since ${formatMoment(since, now)}, for ${formatAgo(Date.parse(now) - Date.parse(since))}`;
}

/**
 * The figures with their names. Those without a value are left out. A text that goes on a sentence loses its comma or colon.
 * @param {Condition} condition
 * @returns {readonly (readonly [name: string, text: string])[]}
 */
export function toFigures({ figure_texts }) {
  return Object.entries(figure_texts)
    .filter(([, text]) => text !== '')
    .map(([name, text]) => [
      toCapital(name.replaceAll('_', ' ')),
      withLocalTimes(text.replace(/^[,:] /, '')),
    ]);
}

/**
 * Finds the code spans of a text in Markdown.
 * @param {string} markdown
 * @returns {readonly Piece[]}
 */
export function toPieces(markdown) {
  return markdown
    .split(/`([^`]+)`/)
    .map((text, at) => ({ text, isCode: at % 2 === 1 }))
    .filter(({ text }) => text !== '');
}

/** @type {Readonly<Record<Exclude<Condition['place'], 'none'>, Target>>} */
const PLACES = {
  replicas: { label: 'Show the replicas', section: 'replicas-section', change: {} },
  reasons: { label: 'Show the failure reasons', section: 'reasons-section', change: {} },
  records: {
    label: 'Show the requests that got 4xx',
    section: 'records-section',
    change: { list: 'failures', filter: { ...NO_FILTER, status: 'client_error' } },
  },
  export: { label: 'Show the export', section: 'export-section', change: {} },
  saturation: { label: 'Show the capacity', section: 'saturation-section', change: {} },
  // Gateways that share drains have no part of their own: what they do is seen at the replicas.
  fleet: { label: 'Show the replicas', section: 'replicas-section', change: {} },
};

/**
 * Where the page shows more of it, the best first.
 * @param {Condition} condition
 * @returns {readonly Target[]}
 */
export function toTargets({ subject_kind, subject, place }) {
  const section = place === 'none' ? [] : [PLACES[place]];
  const isNamed = subject !== '' && subject !== OTHER;
  const toReplica = { ...PLACES.replicas, label: 'Show the replica', replica: subject };
  if (!isNamed) return section;
  switch (subject_kind) {
    case 'replica':
    // A drain that has not reached every gateway, and a rollout: what they are about is a replica.
    case 'fleet':
    case 'rollout':
      return [toReplica];
    case 'model':
      // It stands for the models without a replica of their own: no request and no replica has this name.
      if (subject === '*') return section;
      return [
        { ...PLACES.replicas, label: 'Show its replicas', change: toSearch(subject) },
        toRequests({ model: subject }, place),
      ];
    case 'tenant':
      return [toRequests({ tenant: subject }, place)];
    default:
      return section;
  }
}

/**
 * @param {{ readonly model?: string, readonly tenant?: string }} filter
 * @param {Condition['place']} place
 * @returns {Target}
 */
function toRequests(filter, place) {
  return {
    label: 'Show its requests',
    section: 'records-section',
    change: { list: place === 'records' ? 'failures' : 'latest', filter: { ...NO_FILTER, ...filter } },
  };
}

/**
 * @param {string} search
 * @returns {Partial<View>}
 */
function toSearch(search) {
  return { replicas: { search, sort: null, isFlat: false } };
}
