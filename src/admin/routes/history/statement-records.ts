import { z } from 'zod';
import type { Answer } from '#history';
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

/** Pages are digested in the thread of the history, and sent from the one that serves. */
const PAGE = 1_000;
const DAY_MS = 86_400_000;

const statedRecordSchema = z
  .object({
    instance: z.string(),
    seq: z.int(),
    ts: z.string(),
    model: z.string().nullable(),
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    cached_tokens: z.int(),
    reasoning_tokens: z.int(),
    gpu_seconds: z.number(),
    cost: z.number().nullable(),
    currency: z.string().nullable(),
    digest: z
      .string()
      .describe('The first 16 bytes of its digest, in base64: see docs/internals/ledger-form.md.'),
  })
  .meta({
    id: 'StatedRecord',
    description: 'What a statement has of a record, with all digits. What is not known of it is 0 or null.',
  });

const lossSchema = z
  .object({
    instance: z.string(),
    first: z.int(),
    last: z.int(),
    why: z.enum(['dropped', 'lost', 'unencodable', 'rejected']),
    known: z.boolean().describe('Whether the records have ended: otherwise nobody knows whose they were.'),
    from: z.iso.datetime(),
    until: z.iso.datetime(),
  })
  .meta({ id: 'RecordLoss', description: 'Records, by their numbers, that were not exported.' });

/** GET /admin/statement-records. */
export const listStatementRecords = defineRoute({
  method: 'GET',
  path: '/admin/statement-records',
  operationId: 'listStatementRecords',
  summary: 'The records of a tenant, as a statement lists them',
  description:
    'What `gateway statement` is made of, from the history of this gateway, in pages of at most 1,000 records. `since` and ' +
    '`until` are those of the month.',
  query: {
    tenant: recordedName()
      .refine((name) => name !== '', 'the name of a tenant')
      .describe('Whose.'),
    ...spanParams,
    before: readBefore.describe('The page before this number: `next` of the last answer.'),
  },
  response: {
    description: 'The records, newest first.',
    content: json(
      z.object({
        gateway: z.string(),
        instance_id: z.string(),
        records: z.array(statedRecordSchema).readonly(),
        unnumbered: z.int().min(0).describe('Records of this page that have no number.'),
        losses: z
          .array(lossSchema)
          .readonly()
          .describe('Of all tenants, since the span began; empty but on the first page.'),
        losses_since: z.iso.datetime().describe('From when on losses are known.'),
        ended_until: z.iso.datetime().describe('Every request that arrived before has ended.'),
        next: z.int().nullable().describe('Use it as `before` for the next page; null: there is none.'),
        damaged_blocks: z.int().min(0).describe('Blocks of records that could not be read.'),
        ...spanSchema,
        ...keptSchema,
      }),
    ),
  },
  errors: ['history_off', 'history_unavailable'],
  async handle({ query }, { settleRecords, history, gatewayName, instanceId }) {
    const { tenant, before = null, ...asked } = query;
    const span = readSpan(asked, { nowMs: Date.now(), defaultMs: DAY_MS });
    if (span instanceof AdminError) return span;
    const endedMs = Date.now() - (await settleRecords());
    const { fromMs, untilMs, timeZone } = span;
    const answer = await askHistory(history, {
      kind: 'statement',
      tenant,
      fromMs,
      untilMs,
      before,
      limit: PAGE,
    });
    if (answer instanceof AdminError) return answer;
    const numbered = answer.records.filter(
      ({ record }) => record.instance !== undefined && record.seq !== undefined,
    );
    return {
      body: {
        gateway: gatewayName,
        instance_id: instanceId,
        records: numbered.map(toStatedRecord),
        unnumbered: answer.records.length - numbered.length,
        losses: answer.losses.map(toLossJson),
        losses_since: toTime(answer.kept.lossesMs),
        ended_until: toTime(endedMs),
        next: answer.next,
        damaged_blocks: answer.damagedBlocks,
        since: toTime(fromMs),
        until: toTime(untilMs),
        time_zone: timeZone,
        ...toKeptJson(answer),
        note: joinNotes(noteOfUnknown(answer.unknown), noteOfAge(fromMs, answer.kept.recordsMs, 'Records')),
      },
    };
  },
});

function toStatedRecord({ record, digest }: { readonly record: RequestRecord; readonly digest: string }) {
  const { instance = '', seq = 0, ts, model = null, cost = null, currency = null } = record;
  return {
    instance,
    seq,
    ts,
    model,
    prompt_tokens: record.prompt_tokens ?? 0,
    completion_tokens: record.completion_tokens ?? 0,
    cached_tokens: record.cached_tokens ?? 0,
    reasoning_tokens: record.reasoning_tokens ?? 0,
    gpu_seconds: record.gpu_seconds ?? 0,
    cost,
    currency,
    digest,
  };
}

function toLossJson({ isKnown, fromMs, toMs, ...loss }: Answer<'statement'>['losses'][number]) {
  return { ...loss, known: isKnown, from: toTime(fromMs), until: toTime(toMs) };
}
