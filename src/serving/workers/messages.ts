import type { SharedQueueMemory } from '#otel/queue/shared-queue-state.ts';
import type { PackedRecords } from '#otel/queue/worker-record-sender.ts';
import type { PoolSnapshot } from '../../replicas/pool-snapshot.ts';
import type { ListenAddress, ServingLog, ServingSettings } from '../serving.ts';

/** The levels of the lines that a worker may write. */
export type LogLevel = keyof ServingLog;

/** What a worker is given when its thread starts. */
export interface WorkerStart {
  readonly settings: ServingSettings;
  readonly queueMemory: SharedQueueMemory;
  /** One word a worker: it counts its own up for as long as its event loop turns. */
  readonly beats: Int32Array;
  /** The levels that are written: lines of others are not sent. */
  readonly logLevels: readonly LogLevel[];
  /** What it serves from the beginning. */
  readonly topology: PoolSnapshot | null;
}

/** What the main thread tells a worker to do: the methods of its data plane. */
export type Order =
  | { readonly kind: 'listen'; readonly address: ListenAddress }
  | { readonly kind: 'apply'; readonly topology: PoolSnapshot }
  | {
      readonly kind: 'configure';
      readonly config: ServingSettings['config'];
      readonly logLevels: readonly LogLevel[];
    }
  | { readonly kind: 'confirm' }
  | { readonly kind: 'settleRecords' }
  | { readonly kind: 'startClosing' }
  | { readonly kind: 'finish'; readonly graceMs: number }
  | { readonly kind: 'close' };

/** An order, and the number that its answer carries. */
export interface NumberedOrder {
  readonly id: number;
  readonly order: Order;
}

/** What a worker sends to the main thread. */
export type WorkerMessage =
  /** The order was carried out. `result`: the port, or how many requests were cut; 0 for orders without one. */
  | { readonly kind: 'done'; readonly id: number; readonly result: number }
  /** It could not be. Errors lose their code on the way, so that it goes by itself. */
  | { readonly kind: 'failed'; readonly id: number; readonly message: string; readonly code: string | null }
  | { readonly kind: 'records'; readonly records: PackedRecords }
  | {
      readonly kind: 'log';
      readonly level: LogLevel;
      readonly fields: object;
      readonly message: string;
    };
