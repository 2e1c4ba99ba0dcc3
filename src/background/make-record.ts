import type { LimitRows } from '#access/limits';
import type { Log } from '#otel/base';
import type { createParkedSpanEnder } from '#otel/span';
import type { ResponseFields } from '#proxy';
import { addGpuTime, type GpuShare } from '#replicas/gpu-time';
import type { StoredResponse } from './background-file.ts';
import type { BackgroundEnd } from './decide-follow.ts';

/** What a record is made with. */
export interface RecordMaking {
  readonly limitRows: Pick<LimitRows, 'useTokens'>;
  readonly endParkedSpan: ReturnType<typeof createParkedSpanEnder>;
  /** Of all costs. */
  readonly currency: string;
  readonly log: Log<'error'>;
}

/** How a response in the background ended. */
export interface EndedResponse {
  readonly end: BackgroundEnd;
  /** Since its request arrived. */
  readonly ageMs: number;
  /** Since it was taken over, ended; null: its replica has no `gpu_count`. */
  readonly gpuShare: GpuShare | null;
  /** What the replica tells of it. */
  readonly fields: ResponseFields;
}

/** Makes the record of a response, and charges its client for the tokens. Never throws. */
export function makeRecord(
  { limitRows, endParkedSpan, log, currency }: RecordMaking,
  { record, http, span, limits, chargedTokens }: Omit<StoredResponse, 'id'>,
  { end, ageMs, gpuShare, fields }: EndedResponse,
): void {
  const isFailed = fields.finish_reasons?.includes('failed') === true;
  const ended = {
    ...withGpuShare(record, gpuShare, currency),
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

/** The record with further GPU time and its cost; null: none is known. */
export function withGpuShare(
  record: StoredResponse['record'],
  share: GpuShare | null,
  currency: string,
): StoredResponse['record'] {
  const later = { ...record };
  if (share !== null) addGpuTime(later, [share], currency);
  return later;
}
