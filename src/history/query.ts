import type { RequestRecord } from '#otel/record/registry';
import type { KeptLoss } from './store/loss-store.ts';
import type { ShownEvent } from './timeline-entry.ts';
import type { Dimension, SumName } from './usage-sums.ts';

/** Records that are not in the history. */
export interface Gap {
  /** When the first of them arrived and the last of them ended: epoch milliseconds. `killed`, `lost`: when they ended. */
  readonly fromMs: number;
  readonly toMs: number;
  /** How many; null if nobody knows. */
  readonly records: number | null;
  readonly reason: GapReason;
}

/**
 * - `behind`: the history could not be written quickly enough, or not at all
 * - `unencodable`: the record has no span
 * - `killed`: the gateway ended without a shutdown
 * - `thread_ended`: the thread of the history ended by an error
 * - `lost`: a worker ended before it had sent them, or could not send them
 * - `off`: the history was off
 * - `damaged`: sums of theirs in the file are not what was written, and are left out
 * - `waiting`: they cannot be written now, and are in the history as soon as they can
 */
export type GapReason = (typeof ENDED_REASONS)[number] | 'behind' | 'unencodable' | 'waiting' | 'damaged';

/** Those whose times are of the ends of records. */
export const ENDED_REASONS = ['killed', 'off', 'thread_ended', 'lost'] as const;

/** Two gaps of one reason as one. */
export function joinGaps(a: Gap, b: Gap): Gap {
  const records = a.records === null || b.records === null ? null : a.records + b.records;
  const [fromMs, toMs] = [Math.min(a.fromMs, b.fromMs), Math.max(a.toMs, b.toMs)];
  return { reason: a.reason, fromMs, toMs, records };
}

/** A record of the history and its number: each is larger than those of the records before. */
export interface NumberedRecord {
  readonly number: number;
  readonly record: RequestRecord;
}

/** Which records, or whose sums. A value that is not set matches all. */
export interface Filters {
  readonly tenant?: string | undefined;
  readonly client?: string | undefined;
  readonly model?: string | undefined;
  readonly replica?: string | undefined;
  /** A status such as `404`, or a class such as `5xx`. */
  readonly status?: string | undefined;
  readonly failed?: boolean | undefined;
}

/** From one moment to just before another one: epoch milliseconds. */
export interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

/** A page of a list: the newest first. */
interface Page {
  /** Only what is before this number; null: the newest. */
  readonly before: number | null;
  readonly limit: number;
}

/** The records with an id. */
export interface FindQuery {
  readonly kind: 'find';
  readonly id: string;
  readonly limit: number;
}

/** The records that arrived in a span, newest first. */
export interface RecordsQuery extends Span, Page {
  readonly kind: 'records';
  readonly filters: Filters;
}

/** Sums of the requests that arrived in a span. */
export interface UsageQuery extends Span {
  readonly kind: 'usage';
  readonly by: readonly Dimension[];
  readonly filters: Pick<Filters, Dimension & keyof Filters> & { readonly endpoint?: string | undefined };
  /** Into what the span is divided; null: it is not. */
  readonly step: Step | null;
  /** The most rows. What is in no row of its own is in one row together. */
  readonly limit: number;
}

/** Steps of one length, whole minutes; or those that begin at these times, ascending epoch milliseconds, as days do. */
export type Step = { readonly ms: number } | { readonly starts: readonly number[] };

/** What happened in a span, newest first. */
export interface TimelineQuery extends Span, Page {
  readonly kind: 'timeline';
}

/** The records of a tenant that arrived in a span, as a statement lists them: newest first. */
export interface StatementQuery extends Span, Page {
  readonly kind: 'statement';
  readonly tenant: string;
}

export type Query = FindQuery | RecordsQuery | UsageQuery | TimelineQuery | StatementQuery;

/** From when on each kind of fact is kept: epoch milliseconds. */
export interface Kept {
  readonly recordsMs: number;
  readonly minutesMs: number;
  readonly hoursMs: number;
  readonly timelineMs: number;
  /** Which records were not exported. */
  readonly lossesMs: number;
}

/** What is common to all answers. */
interface AnswerBase {
  readonly kept: Kept;
  /** Records of the span that are not in the history. */
  readonly gaps: readonly Gap[];
}

interface RecordPage extends AnswerBase {
  /** The page goes on before this number; null: there is no more. */
  readonly next: number | null;
  /** How many blocks are damaged. Their records are missing. */
  readonly damagedBlocks: number;
  /** Names that were asked for and are in no record and no sum that is kept. */
  readonly unknown: readonly string[];
}

export interface RecordsAnswer extends RecordPage {
  readonly kind: 'records';
  readonly records: readonly NumberedRecord[];
}

/** The sums of one group, and of one step. */
export interface UsageRow {
  /** When its step begins: epoch milliseconds. */
  readonly startMs: number;
  /** The values of `by`, in its order; null: not known of these requests. */
  readonly group: readonly (string | null)[];
  /** Whether it is what has no row of its own: the names are then null. */
  readonly isOther: boolean;
  readonly sums: Readonly<Record<SumName, number>>;
  readonly failures: Readonly<Record<string, number>>;
  /** By currency. */
  readonly costs: Readonly<Record<string, number>>;
  readonly duration: Quantiles;
  readonly firstToken: Quantiles & { readonly count: number };
}

/** Milliseconds; null if there is no request. */
export interface Quantiles {
  readonly p50: number | null;
  readonly p95: number | null;
}

export interface UsageAnswer extends AnswerBase, Span {
  readonly kind: 'usage';
  /** What the span was rounded to. */
  readonly resolution: 'minute' | 'hour';
  readonly rows: readonly UsageRow[];
  readonly total: UsageRow;
  /** Requests that are in no row, because they were summed without names, and may be of those that were asked for. */
  readonly unnamed: number;
  /** Whether requests before the span that is summed are not kept any more. */
  readonly isComplete: boolean;
  readonly unknown: readonly string[];
}

export interface TimelineAnswer extends AnswerBase {
  readonly kind: 'timeline';
  readonly events: readonly ShownEvent[];
  readonly next: number | null;
}

/** A record of the history, with the first 16 bytes of its digest (docs/internals/ledger-form.md) in base64. */
export interface DigestedRecord {
  readonly record: RequestRecord;
  readonly digest: string;
}

export interface StatementAnswer extends RecordPage {
  readonly kind: 'statement';
  readonly records: readonly DigestedRecord[];
  /** Of all tenants, since the span began; empty but on the first page. */
  readonly losses: readonly KeptLoss[];
}

/** The answer to a query of this kind; without one, of any. */
export type Answer<Kind extends Query['kind'] = Query['kind']> = Extract<
  RecordsAnswer | UsageAnswer | TimelineAnswer | StatementAnswer,
  { readonly kind: Kind extends 'find' ? 'records' : Kind }
>;
