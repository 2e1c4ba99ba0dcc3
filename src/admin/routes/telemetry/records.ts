import { z } from 'zod';
import { hasFailed } from '#otel/outcome';
import type { RequestRecord } from '#otel/record/registry';
import { defineRoute, json } from '../../route.ts';
import { afterParam, shownRecordSchema, toRecordJson } from '../../shown-record.ts';

/** GET /admin/records. */
export const listRecords = defineRoute({
  method: 'GET',
  path: '/admin/records',
  operationId: 'listRecords',
  summary: 'The latest request records',
  description:
    'The gateway keeps the last 500 records, those of the last 200 errors and those of the last 200 client errors in ' +
    'memory, exported or not. A restart forgets them. A record must match all filters that are given.',
  query: {
    limit: z
      .string()
      .regex(/^[1-9]\d{0,3}$/, 'a whole number from 1 to 9999')
      .default('100')
      .describe('The most records to return: a whole number. There are never more than 900.'),
    after: afterParam,
    replica: z.string().optional().describe('Only records with exactly this `replica`.'),
    model: z.string().optional().describe('Only records with exactly this `model`.'),
    tenant: z.string().optional().describe('Only records with exactly this `tenant`.'),
    status: z
      .string()
      .regex(/^[1-5](?:\d\d|xx)$/, 'a status such as 404, or a class such as 5xx')
      .optional()
      .describe('Only records with this status, such as 404, or of this class, such as 5xx.'),
    failed: z
      .enum(['true', 'false'])
      .optional()
      .describe(
        '`true`: only records of failed requests, also older ones than the last 500. An error has a 5xx status, or its ' +
          'response broke off or contained an error event; a client error has another 4xx status than 499. A client that ' +
          'disconnected is no failure. `false`: only the others.',
      ),
  },
  response: {
    description: 'The records, newest first.',
    content: json(
      z.object({
        records: z.array(shownRecordSchema).readonly(),
        last_record: z
          .int()
          .min(0)
          .describe(
            'The number of the newest record, whether it matches or not. Use it as `after` in the next call.',
          ),
        started_at: z.iso
          .datetime()
          .describe(
            'When this gateway started. If it is another time than before, the numbers began again at 1.',
          ),
      }),
    ),
  },
  async handle({ query: { limit, after, failed, ...filters } }, { settleRecords, recentRecords, dashboard }) {
    await settleRecords();
    const matchesFilters = toMatcher(filters);
    const matches = (record: RequestRecord) =>
      matchesFilters(record) && (failed !== 'false' || !hasFailed(record));
    const search = { limit: Number(limit), after: Number(after), matches };
    const records = failed === 'true' ? recentRecords.failed(search) : recentRecords.latest(search);
    return {
      body: {
        records: records.map(toRecordJson),
        last_record: recentRecords.lastNumber,
        started_at: dashboard.gateway().startedAt,
      },
    };
  },
});

interface Filters {
  readonly replica?: string | undefined;
  readonly model?: string | undefined;
  readonly tenant?: string | undefined;
  readonly status?: string | undefined;
}

function toMatcher({ replica, model, tenant, status }: Filters): (record: RequestRecord) => boolean {
  return (record) =>
    (replica === undefined || record.replica === replica) &&
    (model === undefined || record.model === model) &&
    (tenant === undefined || record.tenant === tenant) &&
    (status === undefined || isOfStatus(record.status, status));
}

/** `pattern`: a status, or a class such as `5xx`. */
function isOfStatus(status: number, pattern: string): boolean {
  return pattern.endsWith('xx')
    ? Math.floor(status / 100) === Number(pattern[0])
    : status === Number(pattern);
}
