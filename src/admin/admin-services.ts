import type { AdminAction } from '#otel/admin-spans.ts';
import type { ExportStats } from '#otel/export-stats.ts';
import type { RecentRecords } from '#otel/recent-records.ts';
import type { Drains } from '../replicas/drains.ts';
import type { RegisteredReplica, ReplicaRegistry } from '../replicas/registry.ts';
import type { Figures } from './dashboard/live-figures.ts';

/** Where admin actions are logged. A pino logger fits. */
export interface AdminLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What only the dashboard wants to know. */
export interface DashboardServices {
  readonly figures: () => Figures;
  /** When the gateway started: RFC 3339. */
  readonly startedAt: string;
  /** Records that may wait for the collector. */
  readonly queueSize: number;
  /** A URL with `{trace_id}` in it, or null. */
  readonly traceUrlTemplate: string | null;
}

/** What the routes work with. */
export interface AdminServices {
  readonly registry: ReplicaRegistry;
  readonly drains: Drains;
  readonly stats: () => ExportStats;
  readonly recentRecords: RecentRecords;
  readonly dashboard: DashboardServices;
  /** All metrics as they are now, in Prometheus' text format, in pieces. */
  readonly metricsText: () => AsyncIterable<string>;
  /** Asks a replica what it serves, where that is not configured; it is about to be used again. */
  readonly refresh: (replica: RegisteredReplica) => Promise<void>;
  /** Told of each action when it is in force and stored, or could not be. */
  readonly onAction: (action: AdminAction) => void;
  readonly log: AdminLog;
}
