import { z } from 'zod';
import { withoutControls } from '#otel/base';
import { ROLLOUT } from '#otel/span';
import { defineRoute, json } from '../route.ts';

const MAX_TEXT_CHARS = 512;

const id = (digits: number) =>
  z
    .string()
    .regex(
      new RegExp(`^(?!0+$)[0-9a-f]{${digits}}$`),
      `${digits} lower-case hexadecimal digits, not all zero`,
    );

const text = () =>
  z.string().transform((given) => Array.from(withoutControls(given, ' ')).slice(0, MAX_TEXT_CHARS).join(''));

const number = () =>
  z
    .string()
    .regex(/^-?\d{1,12}(?:\.\d{1,9})?$/, 'a number')
    .transform(Number);

/** POST /admin/rollout-steps. */
export const recordRolloutStep = defineRoute({
  method: 'POST',
  path: '/admin/rollout-steps',
  role: 'operator',
  operationId: 'recordRolloutStep',
  summary: 'Record one step of a rollout as a span that ends now',
  description:
    '`gateway rollout` makes one trace of a rollout with it. The span goes to the collector like those of drains; nothing ' +
    'else changes.',
  query: {
    trace_id: id(32).describe('The trace of the rollout.'),
    span_id: id(16).describe('The id of the span.'),
    parent_span_id: id(16).optional().describe('The id of its parent; without it, it is the root.'),
    step: z.enum(ROLLOUT.steps).describe('The name of the span.'),
    start_ms: z
      .string()
      .regex(/^\d{1,15}$/, 'milliseconds since 1970')
      .transform(Number)
      .describe('When the step began: milliseconds since 1970.'),
    outcome: z
      .enum(ROLLOUT.outcomes)
      .describe('How it ended. All but `ok` and `good` make the status Error.'),
    replica: text().optional().describe('The replica that it was about.'),
    sentence: text().optional().describe('What happened, in words.'),
    ...Object.fromEntries(
      Object.entries(ROLLOUT.figures).map(([name, { meaning }]) => [
        name,
        number().optional().describe(meaning),
      ]),
    ),
  },
  response: {
    description: 'The span will be exported.',
    content: json(z.object({ recorded: z.literal(true) })),
  },
  handle({ query, caller }, { onAction }) {
    const { trace_id, span_id, parent_span_id, step, start_ms, outcome, replica, sentence } = query;
    const given: Readonly<Record<string, unknown>> = query;
    const figures = Object.keys(ROLLOUT.figures).flatMap((name) => {
      const value = given[name];
      return typeof value === 'number' ? [[name, value] as const] : [];
    });
    onAction({
      action: 'rollout_step',
      traceId: trace_id,
      spanId: span_id,
      parentSpanId: parent_span_id ?? null,
      step,
      startEpochMs: start_ms,
      outcome,
      replica: replica ?? null,
      sentence: sentence ?? null,
      figures: Object.fromEntries(figures),
      tokenName: caller?.name ?? null,
    });
    return { body: { recorded: true as const } };
  },
});
