import { z } from 'zod';
import { json } from '../content.ts';
import { recordSchema } from '../record-view.ts';
import { defineRoute } from '../route.ts';

/** GET /admin/records. */
export const listRecords = defineRoute({
  method: 'GET',
  path: '/admin/records',
  operationId: 'listRecords',
  summary: 'The latest request records',
  description: 'The last 500 are kept in memory, whatever became of their export; a restart forgets them.',
  query: {
    limit: z
      .string()
      .regex(/^[1-9]\d{0,3}$/)
      .default('100')
      .describe('How many at most: a whole number; there are never more than 500.'),
  },
  answer: {
    description: 'The records, newest first.',
    content: json(z.object({ records: z.array(recordSchema).readonly() })),
  },
  async handle({ query }, { settleRecords, recentRecords }) {
    await settleRecords();
    return { body: { records: recentRecords.latest(Number(query.limit)) } };
  },
});
