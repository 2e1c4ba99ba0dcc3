import type { DrainState } from '../replicas/control/drains.ts';
import { isLogicalTimestamp } from '../replicas/control/logical-timestamp.ts';

/*
 * The two sheets that each gateway of a fleet writes for the others to read. Their format is a contract between
 * gateways of different versions: members may be added; whoever cannot read a sheet knows of its writer that it is
 * there, and does not believe it.
 */

/** What a gateway remembers: written when it changes, and kept until its writer is gone for good. */
export interface Ledger {
  /** The gateway's id: a stamp, another one for each process. */
  readonly id: string;
  /** What people call it. Two gateways may have the same name. */
  readonly name: string;
  /** Grows with every change of this ledger. */
  readonly revision: number;
  /** The names of the other gateways it knows, by id. */
  readonly members: ReadonlyMap<string, string>;
  /** Ids of gateways that are gone for good: stopped, replaced, or forgotten. Sorted. */
  readonly removed: readonly string[];
  /** The last drain state it knows of each name of a replica, in force with it or not yet. */
  readonly drains: ReadonlyMap<string, DrainState>;
}

/** How a gateway stands at one moment. It expires. */
export interface Beat {
  readonly id: string;
  /** Grows with every beat of this process, from 1. */
  readonly number: number;
  /** The revision of its ledger at that moment. */
  readonly revision: number;
  /** The number of the last beat it had read of each other gateway. */
  readonly heard: ReadonlyMap<string, number>;
  /** The drains in force, by the replica's name: the version of each. Nothing begins there while this is believed. */
  readonly drained: ReadonlyMap<string, string>;
  /** Its requests in flight by the replica's name, counted after those drains were in force; zeros are left out. */
  readonly inflight: ReadonlyMap<string, number>;
}

/** Writes a ledger as JSON. */
export function printLedger(ledger: Ledger): string {
  const drains = [...ledger.drains].map(([name, { drained, version, since, reason }]) => [
    name,
    [version, drained ? 1 : 0, since, reason],
  ]);
  return JSON.stringify({
    ...ledger,
    members: Object.fromEntries(ledger.members),
    drains: Object.fromEntries(drains),
  });
}

/** Reads what `printLedger` wrote; null if it is something else. */
export function parseLedger(text: string): Ledger | null {
  const value = parseObject(text);
  if (value === null) return null;
  const { id, name, revision } = value;
  const named = toMap(value.members, toText);
  const drains = toMap(value.drains, toDrain);
  if (!isLogicalTimestamp(id) || typeof name !== 'string' || !isCount(revision)) return null;
  if (named === null || drains === null || !Array.isArray(value.removed)) return null;
  // Earlier versions took whatever stood beside the gateways for one of them, and passed it on.
  const members = new Map([...named].filter(([member]) => isLogicalTimestamp(member)));
  const removed = value.removed.filter(isLogicalTimestamp);
  return { id, name, revision, members, removed, drains };
}

/** Writes a beat as JSON. */
export function printBeat(beat: Beat): string {
  return JSON.stringify({
    ...beat,
    heard: Object.fromEntries(beat.heard),
    drained: Object.fromEntries(beat.drained),
    inflight: Object.fromEntries(beat.inflight),
  });
}

/** Reads what `printBeat` wrote; null if it is something else. */
export function parseBeat(text: string): Beat | null {
  const value = parseObject(text);
  if (value === null) return null;
  const { id, number, revision } = value;
  const heard = toMap(value.heard, toCount);
  const drained = toMap(value.drained, toStamp);
  const inflight = toMap(value.inflight, toCount);
  if (!isLogicalTimestamp(id) || !isCount(number) || !isCount(revision)) return null;
  if (heard === null || drained === null || inflight === null) return null;
  return { id, number, revision, heard, drained, inflight };
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** Null if one of its values is not of the kind. */
function toMap<T>(value: unknown, toKind: (value: unknown) => T | null): ReadonlyMap<string, T> | null {
  if (!isObject(value)) return null;
  const map = new Map<string, T>();
  for (const [key, member] of Object.entries(value)) {
    const known = toKind(member);
    if (known === null) return null;
    map.set(key, known);
  }
  return map;
}

function toDrain(value: unknown): DrainState | null {
  if (!Array.isArray(value)) return null;
  const [version, drained, since, reason] = value;
  const isDrain =
    isLogicalTimestamp(version) &&
    (drained === 0 || drained === 1) &&
    (since === null || typeof since === 'string') &&
    (reason === null || typeof reason === 'string');
  return isDrain ? { drained: drained === 1, since, reason, version } : null;
}

const toText = (value: unknown) => (typeof value === 'string' ? value : null);
const toStamp = (value: unknown) => (isLogicalTimestamp(value) ? value : null);
const toCount = (value: unknown) => (isCount(value) ? value : null);

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
