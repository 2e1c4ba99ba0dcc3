import { z } from 'zod';
import { toShownName } from '#otel/encode/shown-name.ts';
import type { ExportStats } from '#otel/queue/export-stats.ts';
import type { Drains } from '../replicas/control/drains.ts';
import type { RegisteredReplica } from '../replicas/control/registry.ts';
import { REACHABILITIES } from '../replicas/reachability.ts';
import type { FleetControl } from './fleet-control.ts';
import { toStanding } from './standing.ts';

const count = () => z.int().min(0);

/** A replica as the admin API shows it. */
export const replicaSchema = z
  .object({
    name: z.string(),
    url: z.string().describe('Without credentials.'),
    host: z.string(),
    gpu_model: z.string().nullable(),
    gpu_count: count().nullable(),
    drained: z.boolean(),
    inflight: count().describe('Requests in flight on it; in a fleet, those of all gateways.'),
    max_inflight: count().nullable().describe('Requests in flight on it, at most; null: no limit.'),
    health: z
      .enum(['ok', 'failing'])
      .nullable()
      .describe('A failing one is tried last. Null while it is drained, and if health is off.'),
    health_since: z.iso.datetime().nullable().describe('Since when; null if it never was otherwise.'),
    reachability: z
      .enum(REACHABILITIES)
      .describe(
        'Whether it answers, as the last request or probe has shown; `loading`: it says that it loads its model. ' +
          '`unknown` while it is drained, and until somebody has asked.',
      ),
    models: z
      .array(z.string())
      .readonly()
      .nullable()
      .describe('Null while the list is not known; `["*"]`: it serves any name.'),
    engine: z.string(),
    since: z.iso.datetime().nullable().describe('The last drain or undrain; null if there was none.'),
    reason: z.string().nullable().describe('Why it was drained or undrained, as the caller gave it.'),
    safe_to_stop: z
      .boolean()
      .nullable()
      .describe('Drained, and nothing in flight; null while that cannot be known.'),
    unconfirmed: z
      .array(z.string())
      .readonly()
      .optional()
      .describe('In a fleet: the gateways of which it is not known that they go by its drain.'),
    removing: z
      .boolean()
      .describe('It is not configured any more: it finishes what it has in flight, and then it is gone.'),
  })
  .meta({ id: 'Replica' });

/** A replica that is not there now, and whose drain is remembered by its name. */
export const absentReplicaSchema = z
  .object({
    name: z.string(),
    drained: z.boolean(),
    inflight: count().describe('Those that it still had when it went, in this gateway.'),
    since: z.iso.datetime().nullable(),
    reason: z.string().nullable(),
    safe_to_stop: z.null(),
    absent: z.literal(true),
  })
  .meta({ id: 'AbsentReplica' });

/** A replica in the form of `replicaSchema`. */
export type ReplicaView = z.output<typeof replicaSchema>;

/** Converts a replica to its view; `fleet`: null if this gateway is alone. */
export function toReplicaView(replica: RegisteredReplica, fleet: FleetControl | null): ReplicaView {
  const { config, drain, health } = replica;
  const { inflight, isSafeToStop, unconfirmed } = toStanding(replica, fleet);
  return {
    name: config.name,
    url: config.url,
    host: config.host,
    gpu_model: config.gpuModel,
    gpu_count: config.gpuCount,
    drained: drain.drained,
    inflight,
    max_inflight: config.maxInflight,
    health: health?.state ?? null,
    health_since: health?.since ?? null,
    reachability: replica.reachability,
    models: replica.models?.map((model) => toShownName(model)) ?? null,
    engine: replica.engine,
    since: drain.since,
    reason: drain.reason,
    safe_to_stop: isSafeToStop,
    ...(unconfirmed === null ? {} : { unconfirmed }),
    removing: replica.isRemoving,
  };
}

/** Converts what is remembered of a name to its view; `inflight`: what it still has in flight here. */
export function toAbsentReplicaView(
  name: string,
  inflight: number,
  drains: Drains,
): z.output<typeof absentReplicaSchema> {
  const { drained, since, reason } = drains.stateOf(name);
  return { name, drained, inflight, since, reason, safe_to_stop: null, absent: true };
}

/** How many requests wait for a replica, in this gateway. */
export const waitingSchema = count().describe(
  'Requests that wait because all replicas of their model are at max_inflight.',
);

/** The export counters as the admin API shows them: those of `ExportStats`, which says what they count. */
export const statsSchema = z
  .object({
    exported: count().describe('Records the collector (or the file) has taken.'),
    dropped: count().describe('Records dropped because the queue was full.'),
    queued: count().describe('Records waiting in the queue.'),
    failed_calls: count().describe('Export calls that failed: each attempt.'),
    recorded: count().describe('Records whose request has ended.'),
    rejected: count().describe('Records the collector refused for good.'),
    restored: count().describe('Records of an earlier run that were read back into the queue.'),
    spooled: count().describe('Records put aside at shutdown, for the next start.'),
    unreadable: count().describe('Lines of the spool that were no record any more; not in the sum.'),
    lost: count().describe('Records of a worker that died before they ended.'),
  })
  .meta({ id: 'Stats' });

/** Converts the export counters to the form of `statsSchema`. */
export function toStatsView(stats: ExportStats): z.output<typeof statsSchema> {
  return {
    exported: stats.exported,
    dropped: stats.dropped,
    queued: stats.queued,
    failed_calls: stats.failedCalls,
    recorded: stats.recorded,
    rejected: stats.rejected,
    restored: stats.restored,
    spooled: stats.spooled,
    unreadable: stats.unreadable,
    lost: stats.lost,
  };
}
