import type { ExportStats } from '#otel/export-stats.ts';
import type { Replica } from '../replicas/replica.ts';

/** A replica as the admin API shows it. */
export interface ReplicaView {
  readonly name: string;
  readonly url: string;
  readonly host: string;
  readonly gpu_model: string | null;
  readonly gpu_count: number | null;
  readonly drained: boolean;
  readonly inflight: number;
  /** Null while the list is not known; `["*"]` serves any name. */
  readonly models: readonly string[] | null;
  readonly engine: string;
  /** RFC 3339 of the last drain or undrain, or null. */
  readonly since: string | null;
  /** Drained, and nothing in flight. */
  readonly safe_to_stop: boolean;
}

/** Converts a replica to its view. */
export function toReplicaView(replica: Replica): ReplicaView {
  const { config, drain, inflight } = replica;
  return {
    name: config.name,
    url: config.url,
    host: config.host,
    gpu_model: config.gpuModel,
    gpu_count: config.gpuCount,
    drained: drain.drained,
    inflight,
    models: replica.models,
    engine: replica.engine,
    since: drain.since,
    safe_to_stop: drain.drained && inflight === 0,
  };
}

/** The export counters as the admin API shows them. */
export function toStatsView(stats: ExportStats) {
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
