import { z } from 'zod';
import { withoutControls } from '#otel/encode/shown-name.ts';
import { parseDuration, printDuration } from '../config/values.ts';

/** A parameter that holds a duration such as `30s`, from none to so long; becomes milliseconds. */
export function durationParam(maxMs: number, meaning: string) {
  const expected = `a duration from 0s to ${printDuration(maxMs)}, such as 500ms, 30s or 10m`;
  const text = z.string().meta({ description: `${meaning} It is ${expected}.`, pattern: '^\\d+(ms|s|m|h)$' });
  return text.transform((given, context) => {
    const ms = parseDuration(given);
    if (ms !== null && ms <= maxMs) return ms;
    context.issues.push({ code: 'custom', message: expected, input: given });
    return z.NEVER;
  });
}

/** A parameter that people read: on one line, no longer than so many characters; null when nothing is left. */
export function textParam(maxChars: number, meaning: string) {
  const text = z
    .string()
    .meta({ description: `${meaning} It is cut to ${maxChars} characters, on one line.` });
  return text.transform((given) => {
    const line = withoutControls(given, ' ').replace(/\s+/g, ' ').trim();
    return line === '' ? null : Array.from(line).slice(0, maxChars).join('');
  });
}
