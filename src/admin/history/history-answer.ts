import { z } from 'zod';
import { type Answer, HistoryRefusal, type Query, type RecordedHistory, toProblemText } from '#history';
import { AdminError } from '../admin-error.ts';

const gapSchema = z
  .object({
    from: z.iso.datetime(),
    until: z.iso.datetime(),
    records: z.int().min(1).nullable().describe('How many records; null: nobody knows.'),
    reason: z
      .enum(['behind', 'unencodable', 'killed', 'thread_ended', 'lost', 'off', 'waiting', 'damaged'])
      .describe(
        'Why: `behind`: the disk was full, read-only or too slow. `killed`: the gateway ended without a shutdown; at most its last second is missing. `thread_ended`: the thread of the history failed. `unencodable`: the record has no span. `lost`: a worker died with them, or could not hand them over. `off`: the history was off. `damaged`: sums of theirs in the file are not what was written, and are left out. `waiting`: they cannot be written now, and are in the history as soon as they can.',
      ),
  })
  .meta({ id: 'HistoryGap', description: 'Records of this span that are not in the history.' });

/** What every answer of the history says of itself. */
export const keptSchema = {
  kept: z
    .object({
      records_since: z.iso.datetime(),
      minutes_since: z.iso.datetime(),
      hours_since: z.iso.datetime(),
      timeline_since: z.iso.datetime(),
    })
    .describe('From when on records, sums by minute, sums by hour and events are kept.'),
  gaps: z.array(gapSchema).readonly().describe('What is missing in the span, newest first; at most 100.'),
  note: z
    .string()
    .nullable()
    .describe(
      'What to know of this answer: why it is empty, or what of the span is not kept. Null: nothing.',
    ),
};

/** `kept` and `gaps` of an answer. */
export function toKeptJson({ kept, gaps }: Pick<Answer, 'kept' | 'gaps'>) {
  return {
    kept: {
      records_since: toTime(kept.recordsMs),
      minutes_since: toTime(kept.minutesMs),
      hours_since: toTime(kept.hoursMs),
      timeline_since: toTime(kept.timelineMs),
    },
    gaps: gaps.map(toGapJson),
  };
}

function toGapJson({ fromMs, toMs, records, reason }: Answer['gaps'][number]) {
  return { from: toTime(fromMs), until: toTime(toMs), records, reason };
}

/** RFC 3339, UTC. */
export function toTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** Asks the history. An error says why it does not answer. */
export async function askHistory<Q extends Query>(
  history: Pick<RecordedHistory, 'ask'>,
  query: Q,
): Promise<Answer<Q['kind']> | AdminError> {
  try {
    return await history.ask(query);
  } catch (error) {
    if (!(error instanceof HistoryRefusal)) throw error;
    if (error.reason === 'off') return new AdminError('history_off');
    if (error.reason === 'no_such_page') return new AdminError('invalid_request', NO_SUCH_PAGE);
    return new AdminError('history_unavailable', {
      message: `${UNAVAILABLE} (${toProblemText(error.reason)}).`,
    });
  }
}

const NO_SUCH_PAGE = {
  param: 'before',
  message: 'before: it is not `next` of an answer of this history: begin again without it',
};
const UNAVAILABLE =
  'The history of this gateway does not answer: try again, with a shorter span if it was too slow';

/** Says that a span begins before what is kept; null if it does not. */
export function noteOfAge(fromMs: number, keptMs: number, what: string): string | null {
  return fromMs >= keptMs ? null : `${what} before ${toTime(keptMs).slice(0, 19)}Z are not kept.`;
}

/** Says which names nobody has had; null if there is none. */
export function noteOfUnknown(unknown: readonly string[]): string | null {
  if (unknown.length === 0) return null;
  const names = unknown.map((name) => `this ${name}`).join(' and ');
  return `No request of ${names} is in what this gateway keeps: check the name.`;
}

/** Joins notes; null if there is none. */
export function joinNotes(...notes: readonly (string | null)[]): string | null {
  return notes.filter((note) => note !== null).join(' ') || null;
}
