import type { LimitRows } from '#access/limits';
import type { EndParkedSpan } from '#otel/span';
import type { ResponseFields } from '#proxy';
import type { StoredResponse } from './background-file.ts';
import type { BackgroundEnd } from './decide-follow.ts';

/** What a record is made with. A pino logger fits as `log`. */
export interface RecordMaking {
  readonly limitRows: Pick<LimitRows, 'useTokens'>;
  readonly endParkedSpan: EndParkedSpan;
  readonly log: { error(fields: object, message: string): void };
}

/** How a response in the background ended. */
export interface EndedResponse {
  readonly end: BackgroundEnd;
  /** Since its request arrived. */
  readonly ageMs: number;
  /** Since it was taken over; null: its replica has no `gpu_count`. */
  readonly gpuSeconds: number | null;
  /** What the replica tells of it. */
  readonly fields: ResponseFields;
}

/** Makes the record of a response, and charges its client for the tokens. Never throws. */
export function makeRecord(
  { limitRows, endParkedSpan, log }: RecordMaking,
  { record, http, span, limits, chargedTokens }: Omit<StoredResponse, 'id'>,
  { end, ageMs, gpuSeconds, fields }: EndedResponse,
): void {
  const isFailed = fields.finish_reasons?.includes('failed') === true;
  const ended = {
    ...withGpuSeconds(record, gpuSeconds),
    ...fields,
    ...(isFailed ? { error_type: 'upstream_error' } : {}),
    background_ms: ageMs,
    background_end: end,
  };
  const { prompt_tokens, completion_tokens } = fields;
  if (prompt_tokens !== undefined || completion_tokens !== undefined) {
    const usedTokens = (prompt_tokens ?? 0) + (completion_tokens ?? 0);
    for (const name of limits) limitRows.useTokens(name, usedTokens - chargedTokens);
  }
  try {
    endParkedSpan(span, ended, http);
  } catch (error) {
    // A file in state_dir may hold a span that is none.
    log.error({ error: error instanceof Error ? error.name : typeof error }, 'record handling failed');
  }
}

/** The record with further GPU time; null: none is known. */
export function withGpuSeconds(
  record: StoredResponse['record'],
  seconds: number | null,
): StoredResponse['record'] {
  if (seconds === null) return record;
  return { ...record, gpu_seconds: (record.gpu_seconds ?? 0) + seconds };
}
