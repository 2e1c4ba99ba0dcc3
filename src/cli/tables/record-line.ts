import { shorten } from '#cli/terminal';
import type { RequestRecord } from '#otel/record/registry';

/** How many columns of a terminal a name takes. Those of clients may be long; the record keeps the whole name. */
const NAME_COLUMNS = 32;

/** Formats a record as one line for people, without its unknown fields. The time is UTC, as in the record. */
export function toRecordLine(record: Readonly<RequestRecord>): string {
  const { prompt_tokens, completion_tokens, cached_tokens, ttft_ms, gap_p50_ms, gap_p95_ms } = record;
  const gaps =
    gap_p50_ms === undefined || gap_p95_ms === undefined
      ? undefined
      : `${toMs(gap_p50_ms)}/${toMs(gap_p95_ms)}`;
  const parts = [
    record.ts.slice(11, 23),
    String(record.status),
    toName(record.replica ?? '-').padEnd(5),
    toName(record.model ?? '-'),
    record.endpoint.replace('/v1/', '').replace('chat/completions', 'chat').padEnd(4),
    labelled('in', prompt_tokens),
    labelled('out', completion_tokens),
    labelled('cached', cached_tokens),
    labelled('ttft', ttft_ms === undefined ? undefined : `${toMs(ttft_ms)} ms`),
    labelled('gaps', gaps === undefined ? undefined : `${gaps} ms`),
    labelled('e2e', `${toMs(record.e2e_ms)} ms`),
    labelled('tenant', record.tenant === undefined ? undefined : toName(record.tenant)),
    record.error_type === undefined ? undefined : toName(record.error_type),
    labelled('trace', record.trace_id),
  ];
  return parts.filter((part) => part !== undefined).join('  ');
}

function labelled(label: string, value: string | number | undefined): string | undefined {
  return value === undefined ? undefined : `${label} ${value}`;
}

function toMs(ms: number): string {
  return ms < 10 ? ms.toFixed(1) : ms.toFixed(0);
}

/** Makes a name that a client chose safe for a terminal: escape sequences start with a control character. */
function toName(text: string): string {
  return shorten(text.replace(/\p{C}/gu, '?'), NAME_COLUMNS);
}
