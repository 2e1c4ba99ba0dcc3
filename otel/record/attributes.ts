import type { Attributes } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { toErrorType } from '#otel/outcome';
import { OPERATIONS, providerOf, RECORD_FIELDS, type RequestRecord } from '#otel/record/registry';
import { toDecodeSeconds, toPrefillSeconds, toQueueSeconds } from './engine-latency.ts';
import { readFailedAttempts } from './failed-attempts.ts';
import { type DerivedValues, DOUBLE_NAMES, toAttributes, toFields } from './record-attributes.ts';

/** The scheme and address by which the client reached the gateway. */
export interface HttpFacts {
  readonly scheme: 'http' | 'https';
  readonly serverAddress?: string | undefined;
  readonly serverPort?: number | undefined;
}

/** Which names of GenAI's conventions: the pinned version that backends read, or the newest text. */
export type GenAiNames = 'pinned' | 'latest';

/**
 * The attributes of a request's span. `genAi`: the names of what the conventions say of GenAI; null: another span of the
 * request has it. Only one has it, because backends add up its usage.
 */
export function toRequestAttributes(
  record: Readonly<RequestRecord>,
  http: HttpFacts,
  genAi: GenAiNames | null = 'pinned',
): Attributes {
  return toAttributes(record, derive(record, http), { request: true, genAi });
}

/** The attributes of a record on the span of its operation. */
export function toOperationAttributes(record: Readonly<RequestRecord>, genAi: GenAiNames): Attributes {
  return toAttributes(record, derive(record, { scheme: 'http' }), { request: false, genAi });
}

/** What of a span tells its record. */
export type RecordSpan = Pick<ReadableSpan, 'attributes' | 'events' | 'startTime'>;

/** The record of a span, as it is sent: values that were cut stay cut. Null for the span of no request. */
export function toRecord(span: RecordSpan): RequestRecord | null {
  const fields = toFields(span.attributes);
  const failedAttempts = readFailedAttempts(span);
  if (failedAttempts !== undefined) fields.failed_attempts = failedAttempts;
  return isRecord(fields) ? fields : null;
}

/** The fields that every record has. They distinguish a request's span from other spans. */
const REQUIRED = Object.entries(RECORD_FIELDS).flatMap(([field, { isRequired }]) =>
  isRequired ? (field as keyof RequestRecord) : [],
);

function isRecord(fields: Partial<RequestRecord>): fields is RequestRecord {
  return REQUIRED.every((field) => fields[field] !== undefined);
}

/** What the conventions say of a request, and is no field of its record. */
function derive(record: Readonly<RequestRecord>, http: HttpFacts): DerivedValues {
  const { endpoint, timings, ttft_ms } = record;
  return {
    httpRequestMethod: 'POST',
    urlScheme: http.scheme,
    serverAddress: http.serverAddress,
    serverPort: http.serverPort,
    errorType: toErrorType(record),
    genAiProviderName: providerOf(endpoint),
    genAiOperationName: OPERATIONS.get(endpoint),
    genAiRequestStream: record.stream || undefined,
    genAiLatencyTimeInQueue: timings && toQueueSeconds(timings),
    genAiLatencyTimeInModelPrefill: timings && toPrefillSeconds(timings),
    genAiLatencyTimeInModelDecode: timings && toDecodeSeconds(timings),
    genAiResponseTimeToFirstChunk: ttft_ms === undefined ? undefined : ttft_ms / 1000,
  };
}

const DOUBLE_PREFIXES = Object.values(RECORD_FIELDS).flatMap(({ name, type }) =>
  type === 'doubles' ? name : [],
);

/** Whether the attribute's numbers are doubles, even integral ones. The SDK cannot tell 85 from 85.0. */
export function isDoubleName(name: string): boolean {
  return DOUBLE_NAMES.has(name) || DOUBLE_PREFIXES.some((prefix) => name.startsWith(prefix));
}
