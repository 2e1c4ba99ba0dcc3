import { z } from 'zod';
import type { Answer, RecordedHistory } from '#history';
import { hasFailed } from '#otel/outcome';
import type { RequestRecord } from '#otel/record/registry';
import { AdminError } from '../../admin-error.ts';
import {
  askHistory,
  joinNotes,
  keptSchema,
  noteOfAge,
  noteOfUnknown,
  toKeptJson,
  toTime,
} from '../../history/history-answer.ts';
import { readBefore, readSpan, spanParams, spanSchema } from '../../history/time-span.ts';
import { recordedName } from '../../query-params.ts';
import { defineRoute, json } from '../../route.ts';
import { afterParam, shownRecordSchema, toRecordJson } from '../../shown-record.ts';

/** GET /admin/records. */
export const listRecords = defineRoute({
  method: 'GET',
  path: '/admin/records',
  operationId: 'listRecords',
  summary: 'Request records: the latest, or those of a span',
  description:
    'The gateway keeps the last 500 records, those of the last 200 errors and those of the last 200 client errors in ' +
    'memory, exported or not. A restart forgets them. With `since`, `until` or `before` the answer comes from the ' +
    'history, in pages. A record must match all filters that are given.',
  query: {
    limit: z
      .string()
      .regex(/^[1-9]\d{0,3}$/, 'a whole number from 1 to 9999')
      .default('100')
      .describe(
        'The most records to return: a whole number. There are never more than 900, with the history 1,000.',
      ),
    after: afterParam,
    replica: z.string().optional().describe('Only records with exactly this `replica`.'),
    model: z.string().optional().describe('Only records with exactly this `model`.'),
    tenant: recordedName().optional().describe('Only records with exactly this `tenant`.'),
    client: z.string().optional().describe('Only records with exactly this `client`.'),
    ...spanParams,
    before: readBefore.describe('With the history: the page before this number, `next` of the last answer.'),
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
        history: z
          .object({
            next: z.int().nullable().describe('Use it as `before` for the next page; null: there is none.'),
            damaged_blocks: z.int().min(0).describe('Blocks of records that could not be read.'),
            ...spanSchema,
            ...keptSchema,
          })
          .optional()
          .describe('With `since`, `until` or `before`: what was looked at.'),
      }),
    ),
  },
  errors: ['history_off', 'history_unavailable'],
  async handle({ query }, { settleRecords, recentRecords, dashboard, history }) {
    await settleRecords();
    if ([query.since, query.until, query.before].some((value) => value !== undefined)) {
      const found = await listFromHistory(query, history);
      if (found instanceof AdminError) return found;
      const { startedAt } = dashboard.gateway();
      return { body: { ...found, last_record: recentRecords.lastNumber, started_at: startedAt } };
    }
    const { limit, after, failed, ...filters } = query;
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

/** Pages of the history are decoded in its thread and sent here. */
const MAX_PAGE = 1_000;
const DAY_MS = 86_400_000;

interface HistoryQuery extends Filters {
  readonly since?: string | undefined;
  readonly until?: string | undefined;
  readonly time_zone?: string | undefined;
  readonly before?: number | undefined;
  readonly limit: string;
  readonly failed?: 'true' | 'false' | undefined;
}

async function listFromHistory(query: HistoryQuery, history: Pick<RecordedHistory, 'ask'>) {
  const span = readSpan(query, { nowMs: Date.now(), defaultMs: DAY_MS });
  if (span instanceof AdminError) return span;
  const { replica, model, tenant, client, status, failed, before = null } = query;
  const { fromMs, untilMs, timeZone } = span;
  const answer = await askHistory(history, {
    kind: 'records',
    fromMs,
    untilMs: untilMs + 1,
    before,
    limit: Math.min(Number(query.limit), MAX_PAGE),
    filters: {
      replica,
      model,
      tenant,
      client,
      status,
      failed: failed === undefined ? undefined : failed === 'true',
    },
  });
  if (answer instanceof AdminError) return answer;
  return {
    records: answer.records.map(({ record }) => toRecordJson(record)),
    history: {
      next: answer.next,
      damaged_blocks: answer.damagedBlocks,
      since: toTime(fromMs),
      until: toTime(untilMs),
      time_zone: timeZone,
      ...toKeptJson(answer),
      note: toNote(answer, fromMs),
    },
  };
}

function toNote({ unknown, kept, damagedBlocks }: Answer<'records'>, fromMs: number): string | null {
  const damage =
    damagedBlocks === 0 ? null : `${damagedBlocks} blocks of records are damaged and could not be read.`;
  return joinNotes(noteOfUnknown(unknown), noteOfAge(fromMs, kept.recordsMs, 'Records'), damage);
}

interface Filters {
  readonly client?: string | undefined;
  readonly replica?: string | undefined;
  readonly model?: string | undefined;
  readonly tenant?: string | undefined;
  readonly status?: string | undefined;
}

function toMatcher({ replica, model, tenant, client, status }: Filters): (record: RequestRecord) => boolean {
  return (record) =>
    (replica === undefined || record.replica === replica) &&
    (model === undefined || record.model === model) &&
    (tenant === undefined || record.tenant === tenant) &&
    (client === undefined || record.client === client) &&
    (status === undefined || isOfStatus(record.status, status));
}

/** `pattern`: a status, or a class such as `5xx`. */
function isOfStatus(status: number, pattern: string): boolean {
  return pattern.endsWith('xx')
    ? Math.floor(status / 100) === Number(pattern[0])
    : status === Number(pattern);
}
