/** @import { ShownRecord } from './filters.js' */
import { byId, create } from './dom.js';
import { formatCount, formatMs } from './format.js';

/** @param {unknown} value */
const asText = (value) => (Array.isArray(value) ? value.join(', ') : String(value));
/** @param {unknown} value */
const duration = (value) => formatMs(Number(value));
/** @param {unknown} value */
const count = (value) => formatCount(Number(value));
/** @param {unknown} value */
const yesOrNo = (value) => (value === true ? 'yes' : 'no');

/** @type {readonly (readonly [field: keyof ShownRecord, title: string, write: (value: unknown) => string])[]} */
const FIELDS = [
  ['status', 'Status', asText],
  ['error_type', 'Error', asText],
  ['truncated', 'Incomplete', yesOrNo],
  ['ts', 'Arrived', asText],
  ['endpoint', 'Endpoint', asText],
  ['replica', 'Replica', asText],
  ['attempts', 'Attempts', count],
  ['model', 'Model', asText],
  ['tenant', 'Tenant', asText],
  ['feature', 'Feature', asText],
  ['stream', 'Streamed', yesOrNo],
  ['prompt_chars', 'Prompt characters', count],
  ['prompt_tokens', 'Prompt tokens', count],
  ['cached_tokens', 'Cached tokens', count],
  ['completion_tokens', 'Completion tokens', count],
  ['reasoning_tokens', 'Reasoning tokens', count],
  ['max_tokens', 'Token limit', count],
  ['finish_reasons', 'Finish reasons', asText],
  ['queue_ms', 'Waited for a replica', duration],
  ['ttft_ms', 'First token', duration],
  ['gap_p50_ms', 'Gap p50', duration],
  ['gap_p95_ms', 'Gap p95', duration],
  ['e2e_ms', 'Latency', duration],
  ['request_id', 'Request ID', asText],
  ['client_request_id', 'Client request ID', asText],
  ['trace_id', 'Trace ID', asText],
];

/**
 * Opens the dialog with all known details of a request.
 * @param {ShownRecord} record
 */
export function showDetails(record) {
  const known = FIELDS.filter(([field]) => record[field] !== undefined);
  byId('details-fields', HTMLElement).replaceChildren(
    ...known.map(([field, title, write]) =>
      create('div', {}, create('dt', {}, title), create('dd', {}, write(record[field]))),
    ),
  );
  byId('details', HTMLDialogElement).showModal();
}
