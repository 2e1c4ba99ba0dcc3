import { z } from 'zod';
import { recordSchema } from '../record-schema.ts';
import { defineRoute, json } from '../route.ts';

/** GET /admin/records. */
export const listRecords = defineRoute({
  method: 'GET',
  path: '/admin/records',
  operationId: 'listRecords',
  summary: 'The latest request records',
  description: 'The gateway keeps the last 500 records in memory, exported or not. A restart forgets them.',
  query: {
    limit: z
      .string()
      .regex(/^[1-9]\d{0,3}$/)
      .default('100')
      .describe('The most records to return: a whole number. There are never more than 500.'),
  },
  response: {
    description: 'The records, newest first.',
    content: json(z.object({ records: z.array(recordSchema).readonly() })),
  },
  async handle({ query }, { settleRecords, recentRecords }) {
    await settleRecords();
    return { body: { records: recentRecords.latest(Number(query.limit)) } };
  },
});
