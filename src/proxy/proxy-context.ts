import type { Recorder } from '#otel/span/start-recorder.ts';
import type { SharedLimit } from '../http/shared-limit.ts';
import type { ReplicaPool } from '../replicas/data/pool.ts';
import type { ReplicaLog } from './attempt/replica-log.ts';
import type { SendSettings } from './attempt/send.ts';
import type { RecordedHeaders } from './record/recorded-fields.ts';
import type { BodyInspector } from './request/body-inspector.ts';

/** What the proxy is told once, before the first request. */
export interface ProxySettings extends SendSettings {
  readonly recordedHeaders: RecordedHeaders;
  readonly maxBodyBytes: number;
  readonly maxEventBytes: number;
  readonly clientBodyMs: number;
  /** Waiting for a replica with room, over all tries. */
  readonly queueMs: number;
}

/** Where the proxy reports its own defects. A pino logger fits. */
export interface ProxyLog {
  error(fields: object, message: string): void;
}

/** Whom the proxy works with. */
export interface ProxyCollaborators {
  readonly pool: ReplicaPool;
  readonly telemetry: Omit<Recorder, 'shutdown'>;
  readonly inspector: BodyInspector;
  readonly bodyBudget: SharedLimit;
  readonly log: ProxyLog;
  readonly replicaLog: ReplicaLog;
}
