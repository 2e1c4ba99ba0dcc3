import { z } from 'zod';
import { json } from '../content.ts';
import { overviewSchema, toFiguresView } from '../dashboard/overview.ts';
import { defineRoute } from '../route.ts';
import { toReplicaView, toStatsView } from '../views.ts';

/** Records in one answer, at most: the dashboard holds no more. */
const MAX_RECORDS = 500;

/** GET /admin/overview. */
export const showOverview = defineRoute({
  method: 'GET',
  path: '/admin/overview',
  operationId: 'showOverview',
  summary: 'All that the dashboard shows, in one answer',
  description: 'Made for the dashboard, and may change with it: other programs ask the other calls.',
  query: {
    after: z
      .string()
      .regex(/^\d{1,15}$/)
      .default('0')
      .describe('Only records after this number, as `last_record` told it.'),
  },
  answer: { description: 'How things are.', content: json(overviewSchema) },
  async handle({ query }, { settleRecords, registry, fleet, stats, dashboard, recentRecords }) {
    await settleRecords();
    const figures = dashboard.figures();
    const records = recentRecords.latest(MAX_RECORDS, Number(query.after));
    return {
      body: {
        ...toFiguresView(
          figures,
          registry.all.map((replica) => toReplicaView(replica, fleet)),
          Date.now(),
        ),
        waiting: registry.waiting,
        started_at: dashboard.startedAt,
        trace_url_template: dashboard.traceUrlTemplate,
        stats: toStatsView(stats()),
        queue_size: dashboard.queueSize,
        records: records.map(({ prefix_hashes: _hashes, timings: _timings, ...shown }) => shown),
        last_record: recentRecords.lastNumber,
      },
    };
  },
});
