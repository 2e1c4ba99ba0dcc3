import { z } from 'zod';
import { type Answer, DIMENSIONS, type Dimension, type UsageRow } from '#history';
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
import {
  type AskedSpan,
  readSpan,
  spanParams,
  spanSchema,
  stepParam,
  toStep,
} from '../../history/time-span.ts';
import { recordedName } from '../../query-params.ts';
import { defineRoute, json } from '../../route.ts';
import { roundTo3 } from '../../shown-record.ts';

const DAY_MS = 86_400_000;
/** A span has so many steps at most. */
const MAX_STEPS = 1_500;

const count = () => z.int().min(0);
const name = (what: string) =>
  z.string().nullable().optional().describe(`With \`by=${what}\`; null: not known.`);
const milliseconds = () => z.number().nullable();

const sumsShape = {
  requests: count(),
  attempts: count(),
  errors: count().describe('A 5xx status, or a response that broke off or contained an error event.'),
  client_errors: count().describe('Another status from 400, but 499.'),
  canceled: count().describe('The client left before the end.'),
  without_usage: count().describe('Requests that succeeded and whose tokens are not known.'),
  prompt_tokens: count(),
  completion_tokens: count(),
  cached_tokens: count(),
  reasoning_tokens: count(),
  gpu_seconds: z.number(),
  e2e_ms: z
    .object({ mean: milliseconds(), p50: milliseconds(), p95: milliseconds() })
    .describe('`mean` is of all requests, `p50` and `p95` are of those that succeeded.'),
  ttft_ms: z
    .object({ count: count(), mean: milliseconds(), p50: milliseconds(), p95: milliseconds() })
    .describe('Of the requests that had a first token.'),
  costs: z.record(z.string(), z.number()).describe('What they cost, by currency; empty without prices.'),
  failures: z
    .record(z.string(), count())
    .describe('How many requests failed or were canceled, by `error_type`, else by status.'),
};

const rowSchema = z
  .object({
    start: z.iso.datetime().describe('When its step begins; without `step`, when the span begins.'),
    ...Object.fromEntries(DIMENSIONS.map((each) => [each, name(each)])),
    other: z
      .boolean()
      .describe(
        'Whether it sums what has no row of its own: beyond `limit`, or beyond the 2,000 combinations of names that a minute or an hour has at most, and 2,000 more of tenant, client and model.',
      ),
    ...sumsShape,
  })
  .meta({ id: 'UsageRow', description: 'Sums of requests. Quantiles are off by at most 5 %.' });

/** Reads a list of dimensions, of those that are allowed. */
export const readBy = (allowed: readonly Dimension[]) =>
  z
    .string()
    .max(64)
    .transform((text, context) => {
      const names = text === '' ? [] : text.split(',');
      const known = allowed.filter((each) => names.includes(each));
      if (known.length === names.length) return names as readonly Dimension[];
      context.addIssue(`names of ${allowed.join(', ')}, each once, with commas between them`);
      return z.NEVER;
    })
    .optional()
    .describe(
      `By what it is summed: ${allowed.map((each) => `\`${each}\``).join(', ')}, with commas between them.`,
    );

const filter = (what: Dimension) =>
  recordedName().optional().describe(`Only requests with exactly this \`${what}\`.`);

/** GET /admin/usage. */
export const showUsage = defineRoute({
  method: 'GET',
  path: '/admin/usage',
  operationId: 'showUsage',
  summary: 'Who used how much',
  description:
    'Sums of the requests that arrived in a span, by tenant, client, model, replica or endpoint, from the history of this ' +
    'gateway. The span is rounded to minutes, to hours where minutes are not kept any more. Requests that run are not in ' +
    'it until they end.',
  query: {
    ...spanParams,
    by: readBy(DIMENSIONS),
    step: stepParam,
    tenant: filter('tenant'),
    client: filter('client'),
    model: filter('model'),
    replica: filter('replica'),
    endpoint: filter('endpoint'),
    limit: z
      .string()
      .regex(/^[1-9]\d{0,4}$/, 'a whole number from 1 to 99999')
      .transform(Number)
      .default(1_000)
      .describe(
        'The most rows; the largest first in each step. What is beyond is in one row with `other`. Default: 1000.',
      ),
  },
  response: {
    description: 'The sums.',
    content: json(
      z.object({
        rows: z.array(rowSchema).readonly(),
        total: z.object(sumsShape),
        ...spanSchema,
        by: z.array(z.enum(DIMENSIONS)).readonly(),
        resolution: z.enum(['minute', 'hour']).describe('What the span was rounded to.'),
        complete: z
          .boolean()
          .describe('Whether everything since the beginning that was asked for is kept, by its names.'),
        ...keptSchema,
      }),
    ),
  },
  errors: ['history_off', 'history_unavailable'],
  async handle({ query }, { settleRecords, history }) {
    const { by: names = [], limit, tenant, client, model, replica, endpoint } = query;
    const span = readSpan(query, { nowMs: Date.now(), defaultMs: DAY_MS });
    if (span instanceof AdminError) return span;
    const step = toStep(query.step, span, MAX_STEPS);
    if (step instanceof AdminError) return step;
    await settleRecords();
    const answer = await askHistory(history, {
      kind: 'usage',
      fromMs: span.fromMs,
      untilMs: span.untilMs,
      by: names,
      step,
      limit,
      filters: { tenant, client, model, replica, endpoint },
    });
    return answer instanceof AdminError ? answer : { body: toUsageJson(answer, span, names) };
  },
});

/** The answer of GET /admin/usage. */
export type UsageJson = ReturnType<typeof toUsageJson>;

/** Sums in the names of the API. */
export function toUsageJson(answer: Answer<'usage'>, span: AskedSpan, by: readonly Dimension[]) {
  const { fromMs, untilMs, resolution, rows, total, unnamed, isComplete, kept, unknown } = answer;
  const keptMs = resolution === 'minute' && !isComplete ? kept.minutesMs : kept.hoursMs;
  return {
    rows: rows.map((row) => ({
      start: toTime(row.startMs),
      ...Object.fromEntries(by.map((each, index) => [each, row.group[index] ?? null])),
      other: row.isOther,
      ...toSumsJson(row),
    })),
    total: toSumsJson(total),
    since: toTime(fromMs),
    until: toTime(untilMs),
    time_zone: span.timeZone,
    by,
    resolution,
    complete: span.fromMs >= keptMs && unnamed === 0,
    ...toKeptJson(answer),
    note: joinNotes(
      noteOfUnknown(unknown),
      unnamed === 0 ? null : `${unnamed} requests were summed without names, and are not in this answer.`,
      noteOfAge(span.fromMs, keptMs, 'Requests'),
    ),
  };
}

function toSumsJson({ sums, failures, costs, duration, firstToken }: UsageRow) {
  const { e2e_ms, ttft_ms, gpu_seconds, ...counts } = sums;
  const mean = (sum: number, of: number) => (of === 0 ? null : roundTo3(sum / of));
  const round = (ms: number | null) => (ms === null ? null : roundTo3(ms));
  return {
    ...counts,
    gpu_seconds,
    e2e_ms: { mean: mean(e2e_ms, counts.requests), p50: round(duration.p50), p95: round(duration.p95) },
    ttft_ms: {
      count: firstToken.count,
      mean: mean(ttft_ms, firstToken.count),
      p50: round(firstToken.p50),
      p95: round(firstToken.p95),
    },
    costs,
    failures,
  };
}
