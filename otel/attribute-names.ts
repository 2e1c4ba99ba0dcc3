import type { RequestRecord } from './request-record.ts';

/** The instrumentation scope of every request span. */
export const SCOPE_NAME = 'spangate';

/**
 * The version of the semantic conventions that holds all names below: `gen_ai.*` left the main registry after
 * 1.41; `http.*`, `url.*`, `server.*` and `error.type` are stable, the same in 1.41 and 1.44.
 */
export const SCHEMA_URL = 'https://opentelemetry.io/schemas/1.41.0';

/** How a value goes over the wire. `doubles` is a map of numbers whose keys are not ours. */
export type FieldType = 'string' | 'int' | 'double' | 'bool' | 'strings' | 'doubles';

/** Every field of the record with its type; its name on the wire is the field's, after `gateway.`. */
const FIELD_TYPES: { readonly [Field in keyof RequestRecord]-?: FieldType } = {
  request_id: 'string',
  trace_id: 'string',
  ts: 'string',
  replica: 'string',
  model: 'string',
  endpoint: 'string',
  tenant: 'string',
  feature: 'string',
  prompt_tokens: 'int',
  completion_tokens: 'int',
  cached_tokens: 'int',
  ttft_ms: 'double',
  e2e_ms: 'double',
  gap_p50_ms: 'double',
  gap_p95_ms: 'double',
  status: 'int',
  stream: 'bool',
  max_tokens: 'int',
  prompt_chars: 'int',
  prefix_hashes: 'strings',
  error_type: 'string',
  finish_reasons: 'strings',
  reasoning_tokens: 'int',
  attempts: 'int',
  truncated: 'bool',
  client_request_id: 'string',
  timings: 'doubles',
};

const FIELD_PREFIX = 'gateway.';

/** A field of the record as it goes over the wire. */
export interface WireField {
  readonly field: keyof RequestRecord;
  /** The attribute's name; for `doubles` what each key's name begins with. */
  readonly name: string;
  readonly type: FieldType;
}

const isField = (name: string): name is keyof RequestRecord => Object.hasOwn(FIELD_TYPES, name);

/** The record's fields, in the order of docs/record.md. */
export const WIRE_FIELDS: readonly WireField[] = Object.keys(FIELD_TYPES)
  .filter(isField)
  .map((field) => {
    const type = FIELD_TYPES[field];
    return { field, type, name: `${FIELD_PREFIX}${field}${type === 'doubles' ? '.' : ''}` };
  });

const DOUBLE_NAMES = new Set(WIRE_FIELDS.filter(({ type }) => type === 'double').map(({ name }) => name));
const DOUBLE_PREFIXES = WIRE_FIELDS.filter(({ type }) => type === 'doubles').map(({ name }) => name);

/** Whether the attribute's numbers are doubles, integral ones too: the SDK cannot tell 85 from 85.0. */
export function isDoubleName(name: string): boolean {
  return DOUBLE_NAMES.has(name) || DOUBLE_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** The names of the semantic conventions that a request span carries, by what they hold. */
export const SEMCONV = {
  method: 'http.request.method',
  route: 'http.route',
  status: 'http.response.status_code',
  path: 'url.path',
  scheme: 'url.scheme',
  serverAddress: 'server.address',
  serverPort: 'server.port',
  errorType: 'error.type',
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  requestModel: 'gen_ai.request.model',
  requestMaxTokens: 'gen_ai.request.max_tokens',
  requestStream: 'gen_ai.request.stream',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
} as const;

/** The span event of an attempt that failed, and its attributes. */
export const FAILED_ATTEMPT = {
  event: `${FIELD_PREFIX}attempt_failed`,
  attempt: `${FIELD_PREFIX}attempt`,
  replica: `${FIELD_PREFIX}${'replica' satisfies keyof RequestRecord}`,
  code: SEMCONV.errorType,
} as const;
