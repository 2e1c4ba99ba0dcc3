/** @import { ShownRecord } from './filters.js' */
import { byId, create } from './dom.js';
import { formatCount, formatMs } from './format.js';

/** @param {unknown} value */
const plain = (value) => (Array.isArray(value) ? value.join(', ') : String(value));
/** @param {unknown} value */
const duration = (value) => formatMs(Number(value));
/** @param {unknown} value */
const count = (value) => formatCount(Number(value));
/** @param {unknown} value */
const yesOrNo = (value) => (value === true ? 'yes' : 'no');

/** @type {readonly (readonly [field: keyof ShownRecord, title: string, write: (value: unknown) => string])[]} */
const FIELDS = [
  ['status', 'Status', plain],
  ['error_type', 'Error', plain],
  ['truncated', 'Broke off', yesOrNo],
  ['ts', 'Arrived', plain],
  ['endpoint', 'Endpoint', plain],
  ['replica', 'Replica', plain],
  ['attempts', 'Attempts', count],
  ['model', 'Model', plain],
  ['tenant', 'Tenant', plain],
  ['feature', 'Feature', plain],
  ['stream', 'Streamed', yesOrNo],
  ['prompt_chars', 'Prompt characters', count],
  ['prompt_tokens', 'Prompt tokens', count],
  ['cached_tokens', 'Cached tokens', count],
  ['completion_tokens', 'Completion tokens', count],
  ['reasoning_tokens', 'Reasoning tokens', count],
  ['max_tokens', 'Limit of tokens', count],
  ['finish_reasons', 'Finish reasons', plain],
  ['queue_ms', 'Waited for a replica', duration],
  ['ttft_ms', 'First token', duration],
  ['gap_p50_ms', 'Gap p50', duration],
  ['gap_p95_ms', 'Gap p95', duration],
  ['e2e_ms', 'Latency', duration],
  ['request_id', 'Request id', plain],
  ['client_request_id', "Client's request id", plain],
  ['trace_id', 'Trace id', plain],
];

/**
 * Opens the dialog with all that is known of a request.
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
