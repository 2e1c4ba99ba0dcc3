import type { RecordLoss } from '#otel/ledger';
import type { FrameKeys } from './block-keys.ts';
import type { Answer, Gap, Query } from './query.ts';
import type { TimelineEntry } from './timeline-entry.ts';
import type { UsageDelta } from './usage-sums.ts';

/*
 * What the main thread and the thread of the history tell each other. Records go there in batches, whose memory moves
 * without a copy, and comes back; each batch is acknowledged when it is on disk.
 */

/** The settings of the history. */
export interface HistorySettings {
  readonly maxSizeBytes: number;
  readonly maxAgeMs: number;
}

/** What the thread gets when it starts. */
export interface HistoryStart extends HistorySettings {
  readonly path: string;
  /** From when on it is told of everything: epoch milliseconds. */
  readonly startedMs: number;
  /**
   * `after_kill`: the last records of the run before may be missing. `after_off`: it was off. `again`: the thread before
   * ended by an error.
   */
  readonly begun: 'new' | 'after_kill' | 'after_off' | 'again';
  /** The bands of the present, and what has ended them: those that the history knows may be of an earlier time. */
  readonly present: readonly TimelineEntry[];
  /** The version of the gateway, and its `service.instance.id`. */
  readonly version: string;
  readonly instanceId: string;
}

/** Records next to each other. */
export interface RecordChunk {
  /** A frame of them (record-frame.ts). */
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly count: number;
  readonly keys: FrameKeys;
  /** When the first and the last of them arrived: RFC 3339. */
  readonly firstTs: string;
  readonly lastTs: string;
}

/** How far the records of an instance are in the history. */
export interface InstanceSpan {
  readonly instance: string;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly count: number;
}

/** All that is written in one transaction: records, and what they add to the sums. */
export interface Batch {
  /** When the last of it was added: epoch milliseconds. */
  readonly endMs: number;
  readonly chunks: readonly RecordChunk[];
  readonly usage: readonly UsageDelta[];
  readonly instances: readonly InstanceSpan[];
  readonly gaps: readonly Gap[];
  readonly losses: readonly RecordLoss[];
  readonly events: readonly TimelineEntry[];
}

/** What the main thread sends. */
export type ToHistory =
  | { readonly kind: 'batch'; readonly batch: Batch }
  | { readonly kind: 'query'; readonly id: number; readonly query: Query }
  | { readonly kind: 'configure'; readonly settings: HistorySettings }
  | { readonly kind: 'close' };

/** Why nothing can be written now. */
export interface HistoryProblem {
  /** A code of the system or of SQLite. */
  readonly reason: string;
  readonly sinceMs: number;
}

/** A file that is not used any more, because it could not be, or is not there. */
export interface SetAside {
  /** What it is called now; null: it was deleted, or another file is in its place. */
  readonly name: string | null;
  readonly reason: string;
  readonly atMs: number;
}

/** How the thread is doing. */
export interface WriterState {
  /** Since its start. */
  readonly blocks: number;
  readonly records: number;
  /** What the records took in the file. */
  readonly recordBytes: number;
  /** Of the file, without what is free in it. */
  readonly usedBytes: number;
  readonly problem: HistoryProblem | null;
  readonly setAside: SetAside | null;
}

/** What the thread of the history sends. */
export type FromHistory =
  /** `memory` that held records moves back. */
  | { readonly kind: 'written'; readonly batches: number; readonly memory: readonly ArrayBuffer[] }
  | { readonly kind: 'state'; readonly state: WriterState }
  | { readonly kind: 'answer'; readonly id: number; readonly answer: Answer | QueryRefusal }
  | { readonly kind: 'closed' };

/** Why a query has no answer. */
export interface QueryRefusal {
  readonly kind: 'refused';
  readonly reason: string;
}
