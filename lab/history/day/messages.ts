import type { RequestRecord } from '#otel/record/registry';
import type { DayRequest } from './traffic.ts';

/** The settings of the history, as the gateway has them. */
export interface HistorySettings {
  readonly maxSizeBytes: number;
  readonly maxAgeMs: number;
}

/** What an hour of one GPU of each replica costs, in their order. */
export type Prices = readonly (number | null)[];

/** What happens at a moment: milliseconds since the day began. */
export type DayEvent = { readonly atMs: number } & (
  | { readonly kind: 'lease_begins'; readonly lease: number; readonly replica: number }
  | { readonly kind: 'lease_ends'; readonly lease: number }
  | {
      readonly kind: 'record';
      readonly arriveMs: number;
      readonly instance: string;
      readonly seq: number;
      readonly leases: readonly number[];
      readonly request: Pick<DayRequest, 'fields' | 'fate' | 'hashCount'>;
    }
  | { readonly kind: 'prices'; readonly prices: Prices }
  /** The history is reloaded; null: it is off. */
  | { readonly kind: 'reload'; readonly settings: HistorySettings | null }
  /** The clock on the wall is set: what it would have shown when the day began. */
  | { readonly kind: 'clock'; readonly startMs: number }
);

/** What the day asks of the writer. Each has one answer. */
export type Asked =
  | {
      readonly kind: 'open';
      readonly path: string;
      readonly settings: HistorySettings;
      readonly nowMs: number;
      readonly startMs: number;
      readonly prices: Prices;
      readonly currency: string;
    }
  | { readonly kind: 'step'; readonly untilMs: number; readonly events: readonly DayEvent[] }
  /** All that can be written is. */
  | { readonly kind: 'settle' }
  /** The records that arrived in a span, by the clock on the wall, and what is missing in it. */
  | { readonly kind: 'list'; readonly fromMs: number; readonly untilMs: number }
  | { readonly kind: 'close' };

/** The GPU time of a replica and its cost, as GET /metrics tells them. */
export interface GpuFigures {
  readonly busyCost: number;
  readonly idleCost: number;
}

/** The writer has done what it was asked. */
export interface Done {
  readonly gpus: readonly GpuFigures[];
  /** The ledger spans since the last answer, encoded. */
  readonly ledgers: readonly Uint8Array[];
  /** Of `list`. */
  readonly listed: Listed | null;
}

/** Records, as far as they are reckoned again, and what is missing. */
export interface Listed {
  readonly records: readonly Pick<
    RequestRecord,
    'instance' | 'seq' | 'gpu_seconds' | 'cost' | 'currency' | 'prompt_tokens' | 'completion_tokens'
  >[];
  readonly gaps: readonly {
    readonly fromMs: number;
    readonly toMs: number;
    readonly records: number | null;
    readonly reason: string;
  }[];
}
