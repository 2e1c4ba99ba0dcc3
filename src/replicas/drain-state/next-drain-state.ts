import { newLogicalTimestamp } from './logical-timestamp.ts';

/** Whether a replica is drained, since when, and why. */
export interface DrainState {
  readonly drained: boolean;
  /** When it was last drained or undrained, in RFC 3339; `null` if never. */
  readonly since: string | null;
  /** The reason given for the last drain or undrain; `null` if none. */
  readonly reason: string | null;
  /** A logical timestamp, greater with every change on any gateway; `''` if there was no change. */
  readonly version: string;
  /** Of an undrain with a ramp: how long its turns grow. Absent: it gets all of them at once. */
  readonly rampMs?: number;
  /** Since when the name has not been configured, and no source has found it: RFC 3339. Absent: it is there. */
  readonly goneSince?: string;
}

/** What a drain or undrain did. */
export interface DrainChange {
  readonly before: DrainState;
  readonly after: DrainState;
  /** Resolves once `after` is on disk. Rejects if it cannot be stored, so that a restart would forget it. */
  readonly stored: Promise<void>;
}

/** The state of a name that was never drained or undrained. */
export const NEVER_DRAINED: DrainState = { drained: false, since: null, reason: null, version: '' };

/** What a caller gives with a drain or an undrain. `at`: RFC 3339. */
export interface ChangeDetails {
  readonly reason: string | null;
  readonly at: string;
  /** With an undrain: how long the replica's turns grow. Absent or 0: it gets all of them at once. */
  readonly rampMs?: number | undefined;
  /** A logical timestamp from when it was called, if something had to come first. Absent: it is called now. */
  readonly version?: string | undefined;
}

/**
 * The state after `known`, which stays if it was called later. Otherwise it has a new version, because another gateway may
 * have changed the state unknown to this one. A state that is set again keeps its time, and its reason unless another one is
 * given.
 */
export function nextDrainState(
  known: DrainState,
  drained: boolean,
  { reason, at: since, rampMs = 0, version = newLogicalTimestamp(known.version) }: ChangeDetails,
): DrainState {
  if (version < known.version) return known;
  const { rampMs: knownMs = 0, goneSince: _, ...before } = known;
  // Only the undrain of a drained replica begins a ramp; a further one leaves it as long as it is, or ends it.
  const lastsMs = known.drained ? rampMs : knownMs;
  const ramp = drained || rampMs === 0 || lastsMs === 0 ? {} : { rampMs: lastsMs };
  if (drained !== before.drained) return { drained, reason, since, version, ...ramp };
  return { ...before, reason: reason ?? before.reason, version, ...ramp };
}

/** The longest ramp. */
export const MAX_RAMP_MS = 24 * 3_600_000;

/** Whether a value is the duration of a ramp, in milliseconds. */
export function isRamp(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0 && Number(value) <= MAX_RAMP_MS;
}
