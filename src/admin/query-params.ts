import { z } from 'zod';
import { DURATION_PATTERN, parseDuration, printDuration } from '#config/values';
import { toShownName } from '#otel/base';

/** A query parameter with a duration such as `30s`, at most `maxMs`. Becomes milliseconds. */
export function durationParam(maxMs: number, meaning: string) {
  const expected = `a duration from 0s to ${printDuration(maxMs)}, such as 500ms, 30s or 10m`;
  const text = z
    .string()
    .meta({ description: `${meaning} It is ${expected}.`, pattern: `^${DURATION_PATTERN}$` });
  return text.transform((given, context) => {
    const ms = parseDuration(given);
    if (ms !== null && ms <= maxMs) return ms;
    context.issues.push({ code: 'custom', message: expected, input: given });
    return z.NEVER;
  });
}

/** A query parameter with per cent such as `10%`, from 0 to `max`. Becomes a share. */
export function percentParam(max: number, meaning: string) {
  const pattern = /^\d{1,3}(?:\.\d{1,2})?%$/;
  const expected = `per cent up to ${max}%, such as 10%`;
  return z
    .string()
    .regex(pattern, expected)
    .transform((text) => Number(text.slice(0, -1)) / 100)
    .refine((share) => share <= max / 100, expected)
    .meta({ description: `${meaning} It is ${expected}.` });
}

/** A query parameter with a name that a client or tenant was given. Becomes the one that records have. */
export const recordedName = () =>
  z
    .string()
    .max(1024)
    .transform((name) => toShownName(name));
