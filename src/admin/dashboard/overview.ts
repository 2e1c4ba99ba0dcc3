import { z } from 'zod';
import type { AttemptOutcome } from '#otel/outcome';
import { conditionSchema } from '../condition-schema.ts';
import { replicaSchema, statsSchema, waitingSchema } from '../schemas.ts';
import { shownRecordSchema } from '../shown-record.ts';
import { sourceSchema } from '../source-schema.ts';

const count = () => z.int().min(0);
const rate = () => z.number().min(0);
const milliseconds = (what: string) =>
  z.number().min(0).nullable().describe(`${what}. Successes only; null if no request provides it.`);

const trafficSchema = z
  .object({
    requests: count().describe('All requests that ended. Each is at most one of the following three.'),
    errors: count().describe(
      'Requests that ended with a 5xx status, or whose response broke off or contained an error event. ' +
        'A response that the client broke off is not an error.',
    ),
    client_errors: count().describe(
      'Requests that ended with a 4xx status other than 499, from the replica or from the gateway.',
    ),
    canceled: count().describe(
      'Requests whose client disconnected before the end of the response: status 499, or `client_closed`.',
    ),
    requests_per_s: rate(),
    output_tokens_per_s: rate().describe(
      'Tokens of requests whose engine reported usage, counted when they ended.',
    ),
    gpu_seconds: z
      .number()
      .min(0)
      .nullable()
      .describe(
        'The GPU time, in seconds, that was used in the interval by requests that have ended; null if none is known.',
      ),
    cost: z
      .number()
      .min(0)
      .nullable()
      .describe('What that GPU time costs, in `currency`, without costs in a former one; null if unknown.'),
    currency: z.string().nullable().describe('The currency of `cost`; null without one.'),
    ttft_p50_ms: milliseconds('The median time to the first token of streams'),
    ttft_p95_ms: milliseconds('The 95th percentile of the same'),
    latency_p50_ms: milliseconds('The median time from arrival to the end of the response'),
    latency_p95_ms: milliseconds('The 95th percentile of the same'),
  })
  .meta({
    id: 'Traffic',
    description:
      'Requests that ended in an interval. A success is a complete response with a 2xx status. Times are those that ' +
      'clients see: they hold the attempts that failed before, and the time in which a request waited for a replica.',
  });

const replicaTrafficSchema = trafficSchema
  .extend({
    requests: count().describe(
      'Requests that this replica answered, or that ended at it: `replica` of their records.',
    ),
    requests_per_s: rate(),
    attempts: count().describe(
      'Attempts at this replica; the sum of `outcomes`. They count when their requests end.',
    ),
    attempts_per_s: rate(),
    errors: count().describe('Attempts that failed: the outcomes `error` and `not_connected`.'),
    client_errors: count().describe('Attempts with the outcome `client_error`.'),
    canceled: count().describe('Attempts with the outcome `canceled`.'),
    outcomes: z
      .object({
        success: count(),
        error: count().describe(
          'A 5xx status, retried or not, no answer in time, or a response that broke off or contained an error event.',
        ),
        not_connected: count().describe('No connection came about, so nothing was sent.'),
        loading: count().describe('The replica answered that it is loading its model. No error.'),
        client_error: count().describe('A 4xx status of the replica other than 499, retried or not.'),
        canceled: count().describe(
          'The client left or did not send the rest of its body, or the gateway shut down.',
        ),
        repeated: count().describe(
          'Sent again to the same replica, which had closed a kept connection, or did not know `include_usage`. No error.',
        ),
        other: count().describe('A complete response with any other status, such as a redirect.'),
      } satisfies Record<AttemptOutcome, z.ZodType>)
      .describe('The attempts by what became of them.'),
    ttft_p50_ms: milliseconds(
      'The median time to the first token of streams, without what went before the attempt',
    ),
    latency_p50_ms: milliseconds(
      'The median time to the end of the response, without what went before the attempt: other attempts, and the time ' +
        'in which the request waited for a replica',
    ),
  })
  .meta({
    id: 'ReplicaTraffic',
    description:
      'Attempts at a replica, of requests that ended in an interval. A request that another replica answered in the end ' +
      'counts here as an attempt that failed. A replica that was drained before anything was sent to it has no attempt.',
  });

const perSlice = () => z.array(count()).readonly();

const trendSchema = z.object({ attempts: perSlice(), errors: perSlice() }).meta({
  id: 'Trend',
  description: 'Attempts at a replica: 60 numbers each, one per 5 seconds, oldest first: five minutes.',
});

const replicaWithTraffic = replicaSchema
  .extend({ last_minute: replicaTrafficSchema, trend: trendSchema })
  .meta({ id: 'ReplicaWithTraffic' });

const namedTrafficSchema = z
  .object({ name: z.string(), last_minute: trafficSchema })
  .meta({ id: 'NamedTraffic' });

const namesSchema = (what: string) =>
  z
    .array(namedTrafficSchema)
    .readonly()
    .describe(
      `The ${what} of requests in the last minute, most requests first. At most 50; all others are summed under the ` +
        'name `_OTHER`, which comes last.',
    );

const pastSchema = trafficSchema.extend({
  time: z.iso.datetime().describe('The end of this 5-second interval.'),
  inflight: count(),
  queued: count(),
});

const gatewaySchema = z
  .object({
    name: z.string().describe('`gateway.name` of the configuration.'),
    host: z.string().describe('The host name of the machine or container.'),
    pid: z.int().min(1).describe('The process id.'),
    version: z.string(),
    started_at: z.iso.datetime(),
    config_loaded_at: z.iso
      .datetime()
      .describe(
        'When the configuration in effect was read: at the start or by the last reload that succeeded.',
      ),
    workers: z.int().min(1).describe('How many threads serve clients.'),
  })
  .meta({ id: 'GatewayIdentity' });

const reasonSchema = z
  .object({
    code: z.string().describe('`error_type` of the records; without one the status as text, or `_OTHER`.'),
    status: z.int(),
    replica: z
      .string()
      .nullable()
      .describe('Null if no replica was tried; `_OTHER` where there are too many combinations.'),
    model: z
      .string()
      .nullable()
      .describe('Null if the request named none; `_OTHER` for models without a row of their own.'),
    count: z.int().min(1),
  })
  .meta({ id: 'FailureReason' });

const usedSchema = z.object({ now: count(), limit: z.int().min(1) });

const saturationSchema = z
  .object({
    workers: z
      .array(
        z.object({
          worker: z.int().min(1),
          event_loop_utilization: z
            .number()
            .min(0)
            .max(1)
            .describe('The share of the last five seconds in which its event loop was busy.'),
        }),
      )
      .readonly()
      .describe('The workers that run. A worker that died is absent until it is replaced.'),
    connections: usedSchema.describe('Client connections, and `limits.connections`.'),
    buffered_bytes: usedSchema.describe('Bytes of request bodies in memory, and `limits.buffered`.'),
    waiting: waitingSchema,
  })
  .meta({ id: 'Saturation' });

const shortRecordSchema = shownRecordSchema
  .omit({ prefix_hashes: true, timings: true })
  .meta({ id: 'ShortRecord', description: 'A record without prefix_hashes and timings.' });

const shortRecords = () => z.array(shortRecordSchema).readonly();

/** Everything that the dashboard shows. Quantiles are off by at most 4 %. */
export const overviewSchema = z
  .object({
    time: z.iso.datetime(),
    started_at: z.iso.datetime().describe('When this gateway started. Record numbers start at 1 then.'),
    gateway: gatewaySchema,
    trace_url_template: z.string().nullable().describe('A URL with `{trace_id}` in it.'),
    conditions: z
      .array(conditionSchema)
      .readonly()
      .describe('What is wrong now: the most severe first, then the oldest.'),
    last_minute: trafficSchema,
    replicas: z.array(replicaWithTraffic).readonly(),
    sources: z.array(sourceSchema).readonly(),
    models: namesSchema('models'),
    tenants: namesSchema('tenants'),
    waiting: waitingSchema,
    saturation: saturationSchema,
    stats: statsSchema,
    queue_size: z.int().min(1).describe('The most records that may wait.'),
    export_to: z.enum(['otlp', 'file']).describe('Whether the collector gets the records, or files.'),
    collector: z.object({
      state: z.enum(['idle', 'taking', 'refusing', 'failing']),
      since: z.iso.datetime(),
      failed_calls: count().describe('Export calls that have failed since then.'),
    }),
    history: z.array(pastSchema).describe('The last five minutes, oldest first.'),
    records: shortRecords().describe('The records after the given number, newest first, at most 500.'),
    failures: shortRecords().describe(
      'The records after the given number of the last 200 requests that count as `errors` and of the last 200 that ' +
        'count as `client_errors`, newest first.',
    ),
    failure_reasons: z
      .array(reasonSchema)
      .readonly()
      .describe('Why requests failed in the last minute, most frequent first, at most 50.'),
    last_record: count().describe('The number of the newest record. Use it as `after` in the next call.'),
    keeps_history: z.boolean().describe('Whether the gateway has a history: `history` is not off.'),
    other_gateways: z
      .array(z.string())
      .readonly()
      .nullable()
      .describe(
        'The names of the other gateways of its fleet that run: their requests are in none of these figures. Null without a fleet.',
      ),
    can_change: z.boolean().describe('Whether the token of this call also allows drains.'),
  })
  .meta({ id: 'Overview' });

/** The response that the dashboard gets. */
export type Overview = z.output<typeof overviewSchema>;
