import { z } from 'zod';
import { RECORD_FIELDS, type RequestRecord } from '#otel/record/registry';
import { recordSchema } from './record-schema.ts';

const attemptSchema = z
  .object({
    replica: z.string(),
    failure: z
      .string()
      .describe(
        'Why it failed: `not_connected`, `loading`, `reset_on_reuse`, `usage_refused`, `status_retried` or an error code of the gateway.',
      ),
    status: z.int().nullable().describe('What the replica answered; null if it did not.'),
    duration_ms: z.number().describe('From the choice of the replica to the failure.'),
    after_ms: z.number().describe('From the arrival of the request to the failure.'),
  })
  .meta({ id: 'FailedAttempt', description: 'An attempt that did not serve the request.' });

/** A record as the admin API shows it: durations have three decimals, in spans they have all. */
export const shownRecordSchema = recordSchema
  .extend({
    failed_attempts: z
      .array(attemptSchema)
      .readonly()
      .optional()
      .describe('The attempts that failed, in their order; absent if none did.'),
  })
  .meta({
    id: 'Record',
    description: 'The facts of one request; docs/record.md defines each field. An absent field is unknown.',
  });

/** The query parameter of those who follow the records. */
export const afterParam = z
  .string()
  .regex(/^\d{1,15}$/, 'a whole number of at most 15 digits')
  .default('0')
  .describe('Return only records after this number. Use the last value of `last_record`.');

/** A record in the shape of `shownRecordSchema`. */
export type RecordJson = z.output<typeof shownRecordSchema>;

const DURATIONS = (Object.keys(RECORD_FIELDS) as (keyof typeof RECORD_FIELDS)[]).filter(
  (field) => RECORD_FIELDS[field].type === 'double' && field !== 'cost',
);

/** Converts a record to the shape of `shownRecordSchema`. */
export function toRecordJson(record: RequestRecord): RecordJson {
  const json: Record<string, unknown> = { ...record };
  for (const field of DURATIONS)
    if (record[field] !== undefined) json[field] = roundTo3(Number(record[field]));
  if (record.failed_attempts !== undefined) {
    json.failed_attempts = record.failed_attempts.map((attempt) => ({
      ...attempt,
      duration_ms: roundTo3(attempt.duration_ms),
      after_ms: roundTo3(attempt.after_ms),
    }));
  }
  if (record.timings !== undefined) {
    // An engine's other timings have other units.
    const entries = Object.entries(record.timings).map(([name, value]) => [
      name,
      name.endsWith('_ms') ? roundTo3(value) : value,
    ]);
    json.timings = Object.fromEntries(entries);
  }
  return json as RecordJson;
}

/** Rounds to three decimals: microseconds of a duration in milliseconds. */
export function roundTo3(value: number): number {
  return Math.round(value * 1000) / 1000;
}
