/** @import { ShownRecord } from './filters.js' */
import { create } from '../elements/dom.js';

/**
 * A link to the trace of a record in the operator's trace viewer; nothing without a template.
 * @param {ShownRecord} record
 * @param {string | null} template a URL with `{trace_id}` in it
 * @param {string} text
 * @returns {readonly HTMLAnchorElement[]}
 */
export function createTraceLink({ trace_id }, template, text) {
  if (template === null) return [];
  const href = template.replaceAll('{trace_id}', encodeURIComponent(trace_id));
  const link = { href, target: '_blank', rel: 'noopener noreferrer', 'aria-label': `Trace ${trace_id}` };
  return [create('a', link, text)];
}
