import { isObject, parseJson } from '#base/parsed';
import { type DrainState, isLogicalTimestamp, isRamp } from '#replicas/drain-state';
import type { BackgroundCount } from '#replicas/terms';
import type { ClientUse } from './client-use.ts';
import type { InflightReport } from './inflight-shares.ts';

/*
 * The two messages that each gateway of a fleet writes for the others: a snapshot and a heartbeat. Their format is a
 * contract between gateways of different versions. Members may be added. A gateway that cannot read a message knows
 * that its writer exists, but does not treat it as alive.
 */

/** What a gateway knows for longer. It writes the snapshot on every change; the store keeps it until the gateway is gone. */
export interface Snapshot {
  /** The gateway's id: a stamp, new for each process. */
  readonly id: string;
  /** The configured name. Two gateways may have the same one. */
  readonly name: string;
  /** Grows with every change of this snapshot. */
  readonly revision: number;
  /** The names of the other gateways it knows, by id. */
  readonly members: ReadonlyMap<string, string>;
  /** Ids of gateways that are gone for good: stopped, replaced, or forgotten. Sorted. */
  readonly removed: readonly string[];
  /** The latest known drain state by replica name, whether the gateway has applied it or not. */
  readonly drains: ReadonlyMap<string, DrainState>;
  /** A logical timestamp that each process in the gateway's state_dir has. Absent: an earlier version. */
  readonly home?: string;
  /** The names in `drains` that the gateway does not have: since when, in RFC 3339. Absent: none, or an earlier version. */
  readonly gone?: ReadonlyMap<string, string>;
  /** The names that it has forgotten: up to which version. Absent: none that another gateway may have. */
  readonly forgotten?: ReadonlyMap<string, string>;
  /** What gateways that have stopped followed, by their homes. Absent: nothing. */
  readonly left?: ReadonlyMap<string, LeftReport>;
}

/** The responses in the background that a gateway followed when it stopped. */
export interface LeftReport {
  /** A logical timestamp: when it stopped or came back. */
  readonly version: string;
  readonly name: string;
  /** By replica name. Empty: it is back. */
  readonly counts: ReadonlyMap<string, number>;
  /** In how many milliseconds they count no more. */
  readonly restMs: number;
}

/** The state of a gateway at one moment. It expires. */
export interface Heartbeat {
  readonly id: string;
  /** Starts at 1 and grows with every heartbeat of this process. */
  readonly number: number;
  /** The revision of the gateway's snapshot at that moment. */
  readonly revision: number;
  /** Acknowledgements: the number of the last heartbeat that it read from each other gateway. */
  readonly heard: ReadonlyMap<string, number>;
  /** The applied drains: the version by replica name. No request starts there while this heartbeat is valid. */
  readonly drained: ReadonlyMap<string, string>;
  /** Requests in flight by replica name, counted after those drains were applied. Zeros are left out. */
  readonly inflight: ReadonlyMap<string, number>;
  /** What replicas go on with after their answers, by name. Absent: nothing, or an earlier version. */
  readonly background?: ReadonlyMap<string, BackgroundCount>;
  /** What clients with limits have used of this gateway, by name. Absent: nothing of late, or an earlier version. */
  readonly used?: ReadonlyMap<string, ClientUse>;
  /** The clients with `max_inflight` that are of interest, by name. Absent: none, or an earlier version. */
  readonly running?: ReadonlyMap<string, InflightReport>;
  /** The replicas on a ramp, by name. Absent: none, or an earlier version. */
  readonly ramps?: ReadonlyMap<string, RampReport>;
  /** The version of the gateway. Absent: one that does not tell it. */
  readonly version?: string;
}

/** How far a ramp is on the gateway that reports it. Durations need no common clock. */
export interface RampReport {
  readonly elapsedMs: number;
  readonly durationMs: number;
}

/** Prints a snapshot as JSON. */
export function printSnapshot(snapshot: Snapshot): string {
  return JSON.stringify({
    ...snapshot,
    members: toMembers(snapshot.members),
    drains: toMembers(snapshot.drains, ({ drained, version, since, reason, rampMs }) => [
      ...[version, drained ? 1 : 0, since, reason],
      ...(rampMs === undefined ? [] : [rampMs]),
    ]),
    gone: toMembers(snapshot.gone),
    forgotten: toMembers(snapshot.forgotten),
    left: toMembers(snapshot.left, ({ version, name, counts, restMs }) => [
      ...[version, name, restMs],
      toMembers(counts),
    ]),
  });
}

/** Parses a snapshot; null if the text is not one. */
export function parseSnapshot(text: string): Snapshot | null {
  const value = parseObject(text);
  if (value === null) return null;
  const { id, name, revision } = value;
  const named = toMap(value.members, toText);
  const drains = toMap(value.drains, toDrain);
  if (!isLogicalTimestamp(id) || typeof name !== 'string' || !isCount(revision)) return null;
  if (named === null || drains === null || !Array.isArray(value.removed)) return null;
  const { home } = value;
  const gone = value.gone === undefined ? undefined : toMap(value.gone, toTime);
  const forgotten = value.forgotten === undefined ? undefined : toMap(value.forgotten, toStamp);
  const left = value.left === undefined ? undefined : toMap(value.left, toLeftReport);
  if (home !== undefined && !isLogicalTimestamp(home)) return null;
  if (gone === null || forgotten === null || left === null) return null;
  // Earlier versions took foreign fields for gateways and passed them on.
  const members = new Map([...named].filter(([member]) => isLogicalTimestamp(member)));
  const removed = value.removed.filter(isLogicalTimestamp);
  return {
    id,
    name,
    revision,
    members,
    removed,
    drains,
    ...(home === undefined ? {} : { home }),
    ...(gone === undefined ? {} : { gone }),
    ...(forgotten === undefined ? {} : { forgotten }),
    ...(left === undefined ? {} : { left }),
  };
}

/** Prints a heartbeat as JSON. */
export function printHeartbeat(heartbeat: Heartbeat): string {
  return JSON.stringify({
    ...heartbeat,
    heard: toMembers(heartbeat.heard),
    drained: toMembers(heartbeat.drained),
    inflight: toMembers(heartbeat.inflight),
    background: toMembers(heartbeat.background, ({ running, unknown }) => [running, unknown]),
    used: toMembers(heartbeat.used, ({ requests, tokens }) => [requests, tokens]),
    running: toMembers(heartbeat.running, ({ held, wanted }) => [held, wanted]),
    ramps: toMembers(heartbeat.ramps, ({ elapsedMs, durationMs }) => [Math.round(elapsedMs), durationMs]),
  });
}

/** Parses a heartbeat; null if the text is not one. */
export function parseHeartbeat(text: string): Heartbeat | null {
  const value = parseObject(text);
  if (value === null) return null;
  const { id, number, revision } = value;
  const heard = toMap(value.heard, toCount);
  const drained = toMap(value.drained, toStamp);
  const inflight = toMap(value.inflight, toCount);
  if (!isLogicalTimestamp(id) || !isCount(number) || !isCount(revision)) return null;
  if (heard === null || drained === null || inflight === null) return null;
  // A gateway of which it cannot be known what its replicas go on with is not alive.
  const background = value.background === undefined ? null : toMap(value.background, toBackground);
  if (value.background !== undefined && background === null) return null;
  const used = value.used === undefined ? null : toMap(value.used, toClientUse);
  const running = value.running === undefined ? null : toMap(value.running, toInflightReport);
  const ramps = value.ramps === undefined ? null : toMap(value.ramps, toRampReport);
  const version = toVersion(value.version);
  return {
    id,
    number,
    revision,
    heard,
    drained,
    inflight,
    ...(background === null ? {} : { background }),
    ...(used === null ? {} : { used }),
    ...(running === null ? {} : { running }),
    ...(ramps === null ? {} : { ramps }),
    ...(version === null ? {} : { version }),
  };
}

/** The members of an object with the entries of a map; undefined, which JSON leaves out, if there is none. */
function toMembers<T>(
  map: ReadonlyMap<string, T> | undefined,
  toValue: (value: T) => unknown = (value) => value,
): object | undefined {
  return map && Object.fromEntries([...map].map(([name, value]) => [name, toValue(value)]));
}

/** The items of a list; none if it is no list. */
function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function toLeftReport(value: unknown): LeftReport | null {
  const [version, name, restMs, counted] = itemsOf(value);
  const counts = toMap(counted, toCount);
  const isReport = isLogicalTimestamp(version) && typeof name === 'string' && isCount(restMs);
  return isReport && counts !== null ? { version, name, restMs, counts } : null;
}

function toBackground(value: unknown): BackgroundCount | null {
  const [running, unknown] = itemsOf(value);
  return isCount(running) && isCount(unknown) ? { running, unknown } : null;
}

function toRampReport(value: unknown): RampReport | null {
  const [elapsedMs, durationMs] = itemsOf(value);
  return isCount(elapsedMs) && isRamp(durationMs) ? { elapsedMs, durationMs } : null;
}

function toClientUse(value: unknown): ClientUse | null {
  const [requests, tokens] = itemsOf(value);
  const isUse = Number.isSafeInteger(requests) && Number.isSafeInteger(tokens);
  return isUse ? { requests: Number(requests), tokens: Number(tokens) } : null;
}

function toInflightReport(value: unknown): InflightReport | null {
  const [held, wanted] = itemsOf(value);
  return isCount(held) && isCount(wanted) ? { held, wanted } : null;
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  const value = parseJson(text);
  return isObject(value) ? value : null;
}

/** Null if `toKind` returns null for any value. */
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
  const [version, drained, since, reason, rampMs] = itemsOf(value);
  const isDrain =
    isLogicalTimestamp(version) &&
    (drained === 0 || drained === 1) &&
    (since === null || typeof since === 'string') &&
    (reason === null || typeof reason === 'string') &&
    (rampMs === undefined || isRamp(rampMs));
  const ramp = isRamp(rampMs) ? { rampMs } : {};
  return isDrain ? { drained: drained === 1, since, reason, version, ...ramp } : null;
}

/** What is shown to people: nothing that another program may have written there. */
const toVersion = (value: unknown) =>
  typeof value === 'string' && /^[\w.+-]{1,64}$/.test(value) ? value : null;
const toText = (value: unknown) => (typeof value === 'string' ? value : null);
const toTime = (value: unknown) =>
  typeof value === 'string' && !Number.isNaN(Date.parse(value)) ? value : null;
const toStamp = (value: unknown) => (isLogicalTimestamp(value) ? value : null);
const toCount = (value: unknown) => (isCount(value) ? value : null);

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
