import { json } from '../content.ts';
import { defineRoute } from '../route.ts';
import { statsSchema, toStatsView } from '../views.ts';

/** GET /admin/stats. */
export const showStats = defineRoute({
  method: 'GET',
  path: '/admin/stats',
  operationId: 'showStats',
  summary: 'The export counters',
  description:
    'At any moment: recorded + restored = exported + dropped + rejected + queued + spooled + lost. ' +
    'All count records, from the start of the gateway, but failed_calls.',
  answer: { description: 'The counters.', content: json(statsSchema) },
  async handle(_call, { settleRecords, stats }) {
    await settleRecords();
    return { body: toStatsView(stats()) };
  },
});
