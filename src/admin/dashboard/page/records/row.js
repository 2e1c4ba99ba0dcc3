/** @import { ShownRecord } from './filters.js' */
import { create } from '../elements/dom.js';
import { formatCount, formatMs, formatTime, UNKNOWN } from '../elements/format.js';
import { nameElement } from '../elements/name.js';
import { toStatusGroup } from './filters.js';
import { createTraceLink } from './trace-link.js';

/**
 * Creates the row of a record.
 * @param {ShownRecord} record
 * @param {string | null} traceUrlTemplate
 * @param {(record: ShownRecord) => void} onOpen called when the details are wanted
 */
export function createRecordRow(record, traceUrlTemplate, onOpen) {
  const ended = formatTime(Date.parse(record.ts) + record.e2e_ms);
  const time = create('button', { type: 'button', class: 'link' }, ended);
  time.setAttribute('aria-label', `Details of the request that ended at ${ended}`);
  time.addEventListener('click', () => onOpen(record));
  const status = create(
    'span',
    { class: 'status', 'data-group': toStatusGroup(record) },
    String(record.status),
  );
  if (record.error_type !== undefined) status.append(create('span', { class: 'code' }, record.error_type));
  return create(
    'tr',
    {},
    create('td', { class: 'time' }, time),
    create('td', { class: 'status-cell', title: record.error_type ?? '' }, status),
    textCell('replica', record.replica),
    textCell('model', record.model),
    textCell('tenant', record.tenant),
    textCell('endpoint', ENDPOINTS.get(record.endpoint) ?? record.endpoint),
    numberCell('tokens-in', 'Tokens in', formatCount(record.prompt_tokens)),
    numberCell('tokens-out', 'Tokens out', formatCount(record.completion_tokens)),
    numberCell('ttft', 'First token', formatMs(record.ttft_ms)),
    numberCell('latency', 'Latency', formatMs(record.e2e_ms)),
    create('td', { class: 'trace' }, ...createTraceLink(record, traceUrlTemplate, 'Trace')),
  );
}

/** @type {ReadonlyMap<string, string>} */
const ENDPOINTS = new Map([
  ['/v1/chat/completions', 'chat'],
  ['/v1/completions', 'completions'],
  ['/v1/embeddings', 'embeddings'],
  ['/v1/responses', 'responses'],
  ['/v1/messages', 'messages'],
  ['/v1/messages/count_tokens', 'count tokens'],
  ['/v1/audio/transcriptions', 'transcriptions'],
  ['/v1/audio/translations', 'translations'],
]);

/**
 * @param {string} className
 * @param {string | undefined} text
 */
function textCell(className, text) {
  return create(
    'td',
    { class: text === undefined ? `${className} unknown` : className },
    nameElement('record-name', text ?? UNKNOWN),
  );
}

/**
 * @param {string} className
 * @param {string} label
 * @param {string} text
 */
function numberCell(className, label, text) {
  const known = text === UNKNOWN ? ' unknown' : '';
  return create('td', { class: `number ${className}${known}`, 'data-label': label }, text);
}
