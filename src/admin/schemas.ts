import { z } from 'zod';
import { toShownName } from '#otel/base';
import type { ExportStats } from '#otel/queue';
import type { Drains } from '#replicas/drains';
import { HEALTH_JUDGES } from '#replicas/health-state';
import { REACHABILITIES, REACHABILITY_REASONS } from '#replicas/reachability';
import type { RegisteredReplica } from '#replicas/registry';
import { type BackgroundCount, NO_BACKGROUND } from '#replicas/terms';
import type { FleetControl } from './admin-collaborators.ts';
import { roundTo3 } from './shown-record.ts';

const count = () => z.int().min(0);

/** A replica in the admin API. */
export const replicaSchema = z
  .object({
    name: z.string(),
    url: z.string().describe('Without credentials.'),
    host: z.string(),
    gpu_model: z.string().nullable(),
    gpu_count: count().nullable(),
    drained: z.boolean(),
    shadow: z
      .object({
        requests: z
          .number()
          .min(0)
          .max(1)
          .nullable()
          .describe('The share of requests that are copied to it; null: as `shadow.requests` says.'),
        since: z.iso.datetime().nullable().describe('Null if the configuration makes it a shadow.'),
        until: z.iso.datetime().nullable().describe('When it ends by itself; null if it does not.'),
      })
      .nullable()
      .describe('A shadow gets copies of live requests, and no client gets its answers. Null: it serves.'),
    inflight: count().describe('Requests in flight on the replica. In a fleet: the sum over all gateways.'),
    background: count().describe(
      'Responses with `background` that the replica has answered and not finished, as far as is known. In a fleet: the sum over all gateways.',
    ),
    background_unknown: count().describe(
      'Those of `background` of which it is not known whether the replica still goes on with them.',
    ),
    silent_streams: z
      .object({
        count: count().describe(
          'Streams that have been without a byte for longer than like streams of their model make likely, at least five seconds.',
        ),
        running: count().describe('The streams that run, silent or not.'),
        oldest_ms: count()
          .nullable()
          .describe('For how long nothing has come on the one that is silent for longest; null if none is.'),
      })
      .describe(
        'The streams of this gateway on the replica, before and after their first byte, as they were at most a second ago.',
      ),
    max_inflight: count()
      .nullable()
      .describe('The most requests in flight on the replica; null if there is no limit.'),
    health: z
      .enum(['ok', 'failing'])
      .nullable()
      .describe(
        'A failing replica is tried last. Null while the replica is drained, and if health checks are off.',
      ),
    health_reasons: z
      .array(z.enum(HEALTH_JUDGES))
      .readonly()
      .describe(
        'What shows that a failing replica fails; otherwise empty. `connections`: requests cannot connect to it. `probes`: ' +
          'it does not answer probes. `frozen`: it, or more of its streams than of those of its peers, is silent. `errors`: it fails more requests than ' +
          'its peers. `slow`: it is slower than they are.',
      ),
    health_since: z.iso.datetime().nullable().describe('When `health` last changed; null if it never did.'),
    reachability: z
      .enum(REACHABILITIES)
      .describe(
        'Whether the replica answers, according to the last request or probe. `loading`: it reports that it is loading ' +
          'its model. `unknown` while it is drained, and before the first request or probe.',
      ),
    reachability_since: z.iso
      .datetime()
      .nullable()
      .describe('When `reachability` last changed; null while it is `unknown`.'),
    reachability_reason: z
      .enum(REACHABILITY_REASONS)
      .nullable()
      .describe(
        'Why the replica is unreachable or loading; otherwise null. `no_answer`: it accepted the connection and did not ' +
          'answer in time. `not_an_engine`: it answers, but `/v1/models` is not a list of models, and it has not served ' +
          'a request yet. `engine_failed`: it answered a probe with 5xx.',
      ),
    models: z
      .array(z.string())
      .readonly()
      .nullable()
      .describe('Null while the list is not known. `["*"]` if the replica serves any name.'),
    engine: z
      .string()
      .describe('`unknown` if it is not configured and the replica has not listed its models yet.'),
    since: z.iso
      .datetime()
      .nullable()
      .describe('When it was last drained or undrained; null if it never was.'),
    reason: z.string().nullable().describe('The reason that the caller gave for the drain or undrain.'),
    safe_to_stop: z
      .boolean()
      .nullable()
      .describe(
        'True if the replica is drained, has nothing in flight and goes on with nothing in the background; null while that cannot be known.',
      ),
    unconfirmed: z
      .array(z.string())
      .readonly()
      .optional()
      .describe('In a fleet: the gateways that have not confirmed the drain.'),
    ramp: z
      .object({
        share: z.number().min(0).max(1).describe('Of an even share of the turns.'),
        elapsed_ms: count(),
        duration_ms: count(),
      })
      .nullable()
      .describe(
        'While the share of turns grows, after an undrain with a ramp or on probation: how far it is on ' +
          'this gateway. Otherwise null.',
      ),
    removing: z
      .boolean()
      .describe(
        'Whether the replica is no longer configured. It is removed when its requests in flight have ended.',
      ),
  })
  .meta({ id: 'Replica' });

/** A replica that is not configured now, whose drain state is kept by its name. */
export const absentReplicaSchema = z
  .object({
    name: z.string(),
    drained: z.boolean(),
    inflight: count().describe(
      'Requests in flight that it still has: on this gateway, or after a drain in a fleet on all gateways.',
    ),
    since: z.iso.datetime().nullable(),
    reason: z.string().nullable(),
    safe_to_stop: z.boolean().nullable().describe('In a fleet as of a replica. Null: it is not known.'),
    absent: z.literal(true),
  })
  .meta({ id: 'AbsentReplica' });

/** A replica in the shape of `replicaSchema`. */
export type ReplicaJson = z.output<typeof replicaSchema>;

/** Converts a replica to JSON. `fleet` is null if this gateway shares its drains with no other. */
export function toReplicaJson(replica: RegisteredReplica, fleet: FleetControl | null): ReplicaJson {
  const { config, drain, health, reachability } = replica;
  const { inflight, background, isSafeToStop, unconfirmed } = toDrainStatus(replica, fleet);
  return {
    name: config.name,
    url: config.url,
    host: config.host,
    gpu_model: config.gpuModel,
    gpu_count: config.gpuCount,
    drained: drain.drained,
    shadow: toShadowJson(replica),
    inflight,
    background: background.running + background.unknown,
    background_unknown: background.unknown,
    silent_streams: toSilentJson(replica),
    max_inflight: config.maxInflight,
    health: health?.state ?? null,
    health_reasons: health?.failingBy ?? [],
    health_since: health?.since ?? null,
    reachability: reachability.state,
    reachability_since: reachability.since,
    reachability_reason: reachability.reason,
    models: replica.models?.map((model) => toShownName(model)) ?? null,
    engine: replica.knowledge.engine ?? 'unknown',
    since: drain.since,
    reason: drain.reason,
    safe_to_stop: isSafeToStop,
    ...(unconfirmed === null ? {} : { unconfirmed }),
    ramp: toRampJson(replica),
    removing: replica.isRemoving,
  };
}

function toShadowJson({ shadow, trial }: RegisteredReplica): ReplicaJson['shadow'] {
  if (shadow === null) return null;
  return { requests: shadow.share, since: trial?.since ?? null, until: trial?.until ?? null };
}

function toSilentJson({ silence }: RegisteredReplica): ReplicaJson['silent_streams'] {
  return { count: silence.count, running: silence.running, oldest_ms: silence.oldestMs };
}

function toRampJson({ ramp }: RegisteredReplica): ReplicaJson['ramp'] {
  if (ramp === null) return null;
  const { share, elapsedMs, durationMs } = ramp;
  return { share: roundTo3(share), elapsed_ms: Math.round(elapsedMs), duration_ms: durationMs };
}

/** The drain status of a replica: in the whole fleet, if there is one. */
interface ReplicaDrainStatus {
  readonly inflight: number;
  readonly background: BackgroundCount;
  readonly isSafeToStop: boolean | null;
  /** The gateways that have not confirmed its drain; null without a fleet. */
  readonly unconfirmed: readonly string[] | null;
}

/** Returns the current drain status of a replica. */
export function toDrainStatus(replica: RegisteredReplica, fleet: FleetControl | null): ReplicaDrainStatus {
  // In this order: a response in the background is counted before its request ceases to be in flight.
  const { name, inflight, background, isSafeToStop } = replica;
  const own = { inflight, background };
  if (fleet === null) return { ...own, isSafeToStop, unconfirmed: null };
  // Other gateways may still serve a replica that was removed here, and no drain state tells whether they do.
  if (replica.isRemoving && !replica.hasDrainedName) {
    return { ...own, isSafeToStop: isSafeToStop === false ? false : null, unconfirmed: null };
  }
  const { safeToStop, ...rest } = fleet.drainStatusOf(name, own);
  return { ...rest, isSafeToStop: safeToStop };
}

/** Converts the drain state of a name without a replica to JSON, with what is known of its work. */
export function toAbsentReplicaJson(
  name: string,
  { inflight, isSafeToStop }: Pick<ReplicaDrainStatus, 'inflight' | 'isSafeToStop'>,
  drains: Drains,
): z.output<typeof absentReplicaSchema> {
  const { drained, since, reason } = drains.stateOf(name);
  return { name, drained, inflight, since, reason, safe_to_stop: isSafeToStop, absent: true };
}

/** What the fleet knows of a name whose replica this gateway has removed, as JSON. */
export function toRemovedReplicaJson(
  name: string,
  drains: Drains,
  fleet: FleetControl,
): z.output<typeof absentReplicaSchema> {
  const own = { inflight: 0, background: NO_BACKGROUND };
  const { inflight, safeToStop: isSafeToStop } = fleet.drainStatusOf(name, own);
  return toAbsentReplicaJson(name, { inflight, isSafeToStop }, drains);
}

/** How many requests wait for a replica on this gateway. */
export const waitingSchema = count().describe(
  'Requests that wait because all replicas of their model have reached max_inflight.',
);

/** The export counters in the admin API. `ExportStats` explains them. */
export const statsSchema = z
  .object({
    exported: count().describe('Records that the collector (or the file) has accepted.'),
    dropped: count().describe('Records that were dropped because the queue was full.'),
    queued: count().describe('Records that wait in the queue.'),
    failed_calls: count().describe('Export calls that failed. Each attempt counts.'),
    recorded: count().describe('Records of requests that have ended.'),
    rejected: count().describe('Records that the collector rejected permanently.'),
    restored: count().describe('Records of an earlier run that were read from disk into the queue.'),
    spooled: count().describe('Records written to disk at shutdown for the next start.'),
    unreadable: count().describe(
      'Lines of the spool file that could not be read as records. They are not part of the sum.',
    ),
    lost: count().describe('Records of requests that had not ended when their worker died.'),
  })
  .meta({ id: 'Stats' });

/** Converts the export counters to the shape of `statsSchema`. */
export function toStatsJson(stats: ExportStats): z.output<typeof statsSchema> {
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
