import { z } from 'zod';
import { EVENT_KINDS } from '#history';
import { AdminError } from '../../admin-error.ts';
import { askHistory, keptSchema, noteOfAge, toKeptJson, toTime } from '../../history/history-answer.ts';
import { readBefore, readSpan, spanParams, spanSchema } from '../../history/time-span.ts';
import { defineRoute, json } from '../../route.ts';

const DAY_MS = 86_400_000;

const eventSchema = z
  .object({
    number: z.int().describe('Grows with each event.'),
    kind: z.enum(EVENT_KINDS),
    subject: z.string().describe('The replica, the condition with its subject, or empty.'),
    from: z.iso.datetime(),
    until: z.iso.datetime().nullable().describe('The same as `from` for a moment; null: it goes on.'),
    details: z
      .record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()]))
      .describe(
        'What is known of it: who, why, the sentence of a condition, the outcome of a step of a rollout.',
      ),
  })
  .meta({ id: 'TimelineEvent', description: 'Something that happened, or lasted.' });

const timelineSchema = z.object({
  events: z.array(eventSchema).readonly(),
  next: z.int().nullable().describe('Use it as `before` for the next page; null: there is none.'),
  ...spanSchema,
  ...keptSchema,
});

/** The answer of GET /admin/timeline. */
export type TimelineJson = z.output<typeof timelineSchema>;

/** GET /admin/timeline. */
export const showTimeline = defineRoute({
  method: 'GET',
  path: '/admin/timeline',
  operationId: 'showTimeline',
  summary: 'What happened',
  description:
    'Conditions, drains, shadows, steps of rollouts with their verdicts, health, reloads, starts and stops, from the history of ' +
    'this gateway. An event is in the answer if any part of it is in the span.',
  query: {
    ...spanParams,
    before: readBefore.describe('Return only events before this number: `next` of the last answer.'),
    limit: z
      .string()
      .regex(/^[1-9]\d{0,3}$/, 'a whole number from 1 to 9999')
      .transform(Number)
      .default(500)
      .describe('The most events of an answer. Default: 500.'),
  },
  response: {
    description: 'The events, newest first.',
    content: json(timelineSchema),
  },
  errors: ['history_off', 'history_unavailable'],
  async handle({ query }, { history }) {
    const span = readSpan(query, { nowMs: Date.now(), defaultMs: DAY_MS });
    if (span instanceof AdminError) return span;
    const { fromMs, untilMs, timeZone } = span;
    const { before = null, limit } = query;
    const answer = await askHistory(history, {
      kind: 'timeline',
      fromMs,
      untilMs: untilMs + 1,
      before,
      limit,
    });
    if (answer instanceof AdminError) return answer;
    return {
      body: {
        events: answer.events.map((event) => ({
          number: event.number,
          kind: event.kind,
          subject: event.subject,
          details: event.details,
          from: toTime(event.fromMs),
          until: event.untilMs === null ? null : toTime(event.untilMs),
        })),
        next: answer.next,
        since: toTime(fromMs),
        until: toTime(untilMs),
        time_zone: timeZone,
        ...toKeptJson(answer),
        note: noteOfAge(fromMs, answer.kept.timelineMs, 'Events'),
      },
    };
  },
});
