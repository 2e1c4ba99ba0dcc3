/** @import { Replica } from './state.js' */

import { toErrorLevel } from '../traffic/levels.js';
import { SORTABLE, toHost } from './columns.js';
import { toStateKind, toUrgency, toWord } from './state.js';

/** Searches, groups and sorts replicas. Pure. */

/** @typedef {{ readonly column: string, readonly isDescending: boolean }} Sort */
/** How the replicas are shown. Without a sort, the most urgent are first, and so are their groups. */
/** @typedef {{ readonly search: string, readonly sort: Sort | null, readonly isFlat: boolean }} ReplicaView */
/** Replicas with the same set of models. The title of the only group of a flat list is empty. */
/** @typedef {{ readonly key: string, readonly title: string, readonly replicas: readonly Replica[] }} Group */

const MAX_NAMED = 3;

/**
 * The replicas to show, in groups.
 * @param {readonly Replica[]} replicas
 * @param {ReplicaView} view
 * @returns {readonly Group[]}
 */
export function toGroups(replicas, { search, sort, isFlat }) {
  const sorted = replicas.filter((replica) => isFound(replica, search)).toSorted(toComparison(sort));
  if (isFlat) return sorted.length === 0 ? [] : [{ key: '', title: '', replicas: sorted }];
  /** @type {Map<string, Replica[]>} */
  const groups = new Map();
  for (const replica of sorted) {
    const key = toGroupKey(replica);
    const members = groups.get(key);
    if (members === undefined) groups.set(key, [replica]);
    else members.push(replica);
  }
  const made = [...groups].map(([key, members]) => ({ key, title: toTitle(members[0]), replicas: members }));
  // A map keeps the order of insertion: with a sort, the group of the first replica is first.
  if (sort !== null) return made;
  /** @param {Group} group */
  const toGroupUrgency = ({ replicas: [first] }) => (first === undefined ? 0 : toReplicaUrgency(first));
  return made.toSorted((a, b) => toGroupUrgency(a) - toGroupUrgency(b) || compare(a.title, b.title));
}

/** The places among the states of replicas that serve and fail attempts: many, or some. */
const PLACES = {
  bad: toUrgency('failing') + 0.5,
  warn: toUrgency('serving') - 0.5,
  '': toUrgency('serving'),
};

/**
 * The place of a replica in the order of urgency. One that fails attempts comes before others that serve.
 * @param {Replica} replica
 */
function toReplicaUrgency(replica) {
  const kind = toStateKind(replica);
  const { errors, attempts } = replica.last_minute;
  return kind === 'serving' ? PLACES[toErrorLevel(errors, attempts)] : toUrgency(kind);
}

/**
 * Keeps replicas where they were, so that no row moves under a pointer. New ones come last.
 * @param {readonly Group[]} groups
 * @param {readonly Group[]} before
 * @returns {readonly Group[]}
 */
export function inOrderOf(groups, before) {
  /** @type {Map<string, number>} */
  const places = new Map();
  for (const { key, replicas } of before) {
    places.set(`g ${key}`, places.size);
    for (const { name } of replicas) places.set(`r ${name}`, places.size);
  }
  /** @param {string} key */
  const place = (key) => places.get(key) ?? Number.POSITIVE_INFINITY;
  /** @param {string} a @param {string} b */
  const byPlace = (a, b) => (place(a) === place(b) ? 0 : place(a) - place(b));
  return groups
    .map((group) => ({
      ...group,
      replicas: group.replicas.toSorted((a, b) => byPlace(`r ${a.name}`, `r ${b.name}`)),
    }))
    .toSorted((a, b) => byPlace(`g ${a.key}`, `g ${b.key}`));
}

/**
 * Whether all words of the search are in the replica's name, host, models or state.
 * @param {Replica} replica
 * @param {string} search
 */
function isFound(replica, search) {
  const words = search
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  if (words.length === 0) return true;
  const text = [replica.name, toHost(replica), toWord(toStateKind(replica)), ...(replica.models ?? [])]
    .join('\n')
    .toLowerCase();
  return words.every((word) => text.includes(word));
}

/**
 * @param {Sort | null} sort
 * @returns {(a: Replica, b: Replica) => number}
 */
function toComparison(sort) {
  const value = sort === null ? undefined : SORTABLE.get(sort.column)?.value;
  if (sort === null || value === undefined)
    return (a, b) => toReplicaUrgency(a) - toReplicaUrgency(b) || compare(a.name, b.name);
  return (a, b) => {
    const [left, right] = [value(a), value(b)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return (sort.isDescending ? compare(right, left) : compare(left, right)) || compare(a.name, b.name);
  };
}

const collator = new Intl.Collator('en', { numeric: true });

/**
 * @param {string | number} a
 * @param {string | number} b
 */
function compare(a, b) {
  return typeof a === 'number' && typeof b === 'number' ? a - b : collator.compare(String(a), String(b));
}

/** @param {Replica} replica */
function toGroupKey({ models }) {
  return models === null ? 'unknown' : JSON.stringify(models.toSorted());
}

/** @param {Replica | undefined} replica */
function toTitle(replica) {
  const models = replica?.models ?? null;
  if (models === null) return 'Models unknown';
  if (models.includes('*')) return 'Any model';
  if (models.length === 0) return 'No models';
  const named = models.toSorted().slice(0, MAX_NAMED).join(', ');
  return models.length > MAX_NAMED ? `${named} and ${models.length - MAX_NAMED} more` : named;
}
