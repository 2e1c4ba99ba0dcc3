import type { Drains } from '#replicas/drains';
import type { RampReport } from '../wire-format.ts';
import type { FleetState } from './fleet-state.ts';

/** The ramps of this gateway for its next heartbeat. An undrain with a ramp that is not applied yet is at its beginning. */
export function toRampReports(
  { drains, applied }: Pick<FleetState, 'drains' | 'applied'>,
  rampOf: Drains['rampOf'],
): ReadonlyMap<string, RampReport> {
  const reports = new Map<string, RampReport>();
  for (const [replica, { drained, rampMs, version }] of drains) {
    if (drained || rampMs === undefined) continue;
    const isApplied = applied.get(replica) === version;
    const report = isApplied ? rampOf(replica) : { elapsedMs: 0, durationMs: rampMs };
    if (report !== null) reports.set(replica, report);
  }
  return reports;
}

/**
 * The ramps that a gateway takes over when it joins: each as far as the gateway says that has it the furthest. Null for
 * a ramp of its own that no other gateway has any more; it was over while this one was away. If there is no other
 * gateway, nothing changes.
 */
export function rampsOnJoining(
  { drains, peers }: Pick<FleetState, 'drains' | 'peers'>,
  nowMs: number,
): ReadonlyMap<string, RampReport | null> {
  const heartbeats = [...peers.values()].flatMap(({ heartbeat, validUntilMs }) =>
    heartbeat !== null && nowMs < validUntilMs ? [heartbeat] : [],
  );
  const changes = new Map<string, RampReport | null>();
  if (heartbeats.length === 0) return changes;
  for (const [replica, { drained, rampMs }] of drains) {
    if (drained || rampMs === undefined) continue;
    const reports = heartbeats.flatMap(({ ramps }) => ramps?.get(replica) ?? []);
    changes.set(replica, reports.toSorted((a, b) => b.elapsedMs - a.elapsedMs)[0] ?? null);
  }
  return changes;
}
