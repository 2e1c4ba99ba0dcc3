import { z } from 'zod';
import type { Observation } from '#verdict';
import { defineRoute, json } from '../../route.ts';
import { roundTo3 } from '../../shown-record.ts';

const count = () => z.int().min(0);
const ms = () => z.number().min(0);

const observationSchema = z
  .object({
    replica: z.string(),
    model: z.string().nullable(),
    endpoint: z.string(),
    stream: z.boolean().describe('Whether the answer was a stream; false if the replica failed before it.'),
    prompt_tokens: count()
      .nullable()
      .describe('A quarter of the characters if the engine does not count tokens.'),
    cached_tokens: count().nullable(),
    completion_tokens: count().nullable(),
    max_tokens: z.number().nullable(),
    ttft_ms: ms().nullable().describe('Without what went before the attempt, as `e2e_ms`.'),
    gap_ms: ms().nullable().describe('The median gap between events with output.'),
    e2e_ms: ms(),
    outcome: z
      .enum(['ok', 'error', 'unclear'])
      .describe(
        '`error`: a status from 400 but 499, retried or not, an error event, a response that broke off, no answer in time, ' +
          'or no connection. `unclear`: the client left, or the status says neither.',
      ),
    finish: z.string().nullable().describe('The finish reason of the first choice.'),
  })
  .meta({
    id: 'Observation',
    description: 'The facts of one attempt at a replica that a comparison of replicas uses.',
  });

/** GET /admin/observations. */
export const listObservations = defineRoute({
  method: 'GET',
  path: '/admin/observations',
  operationId: 'listObservations',
  summary: 'What a comparison of replicas needs of every attempt',
  description:
    '`gateway rollout` follows all attempts with it, also those that another replica made good: call it again with `last`. The gateway begins to keep them with the ' +
    'first call, keeps the last 65,536 at least, and stops a minute after the last call.',
  query: {
    after: z
      .string()
      .regex(/^\d{1,15}$/, 'a whole number of at most 15 digits')
      .default('0')
      .describe('Return only attempts after this number: `last` of the call before.'),
  },
  response: {
    description: 'At most 10,000 attempts, in the order in which their requests ended.',
    content: json(
      z.object({
        observations: z.array(observationSchema).readonly(),
        last: count().describe('The number of the last attempt.'),
        missed: count().describe('Attempts after the given number that are not kept any more.'),
        routing_policy: z.string().describe('`routing.policy` of the configuration.'),
        started_at: z.iso
          .datetime()
          .describe(
            'When this gateway started. If it is another time than before, the numbers began again at 1.',
          ),
      }),
    ),
  },
  async handle({ query: { after } }, { settleRecords, observations, routingPolicy, dashboard }) {
    await settleRecords();
    const page = observations.after(Number(after));
    return {
      body: {
        observations: page.observations.map(toJson),
        last: page.last,
        missed: page.missed,
        routing_policy: routingPolicy(),
        started_at: dashboard.gateway().startedAt,
      },
    };
  },
});

function toJson(observation: Observation): z.output<typeof observationSchema> {
  const { replica, model, endpoint, stream, ttftMs, gapMs, e2eMs, outcome, finish } = observation;
  return {
    replica,
    model,
    endpoint,
    stream,
    prompt_tokens: observation.promptTokens,
    cached_tokens: observation.cachedTokens,
    completion_tokens: observation.completionTokens,
    max_tokens: observation.maxTokens,
    ttft_ms: ttftMs === null ? null : roundTo3(ttftMs),
    gap_ms: gapMs === null ? null : roundTo3(gapMs),
    e2e_ms: roundTo3(e2eMs),
    outcome,
    finish,
  };
}
