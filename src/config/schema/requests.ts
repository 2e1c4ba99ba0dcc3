import { z } from 'zod';
import { listOf, oneOf, retriedStatus, text, wholeNumber } from './codecs.ts';
import { FURTHER_ENDPOINTS } from './endpoint-paths.ts';
import { section } from './keys.ts';
import { passedPath } from './passed-path.ts';

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/; // a token: RFC 9110 5.6.2
const MODEL_NAME = /^(?!\*$)[^\p{Cc}]{1,256}$/u;

const headerName = () => text('the name of a request header', HEADER_NAME);

/** `headers`: the request headers that are recorded. */
export const headers = section({
  tenant: headerName().prefault('X-Tenant').describe('The tenant.'),
  feature: headerName().prefault('X-Feature').describe('The feature.'),
  conversation: headerName().prefault('X-Session-Id').describe('The conversation that a request belongs to.'),
  user: headerName().optional().describe('`user.id` of the span.'),
  session: headerName().optional().describe('`session.id`.'),
  agent: headerName().optional().describe('`gen_ai.agent.name`.'),
  prompt: headerName().optional().describe('`gen_ai.prompt.name`: the name of a prompt, not its text.'),
  prompt_version: headerName()
    .optional()
    .describe('The version of that prompt, with the newest names or the dialect langfuse.'),
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
      'Which replica gets a request: the next in turn, the one with the fewest in flight, or the one that served the same beginning: see routing.md.',
    ),
  tell: oneOf(['nobody', 'trusted'])
    .prefault('nobody')
    .describe(
      'Who is told the replica and why it was chosen, in `X-Gateway-Replica` and `X-Gateway-Route-Reason`. `trusted`: the clients in `gateway.trusted_proxies`.',
    ),
});

/** `retry`: which answers of a replica another one may still better. */
export const retry = section({
  statuses: listOf(retriedStatus(), 'a list of different statuses: 429, 500, 501, 502, 503, 504', {
    isSet: true,
  })
    .prefault([])
    .describe('The statuses after which another replica is tried, if nothing was sent to the client.'),
  attempts: wholeNumber(1, 10)
    .prefault(1)
    .describe('How many more replicas a request may try after such statuses.'),
});
