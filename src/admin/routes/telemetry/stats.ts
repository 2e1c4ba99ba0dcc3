import { defineRoute, json } from '../../route.ts';
import { statsSchema, toStatsJson } from '../../schemas.ts';

/** GET /admin/stats. */
export const showStats = defineRoute({
  method: 'GET',
  path: '/admin/stats',
  operationId: 'showStats',
  summary: 'The export counters',
  description:
    'At any moment: recorded + restored = exported + dropped + rejected + queued + spooled + lost. ' +
    'All but failed_calls count records since the gateway started.',
  response: { description: 'The counters.', content: json(statsSchema) },
  async handle(_call, { settleRecords, stats }) {
    await settleRecords();
    return { body: toStatsJson(stats()) };
  },
});
