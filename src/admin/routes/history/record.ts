import { z } from 'zod';
import { toShownName } from '#otel/base';
import { ADMIN_ERRORS, AdminError } from '../../admin-error.ts';
import { askHistory, keptSchema, toKeptJson, toTime } from '../../history/history-answer.ts';
import { defineRoute, json } from '../../route.ts';
import { shownRecordSchema, toRecordJson } from '../../shown-record.ts';

/** A trace may have many requests. */
const MAX_FOUND = 100;

const foundSchema = z.object({
  records: z.array(shownRecordSchema).readonly(),
  ...keptSchema,
});

/** The answer of GET /admin/records/{id}. */
export type FoundJson = z.output<typeof foundSchema>;

/** GET /admin/records/{id}. */
export const findRecord = defineRoute({
  method: 'GET',
  path: '/admin/records/{id}',
  params: { id: 'A `request_id`, `trace_id`, `response_id` or `client_request_id`.' },
  operationId: 'findRecord',
  summary: 'The records with an id',
  description:
    'Looks in the history of this gateway for the requests with this id, which may be any of four.',
  response: {
    description: 'The records, newest first: at most 100.',
    content: json(foundSchema),
  },
  errors: ['record_not_found', 'history_off', 'history_unavailable'],
  async handle({ params: { id } }, { settleRecords, history, gatewayName }) {
    await settleRecords();
    // As records have it: a client's own may be long.
    const answer = await askHistory(history, { kind: 'find', id: toShownName(id), limit: MAX_FOUND });
    if (answer instanceof AdminError) return answer;
    const { records, damagedBlocks } = answer;
    if (records.length === 0) {
      const { message } = ADMIN_ERRORS.record_not_found;
      const since = toTime(answer.kept.recordsMs);
      const known = `${gatewayName} has the records since ${since}; a request of another gateway is in the history of that one.`;
      return new AdminError('record_not_found', {
        message: `${message} ${known}${toDamageNote(damagedBlocks)}`,
      });
    }
    return {
      body: {
        records: records.map(({ record }) => toRecordJson(record)),
        ...toKeptJson(answer),
        note: damagedBlocks === 0 ? null : toDamageNote(damagedBlocks).trim(),
      },
    };
  },
});

function toDamageNote(damagedBlocks: number): string {
  return damagedBlocks === 0 ? '' : ` ${damagedBlocks} blocks of records are damaged and could not be read.`;
}
