import { answerStream, DONE, event } from '#testkit/fake-replica.ts';
import { postBytes } from '#testkit/raw-http.ts';
import type { Traces } from './watched-gateway.ts';

type Place = keyof Traces;

/** The record as such: in the collector, in files of records, in the admin API and what commands print of it. */
const RECORD: readonly Place[] = ['exports', 'files', 'admin', 'commands'];

/**
 * What clients, engines and operators choose and the gateway may record, by the places where each is. The table of
 * docs/security.md says so to users.
 */
export const PERMITTED: Readonly<Record<string, readonly Place[]>> = {
  'permitted-tenant': ['exports', 'files', 'log', 'admin', 'metrics', 'commands'],
  'permitted-client': RECORD,
  'permitted-feature': RECORD,
  'permitted-level': RECORD,
  'permitted-conversation': RECORD,
  'permitted-request-id': RECORD,
  nickname: RECORD,
  'permitted-response-id': RECORD,
  'permitted-response-model': ['exports', 'files', 'admin', 'metrics', 'commands'],
  permitted_reason: RECORD,
  permitted_timing_ms: RECORD,
  'permitted-host': ['exports', 'files'],
  'permitted-tracestate': ['exports', 'files'],
  // With `trace.incoming: continue` it is the id of the request's trace, which exemplars of OpenMetrics name.
  feedfacefeedfacefeedfacefeedface: ['exports', 'files', 'log', 'admin', 'metrics', 'commands'],
  'permitted-reason': ['exports', 'files', 'log', 'admin', 'commands', 'redis'],
};

const BODY = JSON.stringify({
  model: 'm',
  stream: true,
  reasoning_effort: 'permitted-level',
  messages: [],
});

/** A request that has everything of a client that may be recorded. */
export const permittedBytes = (): Buffer => {
  const bytes = postBytes('/v1/chat/completions', BODY, [
    'X-Tenant: permitted-tenant',
    'X-Feature: permitted-feature',
    'X-Session-Id: permitted-conversation',
    'X-Request-Id: permitted-request-id',
    'traceparent: 00-feedfacefeedfacefeedfacefeedface-feedfacefeedface-01',
    'tracestate: v=permitted-tracestate',
  ]);
  return Buffer.from(bytes.toString('latin1').replace('Host: gateway', 'Host: permitted-host'), 'latin1');
};

/** An answer that has everything of an engine that may be recorded. */
export const permittedScript = answerStream([
  event({
    id: 'permitted-response-id',
    model: 'permitted-response-model',
    choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'permitted_reason' }],
  }),
  event({
    choices: [],
    usage: { prompt_tokens: 1, completion_tokens: 1 },
    timings: { permitted_timing_ms: 1 },
  }),
  DONE,
]);
