import { z } from 'zod';
import { passedPath } from './addresses.ts';
import { listOf, oneOf, retriedStatus, text, wholeNumber } from './codecs.ts';
import { FURTHER_ENDPOINTS } from './endpoint-paths.ts';
import { section } from './keys.ts';

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/; // a token: RFC 9110 5.6.2
const MODEL_NAME = /^(?!\*$)[^\p{Cc}]{1,256}$/u;

const headerName = () => text('the name of a request header', HEADER_NAME);

/** `headers`: the request headers that are recorded. */
export const headers = section({
  tenant: headerName().prefault('X-Tenant').describe('The request header that names the tenant.'),
  feature: headerName().prefault('X-Feature').describe('The request header that names the feature.'),
  conversation: headerName()
    .prefault('X-Session-Id')
    .describe('The request header that names the conversation to which a request belongs.'),
});

/** `endpoints`: what is recorded beside the endpoints that are always on. */
export const endpoints = listOf(
  oneOf(FURTHER_ENDPOINTS),
  `a list of different names: ${FURTHER_ENDPOINTS.join(', ')}`,
  { isSet: true },
);

/** `pass`: what is relayed and not recorded. */
export const pass = listOf(passedPath(), 'a list of methods and paths, such as GET /version');

const aliasesTitle = 'names with the names of models, such as gpt-4o: llama-3.3-70b';
const aliasName = () => text('the name of a model, at most 256 characters', MODEL_NAME);

/** `aliases`: further names of models. */
export const aliases = z
  .record(aliasName(), aliasName(), { error: aliasesTitle })
  .meta({ title: aliasesTitle });

/** `routing`: how a replica is chosen. */
export const routing = section({
  policy: oneOf(['round_robin', 'least_inflight', 'prefix_affinity'])
    .prefault('round_robin')
    .describe(
      'Which replica a request goes to: `round_robin`: the next one; `least_inflight`: the one with the fewest requests in flight; `prefix_affinity`: the one that has served requests with the same beginning.',
    ),
});

/** `retry`: which answers of a replica another one may still better. */
export const retry = section({
  statuses: listOf(retriedStatus(), 'a list of different statuses: 429, 500, 501, 502, 503, 504', {
    isSet: true,
  })
    .prefault([])
    .describe(
      'The statuses after which another replica is tried, if nothing was sent to the client. Allowed: 429 and 500 to 504. By default every answer is relayed.',
    ),
  attempts: wholeNumber(1, 10)
    .prefault(1)
    .describe('How many further replicas a request is sent to because of such a status.'),
});
