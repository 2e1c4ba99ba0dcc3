/** @import { UsageJson } from '../../../routes/history/usage.ts' */
/** @import { ShownRecord } from './filters.js' */
import { toStatusGroup } from './filters.js';

/** What a request is compared with: the requests of its model and endpoint that succeeded in its hour. Pure. */

/**
 * What is usual among them. Milliseconds; null: not known.
 * @typedef {object} Usual
 * @property {number} requests
 * @property {number | null} e2eP50Ms
 * @property {number | null} e2eP95Ms
 * @property {number | null} firstTokenP50Ms
 * @property {number | null} promptTokens on average
 * @property {number | null} tokens of an answer, on average
 * @property {number | null} tokenMs per token of an answer
 */

const HOUR_MS = 3_600_000;
/** Fewer say nothing of what is usual. */
const LEAST_REQUESTS = 5;

/**
 * The parameters of GET /admin/usage for them; null: none is like one without a model, or one that was refused.
 * @param {ShownRecord} record
 * @returns {Readonly<Record<string, string>> | null}
 */
export function toLikeQuery(record) {
  const { ts, model, endpoint } = record;
  if (model === undefined || toStatusGroup(record) === 'client_error') return null;
  const fromMs = Math.floor(Date.parse(ts) / HOUR_MS) * HOUR_MS;
  return {
    since: new Date(fromMs).toISOString(),
    until: new Date(fromMs + HOUR_MS).toISOString(),
    endpoint,
    model,
  };
}

/**
 * What is usual; null if there are too few.
 * @param {Pick<UsageJson, 'total'>} usage
 * @returns {Usual | null}
 */
export function toUsual({ total }) {
  const { without_usage, prompt_tokens, completion_tokens, e2e_ms, ttft_ms } = total;
  const requests = total.requests - total.errors - total.client_errors - total.canceled;
  if (requests < LEAST_REQUESTS) return null;
  const counted = requests - without_usage;
  const mean = (/** @type {number} */ sum) => (counted > 0 && sum > 0 ? sum / counted : null);
  // Of what is no stream, all of the time belongs to its tokens.
  const tokensMs = (e2e_ms.mean ?? 0) * total.requests - (ttft_ms.mean ?? 0) * ttft_ms.count;
  return {
    requests,
    e2eP50Ms: e2e_ms.p50,
    e2eP95Ms: e2e_ms.p95,
    firstTokenP50Ms: ttft_ms.p50,
    promptTokens: mean(prompt_tokens),
    tokens: mean(completion_tokens),
    tokenMs: completion_tokens > 0 && tokensMs > 0 ? tokensMs / completion_tokens : null,
  };
}
