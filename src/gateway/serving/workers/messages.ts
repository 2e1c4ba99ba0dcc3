import type { JwtKeys } from '#access/jwt';
import type { TenantKind } from '#access/limits';
import type { PackedRecords, SharedQueueMemory } from '#otel/queue';
import type { BackgroundResponse } from '#proxy';
import type { HealthDecision, PoolSnapshot } from '#replicas/terms';
import type { TlsMaterial } from '#wire';
import type { ListenOptions, ServingLog, ServingSettings } from '../serving.ts';

/** The levels of log lines that a worker writes. */
export type LogLevel = keyof ServingLog;

/** What a worker thread gets when it starts. */
export interface WorkerStart {
  readonly settings: ServingSettings;
  readonly queueMemory: SharedQueueMemory;
  /** The `instance` of its records. */
  readonly instance: string;
  /** One word per worker. Each counts up its own while its event loop runs. */
  readonly heartbeats: Int32Array;
  /** The enabled levels: lines of other levels are not sent. */
  readonly logLevels: readonly LogLevel[];
  /** The replicas that it serves from the start. */
  readonly topology: PoolSnapshot | null;
}

/** A call of a method of the worker's data plane. */
export type WorkerCall =
  | { readonly kind: 'listen'; readonly address: ListenOptions }
  | { readonly kind: 'apply'; readonly topology: PoolSnapshot }
  | {
      readonly kind: 'configure';
      readonly config: ServingSettings['config'];
      readonly logLevels: readonly LogLevel[];
    }
  | { readonly kind: 'useClients'; readonly clients: ServingSettings['clients'] }
  | { readonly kind: 'useJwtKeys'; readonly keys: JwtKeys }
  | { readonly kind: 'useTls'; readonly material: TlsMaterial }
  | { readonly kind: 'confirm' }
  | { readonly kind: 'settleRecords' }
  | { readonly kind: 'startClosing' }
  | { readonly kind: 'finish'; readonly graceMs: number }
  /** The answer to a question with this number. */
  | { readonly kind: 'answer'; readonly question: number; readonly result: number | null }
  | { readonly kind: 'close' };

/** A call, with the number that its answer repeats. */
export interface NumberedCall {
  readonly id: number;
  readonly call: WorkerCall;
}

/** What a worker asks the main thread. */
export type WorkerQuestion =
  /** See `JwtAuthority`. */
  | { readonly kind: 'refreshKeys' }
  | { readonly kind: 'limitRowOf'; readonly of: TenantKind; readonly tenant: string };

/** What a worker sends to the main thread. */
export type WorkerMessage =
  /** The call succeeded. `result`: the port, or the number of cut requests; 0 for calls without a result. */
  | { readonly kind: 'done'; readonly id: number; readonly result: number }
  /** The call failed. An error loses its `code` between threads, so the code is sent separately. */
  | { readonly kind: 'failed'; readonly id: number; readonly message: string; readonly code: string | null }
  | { readonly kind: 'question'; readonly id: number; readonly question: WorkerQuestion }
  | { readonly kind: 'records'; readonly records: PackedRecords }
  | { readonly kind: 'health'; readonly decision: HealthDecision }
  | { readonly kind: 'background'; readonly response: BackgroundResponse }
  | {
      readonly kind: 'log';
      readonly level: LogLevel;
      readonly fields: object;
      readonly message: string;
    };
