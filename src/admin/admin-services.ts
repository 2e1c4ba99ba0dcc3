import type { ExportStats } from '#otel/queue/export-stats.ts';
import type { RecentRecords } from '#otel/queue/recent-records.ts';
import type { AdminAction } from '#otel/span/admin-spans.ts';
import type { Drains } from '../replicas/control/drains.ts';
import type { RegisteredReplica, ReplicaChanges, ReplicaRegistry } from '../replicas/control/registry.ts';
import type { Figures } from './dashboard/live-figures.ts';
import type { DrainWaits } from './drain-waits.ts';
import type { FleetControl } from './fleet-control.ts';

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

/** What a reload of the configuration did, or why it did nothing. */
export type ReloadOutcome =
  | {
      readonly kind: 'reloaded';
      /** Keys of the file whose new value is in force. */
      readonly changed: readonly string[];
      /** Keys of the file whose new value waits for a restart. */
      readonly needsRestart: readonly string[];
      readonly replicas: ReplicaChanges;
    }
  /** Nothing has changed. Each problem is one line that holds no secret. */
  | { readonly kind: 'refused'; readonly problems: readonly string[] };

/** What the routes work with. */
export interface AdminServices {
  readonly registry: ReplicaRegistry;
  readonly drains: Drains;
  readonly waits: DrainWaits;
  /** Null: this gateway shares its drains with no other. */
  readonly fleet: FleetControl | null;
  readonly gatewayName: string;
  readonly stats: () => ExportStats;
  /** Resolves when `stats`, `recentRecords` and all figures hold every request that has ended up to now. */
  readonly settleRecords: () => Promise<void>;
  readonly recentRecords: RecentRecords;
  readonly dashboard: DashboardServices;
  /** All metrics as they are now, in Prometheus' text format, in pieces. */
  readonly metricsText: () => AsyncIterable<string>;
  /** Asks a replica what it serves, where that is not configured; it is about to be used again. */
  readonly refresh: (replica: RegisteredReplica) => Promise<void>;
  /** Asks a replica whether it answers, and notes it; one that is drained is left in peace. */
  readonly ask: (replica: RegisteredReplica) => Promise<void>;
  /** Reads the configuration again; it logs and tells of the action by itself. */
  readonly reload: () => Promise<ReloadOutcome>;
  /** Told of each action when it is in force and stored, or could not be. */
  readonly onAction: (action: AdminAction) => void;
  readonly log: AdminLog;
}
