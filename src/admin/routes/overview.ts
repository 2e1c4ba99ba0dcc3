import { z } from 'zod';
import { overviewSchema, toFiguresJson } from '../dashboard/overview.ts';
import { defineRoute, json } from '../route.ts';
import { toReplicaJson, toStatsJson } from '../schemas.ts';

/** The most records in one response. The dashboard keeps no more. */
const MAX_RECORDS = 500;

/** GET /admin/overview. */
export const showOverview = defineRoute({
  method: 'GET',
  path: '/admin/overview',
  operationId: 'showOverview',
  summary: 'Everything that the dashboard shows, in one response',
  description:
    'This call is made for the dashboard and may change with it. Other programs should use the other calls.',
  query: {
    after: z
      .string()
      .regex(/^\d{1,15}$/)
      .default('0')
      .describe('Return only records after this number. Use the last value of `last_record`.'),
  },
  response: { description: 'The current state.', content: json(overviewSchema) },
  async handle({ query, canChange }, { settleRecords, registry, fleet, stats, dashboard, recentRecords }) {
    await settleRecords();
    const figures = dashboard.figures();
    const records = recentRecords.latest(MAX_RECORDS, Number(query.after));
    return {
      body: {
        ...toFiguresJson(
          figures,
          registry.all.map((replica) => toReplicaJson(replica, fleet)),
          Date.now(),
        ),
        waiting: registry.waiting,
        started_at: dashboard.startedAt,
        trace_url_template: dashboard.traceUrlTemplate,
        stats: toStatsJson(stats()),
        queue_size: dashboard.queueSize,
        records: records.map(({ prefix_hashes: _hashes, timings: _timings, ...shown }) => shown),
        last_record: recentRecords.lastNumber,
        can_change: canChange,
      },
    };
  },
});
