import type { Heartbeat, LeftReport, Snapshot } from '../wire-format.ts';

/** The responses in the background that a gateway followed when it stopped. Nobody follows them until it is back. */
export interface LeftWork {
  /** A logical timestamp: when it stopped or came back. Of two from one home the later holds. */
  readonly version: string;
  /** The name of the gateway. */
  readonly name: string;
  /** By replica name. Empty: the gateway is back, and counts them itself. */
  readonly counts: ReadonlyMap<string, number>;
  /** When all of them are older than `limits.background`, on this gateway's monotonic clock. */
  readonly untilMs: number;
}

/** By the homes of the gateways. */
export type LeftByHome = ReadonlyMap<string, LeftWork>;

/** Of its state, what a gateway merges reports with. */
interface Holder {
  readonly left: LeftByHome;
  readonly home: string;
  readonly id: string;
  readonly name: string;
}

/**
 * Reports with less time left are not taken over, and count for so much longer instead. Otherwise two gateways would
 * teach each other again and again what the other has just dropped.
 */
export const LEAST_REST_MS = 10_000;

/** How many responses a gateway followed, by replica name. */
export function toCounts(background: NonNullable<Heartbeat['background']>): LeftWork['counts'] {
  return new Map([...background].map(([replica, { running, unknown }]) => [replica, running + unknown]));
}

/** The reports for a snapshot. The durations need no common clock, and grow old: a reader counts a bit too long. */
export function toLeftReports(left: LeftByHome, nowMs: number): ReadonlyMap<string, LeftReport> {
  const toReport = ({ untilMs, ...work }: LeftWork): LeftReport => ({
    ...work,
    restMs: Math.max(0, Math.round(untilMs - nowMs)),
  });
  return new Map([...left].map(([home, work]) => [home, toReport(work)]));
}

/** Adds what snapshots tell. What an earlier process in this gateway's state_dir has left, this one goes on with. */
export function mergeLeft(
  { left, home, id, name }: Holder,
  snapshots: readonly Snapshot[],
  nowMs: number,
): LeftByHome {
  const merged = new Map(left);
  for (const [from, { restMs, ...report }] of snapshots.flatMap(({ left: theirs = [] }) => [...theirs])) {
    const knownVersion = merged.get(from)?.version ?? '';
    if (restMs < LEAST_REST_MS || report.version <= knownVersion) continue;
    const isOwn = from === home && report.version < id;
    const work = isOwn ? { version: id, name, counts: new Map<string, number>() } : report;
    if (work.version > knownVersion) merged.set(from, { ...work, untilMs: nowMs + restMs });
  }
  return [...merged].every(([from, work]) => left.get(from) === work) ? left : merged;
}

/** Without what is over. */
export function pruneLeft(left: LeftByHome, nowMs: number): LeftByHome {
  const isOpen = ([, { untilMs }]: readonly [string, LeftWork]) => nowMs < untilMs;
  return [...left].every(isOpen) ? left : new Map([...left].filter(isOpen));
}

/** How many responses on a replica nobody follows at the moment. */
export function leftOn(left: LeftByHome, replica: string, nowMs: number): number {
  let count = 0;
  for (const { counts, untilMs } of left.values()) if (nowMs < untilMs) count += counts.get(replica) ?? 0;
  return count;
}
