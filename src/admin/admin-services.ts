import type { AdminAction } from '#otel/admin-spans.ts';
import type { ExportStats } from '#otel/export-stats.ts';
import type { Drains } from '../replicas/drains.ts';
import type { ReplicaRegistry } from '../replicas/registry.ts';

/** Where admin actions are logged. A pino logger fits. */
export interface AdminLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What the routes work with. */
export interface AdminServices {
  readonly registry: ReplicaRegistry;
  readonly drains: Drains;
  readonly stats: () => ExportStats;
  /** Told of each action when it is in force and stored, or could not be. */
  readonly onAction: (action: AdminAction) => void;
  readonly log: AdminLog;
}
