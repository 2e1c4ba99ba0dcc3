import { z } from 'zod';
import { recordSchema } from '../record-schema.ts';
import { type ReplicaJson, replicaSchema, statsSchema, waitingSchema } from '../schemas.ts';
import type { Figures } from './live-figures.ts';
import type { Traffic } from './traffic-window.ts';

const rate = () => z.number().min(0);
const milliseconds = () => z.number().min(0).nullable().describe('Null if no request provides it.');

const trafficSchema = z
  .object({
    requests: z.int().min(0),
    errors: z.int().min(0).describe('Requests that ended with a 5xx status or an incomplete response.'),
    requests_per_s: rate(),
    output_tokens_per_s: rate().describe(
      'Tokens of requests whose engine reported usage, counted when they ended.',
    ),
    ttft_p50_ms: milliseconds(),
    ttft_p95_ms: milliseconds(),
    latency_p50_ms: milliseconds(),
    latency_p95_ms: milliseconds(),
  })
  .meta({ id: 'Traffic' });

const replicaWithTraffic = replicaSchema.extend({ last_minute: trafficSchema });

const pastSchema = trafficSchema.extend({
  time: z.iso.datetime().describe('The end of this 5-second interval.'),
  inflight: z.int().min(0),
  queued: z.int().min(0),
});

/** Everything that the dashboard shows. Quantiles are off by at most 4 %. */
export const overviewSchema = z
  .object({
    time: z.iso.datetime(),
    started_at: z.iso.datetime().describe('When this gateway started. Record numbers start at 1 then.'),
    trace_url_template: z.string().nullable().describe('A URL with `{trace_id}` in it.'),
    last_minute: trafficSchema,
    replicas: z.array(replicaWithTraffic.meta({ id: 'ReplicaWithTraffic' })),
    waiting: waitingSchema,
    stats: statsSchema,
    queue_size: z.int().min(1).describe('The most records that may wait.'),
    collector: z.object({
      state: z.enum(['idle', 'taking', 'refusing', 'failing']),
      since: z.iso.datetime(),
      failed_calls: z.int().min(0).describe('Export calls that have failed since then.'),
    }),
    history: z.array(pastSchema).describe('The last five minutes, oldest first.'),
    records: z
      .array(recordSchema.omit({ prefix_hashes: true, timings: true }))
      .describe('The records after the given number, newest first.'),
    last_record: z
      .int()
      .min(0)
      .describe('The number of the newest record. Use it as `after` in the next call.'),
    can_change: z.boolean().describe('Whether the token of this call also allows changes, such as a drain.'),
  })
  .meta({ id: 'Overview' });

/** The response that the dashboard gets. */
export type Overview = z.output<typeof overviewSchema>;

/** Converts the figures to their part of the overview. `nowEpochMs` is the time of the figures. */
export function toFiguresJson(
  { total, byReplica, collector, history }: Figures,
  replicas: readonly ReplicaJson[],
  nowEpochMs: number,
): Pick<Overview, 'time' | 'last_minute' | 'replicas' | 'collector' | 'history'> {
  return {
    time: new Date(nowEpochMs).toISOString(),
    last_minute: toTrafficJson(total),
    replicas: replicas.map((replica) => ({
      ...replica,
      last_minute: toTrafficJson(byReplica.get(replica.name) ?? NO_TRAFFIC),
    })),
    collector: { state: collector.kind, since: collector.since, failed_calls: collector.failedCalls },
    history: history.map((past) => ({
      ...toTrafficJson(past),
      time: new Date(nowEpochMs - past.agoMs).toISOString(),
      inflight: past.inflight,
      queued: past.queued,
    })),
  };
}

const NO_TRAFFIC: Traffic = {
  requests: 0,
  errors: 0,
  requestsPerSecond: 0,
  outputTokensPerSecond: 0,
  ttftP50Ms: null,
  ttftP95Ms: null,
  latencyP50Ms: null,
  latencyP95Ms: null,
};

function toTrafficJson(traffic: Traffic): Overview['last_minute'] {
  return {
    requests: traffic.requests,
    errors: traffic.errors,
    requests_per_s: traffic.requestsPerSecond,
    output_tokens_per_s: traffic.outputTokensPerSecond,
    ttft_p50_ms: traffic.ttftP50Ms,
    ttft_p95_ms: traffic.ttftP95Ms,
    latency_p50_ms: traffic.latencyP50Ms,
    latency_p95_ms: traffic.latencyP95Ms,
  };
}
