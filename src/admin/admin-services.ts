import type { AdminAction } from '#otel/admin-spans.ts';
import type { ExportStats } from '#otel/export-stats.ts';
import type { DrainStore } from '../replicas/drain-store.ts';
import type { ReplicaPool } from '../replicas/pool.ts';

/** Where admin actions are logged. A pino logger fits. */
export interface AdminLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What the routes work with. */
export interface AdminServices {
  readonly pool: ReplicaPool;
  readonly drains: DrainStore;
  readonly stats: () => ExportStats;
  /** Told of each action when it is in force and stored, or could not be. */
  readonly onAction: (action: AdminAction) => void;
  readonly log: AdminLog;
}
