import { resourceFromAttributes } from '@opentelemetry/resources';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { Ledger } from '#otel/ledger';
import { encodeResourceSpans, SpanEncoder, toSpanJson } from '#otel/otlp';
import { toRequestAttributes } from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';
import { createQuietLog } from '../otel/quiet-log.ts';
import { VirtualClock } from '../otel/virtual-clock.ts';
import { FULL_RECORD } from './records.ts';

/** What becomes of a record in the gateway. */
export type Fate = 'queued' | 'dropped' | 'unencodable';

/** A record as a span in OTLP JSON. */
export interface GeneratedRecord {
  readonly seq: number;
  readonly json: string;
}

/** What an instance has made. */
export interface GeneratedInstance {
  readonly instance: string;
  /** The queued ones. */
  readonly records: readonly GeneratedRecord[];
  /** The ledger spans in OTLP JSON, in their order. */
  readonly ledgers: readonly string[];
}

/** Makes the records of an instance, with these fields, and, unless it is killed, the ledger up to its end. */
export function generateInstance(
  instance: string,
  fates: readonly Fate[],
  { isKilled = false, ...fields }: Partial<RequestRecord> & { readonly isKilled?: boolean } = {},
): GeneratedInstance {
  const ledgers: string[] = [];
  const ledger = new Ledger(60_000, {
    publish: (encodedSpan) => ledgers.push(toJson(encodedSpan)),
    waitingCount: () => 0,
    clock: new VirtualClock(),
    epochMs: () => 1_795_000_000_000,
    log: createQuietLog(),
  });
  const encoder = new SpanEncoder();
  const records: GeneratedRecord[] = [];
  for (const [index, fate] of fates.entries()) {
    const seq = index + 1;
    const record: RequestRecord = {
      ...FULL_RECORD,
      instance,
      seq,
      prompt_tokens: seq,
      completion_tokens: seq % 7,
      e2e_ms: seq / 3,
      request_id: `request-${seq}`,
      ...fields,
    };
    if (fate === 'queued') {
      const encodedSpan = encoder.encode(toSpan(record));
      ledger.queued(record, encodedSpan);
      records.push({ seq, json: toJson(encodedSpan) });
    } else ledger.notQueued(record, fate);
  }
  if (!isKilled) ledger.end();
  return { instance, records, ledgers };
}

/** The encoded span of a record. */
export function encodeRecord(record: RequestRecord): Uint8Array {
  return new SpanEncoder().encode(toSpan(record));
}

/** One line of a file, as `export.to: file` writes it. */
export function toLine(spans: readonly string[]): string {
  const { before, after } = encodeResourceSpans(resourceFromAttributes({ 'service.name': 'spangate' })).json;
  return `${Buffer.from(before).toString()}${spans.join(',')}${Buffer.from(after).toString()}\n`;
}

function toJson(encodedSpan: Uint8Array): string {
  const json = toSpanJson(encodedSpan);
  if (json === null) throw new Error('no span');
  return json;
}

function toSpan(record: RequestRecord): ReadableSpan {
  return {
    name: 'POST /v1/chat/completions',
    kind: 1,
    spanContext: () => ({ traceId: record.trace_id, spanId: 'b7ad6b7169203331', traceFlags: 1 }),
    startTime: [1, 0],
    endTime: [2, 0],
    status: { code: 0 },
    attributes: toRequestAttributes(record, { scheme: 'http' }),
    links: [],
    events: [],
    duration: [1, 0],
    ended: true,
    resource: resourceFromAttributes({}),
    instrumentationScope: { name: 'spangate' },
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}
